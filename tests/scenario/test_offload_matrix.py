"""A part of the link matrix, minutes of turns a cell; the whole of it: python tests/faults/links.py."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from matrix import FAULTS, cells, live, summary


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="os1_edge")


def test_over_any_steady_link_turns_are_answered_in_time_and_mostly_by_the_right_side() -> None:
    found = summary([live(cell, turns=30) for cell in cells(("stable",), every=17)])
    assert (found["in_time"], found["whole"], found["live_afterwards"]) == (1.0, 1.0, 0)
    assert found["right_side"] >= 0.95, found["wrong"]
    assert found["both_at_work"] <= 0.15
    assert 5 < found["steady_cells_by_cloud"] < found["steady_cells"] - 5


def test_whatever_breaks_every_turn_is_answered_in_time_once_and_whole() -> None:
    found = summary([live(cell, turns=30) for cell in cells(FAULTS[1:], every=197)])
    assert (found["in_time"], found["whole"], found["live_afterwards"]) == (1.0, 1.0, 0)
    assert found["both_at_work"] <= 0.15
