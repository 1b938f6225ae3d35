"""Fixations and blinks as timelines: what rests, what jumps, what is too short, what a bad clock does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from os1_edge.events import Fixation
from os1_edge.see.gaze.blink import BlinkWatch
from os1_edge.see.gaze.fixation import FixationFinder
from os1_edge.see.gaze.pupil import Pupil


def found(path: Sequence[tuple[float, float, float]]) -> list[Fixation]:
    finder = FixationFinder()
    out = [event for at_s, x, y in path for event in finder.step(at_s, x, y)]
    return out + finder.stop()


def rest(
    start: float, seconds: float, x: float, y: float, hz: float = 100.0, seed: int = 0
) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(seed)
    return [
        (start + i / hz, x + float(rng.normal(0, 0.05)), y + float(rng.normal(0, 0.05)))
        for i in range(round(seconds * hz))
    ]


def test_two_looks_with_a_saccade_between_are_two_fixations() -> None:
    fixations = found(rest(0.0, 0.4, 0, 0) + rest(0.44, 0.5, 10, 3))
    assert [(round(f.x_deg), round(f.y_deg)) for f in fixations] == [(0, 0), (10, 3)]
    assert fixations[0].end_s - fixations[0].start_s == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("hz", [5.0, 10.0, 30.0, 200.0])
def test_looks_are_told_apart_at_every_frame_rate(hz: float) -> None:
    fixations = found(rest(0.0, 1.0, 0, 0, hz) + rest(1.0, 1.0, 4, 0, hz))
    assert [round(f.x_deg) for f in fixations] == [0, 4]


def test_a_look_of_thirty_milliseconds_is_none() -> None:
    assert found(rest(0.0, 0.03, 0, 0)) == []


def test_a_slow_drift_off_the_spot_ends_a_fixation() -> None:
    path = [(i / 30, i * 0.1, 0.0) for i in range(90)]  # 3 degrees a second, nine in all
    assert len(found(path)) >= 3


def test_a_flicker_in_the_middle_does_not_cut_a_fixation() -> None:
    path = [*rest(0.0, 0.3, 0, 0), (0.30, 3.0, 0.0), *rest(0.34, 0.3, 0.1, 0)]
    assert len(found(path)) == 1


def test_a_pause_of_the_camera_ends_a_fixation_and_a_clock_gone_back_does_not_crash() -> None:
    assert len(found(rest(0.0, 0.3, 0, 0) + rest(1.0, 0.3, 0, 0))) == 2
    assert len(found(rest(5.0, 0.3, 0, 0) + rest(1.0, 0.3, 0, 0))) == 2


def test_a_fixation_goes_on_being_told_while_it_lasts() -> None:
    finder = FixationFinder()
    for at_s, x, y in rest(0.0, 0.5, 2, 1):
        finder.step(at_s, x, y)
    assert finder.current
    assert finder.current.x_deg == pytest.approx(2, abs=0.1)


OPEN = Pupil(50, 50, 30, 28, 0, 0.99)
DOUBTFUL = Pupil(50, 50, 30, 28, 0, 0.5)
NONE = Pupil(20, 90, 30, 12, 0, 0.05)
HALF = Pupil(50, 55, 30, 12, 0, 0.8)


def blinks(*frames: Pupil | None) -> list[tuple[float, float]]:
    watch = BlinkWatch()
    out = [watch.step(i / 30, pupil) for i, pupil in enumerate(frames)]
    return [(round(b.start_s * 30), round(b.end_s * 30)) for b in out if b]


def test_an_eye_shut_for_five_frames_has_blinked_once() -> None:
    assert blinks(*[OPEN] * 10, *[NONE, None, None, NONE, None], *[OPEN] * 5) == [(10, 15)]


def test_a_lid_half_over_the_pupil_counts_as_closed() -> None:
    assert blinks(*[OPEN] * 10, HALF, HALF, HALF, *[OPEN] * 5) == [(10, 13)]


def test_a_moment_of_doubt_is_no_blink_and_does_not_cut_one_in_two() -> None:
    assert blinks(*[OPEN] * 10, DOUBTFUL, *[OPEN] * 5) == []
    assert blinks(*[OPEN] * 10, None, DOUBTFUL, None, *[OPEN] * 5) == [(10, 13)]


def test_an_eye_shut_for_two_seconds_rests_and_does_not_blink() -> None:
    assert blinks(*[OPEN] * 10, *[None] * 60, *[OPEN] * 5) == []


def test_a_pupil_that_narrowed_for_good_does_not_stay_closed() -> None:
    watch = BlinkWatch()
    for i in range(20):
        watch.step(i / 30, OPEN)
    narrow = Pupil(50, 50, 15, 14, 0, 0.9)
    clear = Pupil(50, 50, 15, 14, 0, 0.99)
    for i in range(20, 25):
        watch.step(i / 30, narrow)
    assert watch.closed
    watch.step(1.0, clear)
    assert not watch.closed
