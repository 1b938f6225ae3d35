"""Who gets in: the code, the cookie, and what happens to who guesses."""

from __future__ import annotations

import pytest

from os1_edge.web.pairing import CLOSED_S, IDLE_S, PAGES, TRIES, Doors, NotPaired


def test_the_code_lets_in_however_it_is_typed() -> None:
    doors = Doors()
    for typed in (doors.code, doors.code.replace("-", ""), f" {doors.code.upper()} "):
        assert doors.knows(doors.pair(typed, 0.0), 1.0)


def test_a_browser_without_the_code_stays_out() -> None:
    doors = Doors()
    with pytest.raises(NotPaired, match="not the code"):
        doors.pair("", 0.0)
    assert not doors.knows("", 0.0)
    assert not doors.knows("made-up", 0.0)


def test_who_guesses_is_shut_out_and_the_code_changes() -> None:
    told: list[str] = []
    doors = Doors(told.append)
    old = doors.code
    for _ in range(TRIES):
        with pytest.raises(NotPaired):
            doors.pair("aaaa-aaaa", 0.0)
    with pytest.raises(NotPaired, match=f"Wait {CLOSED_S:.0f} seconds"):
        doors.pair(old, 0.1)
    assert told == [doors.code]
    assert doors.code != old
    with pytest.raises(NotPaired):
        doors.pair(old, CLOSED_S + 1)
    assert doors.knows(doors.pair(doors.code, CLOSED_S + 1), CLOSED_S + 1)


def test_a_right_code_forgives_the_typing_errors_before_it() -> None:
    doors = Doors()
    for _ in range(3):
        for _ in range(TRIES - 1):
            with pytest.raises(NotPaired):
                doors.pair("aaaa-aaaa", 0.0)
        doors.pair(doors.code, 0.0)


def test_so_many_browsers_are_paired_and_no_more() -> None:
    doors = Doors()
    cookies = [doors.pair(doors.code, float(n)) for n in range(PAGES)]
    assert doors.knows(cookies[0], 100.0)
    doors.pair(doors.code, 101.0)
    assert doors.knows(cookies[0], 102.0)  # seen last: it stays
    assert not doors.knows(cookies[1], 102.0)


def test_a_browser_that_stays_away_or_leaves_must_pair_again() -> None:
    doors = Doors()
    cookie, other = doors.pair(doors.code, 0.0), doors.pair(doors.code, 0.0)
    doors.leave(other)
    assert not doors.knows(other, 1.0)
    assert not doors.knows(cookie, IDLE_S + 1)
