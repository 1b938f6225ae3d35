"""When a server behind is taken for ill, and how long one of our own waits before it is started again."""

import pytest

from os1_cloud.engines.command import LONGEST_S, wait_s
from os1_cloud.engines.pulse import Look, ill


@pytest.mark.parametrize("seen", [200, 401, 404, 429, 501])
def test_a_server_that_shows_any_page_is_not_ill(seen: Look) -> None:
    assert ill(seen, at_work=0) == ill(seen, at_work=7) == ""


@pytest.mark.parametrize("at_work", [0, 7])
def test_a_server_that_is_gone_or_says_that_it_is_ill_is_ill_whatever_it_works_on(at_work: int) -> None:
    assert "reached" in ill("unreachable", at_work)
    assert "503" in ill(503, at_work)


def test_a_server_too_busy_to_show_its_page_is_not_ill_and_an_idle_one_is() -> None:
    assert ill("silent", at_work=1) == ""
    assert "page" in ill("silent", at_work=0)


def test_a_server_that_shows_its_page_and_answers_nothing_is_ill() -> None:
    assert ill(200, at_work=1, mute=1) == ""
    assert "never came" in ill(200, at_work=1, mute=2)


def test_a_server_that_dies_again_and_again_is_started_ever_more_seldom() -> None:
    waits = [wait_s(failures) for failures in range(100)]
    assert waits[0] < 1
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_S
