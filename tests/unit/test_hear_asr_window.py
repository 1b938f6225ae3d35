"""How much of Whisper's window a turn gets, and when its words are distrusted."""

from __future__ import annotations

import numpy as np
import pytest

from os1_edge.events import RATE
from os1_edge.hear.window import (
    MARGIN,
    SAFE,
    STEP,
    TIGHT,
    WINDOW,
    Heard,
    Pass,
    doubt,
    looped,
    passes,
    sound_end_s,
)

SMALL, LARGE = Pass(STEP, 30, False), Pass(SAFE, 60, False)
GOOD = Heard((5, 6, 7, 8), 6, -0.2, 2.0)


@pytest.mark.parametrize("seconds", [0.1, 1.1, 2.5, 4.4, 4.6, 8.9, 9.0, 15.0, 28.0, 30.0])
def test_every_window_holds_the_whole_utterance_and_rest(seconds: float) -> None:
    tried = passes(seconds)
    for how in tried[:-1]:
        assert how.positions % STEP == 0  # with flash attention, else an utterance leaks into the next
        assert how.positions >= seconds * 50 + (TIGHT if how.positions == STEP else MARGIN)
        assert how.positions < WINDOW
        assert not how.last
    assert tried[-1].last
    assert tried[-1].positions == 0
    assert [how.positions for how in tried[:-1]] == sorted({how.positions for how in tried[:-1]})


def test_a_short_command_is_tried_in_the_smallest_window_first() -> None:
    assert [how.positions for how in passes(1.5)] == [STEP, SAFE, 0]
    assert [how.positions for how in passes(6.0)] == [SAFE, 0]
    assert [how.positions for how in passes(29.0)] == [0]


@pytest.mark.parametrize("seconds", [1.1, 5.0, 30.0])
def test_the_words_a_pass_may_write_are_bounded(seconds: float) -> None:
    for how in passes(seconds):
        assert 0 < how.max_tokens <= 10 * seconds + 96
    assert passes(seconds)[-1].max_tokens > 32, "whisper.cpp finds no loop in fewer"


def test_what_looks_right_is_believed() -> None:
    assert doubt(GOOD, SMALL, 2.2) is None
    assert doubt(GOOD, LARGE, 2.2) is None


@pytest.mark.parametrize(
    ("heard", "end_s", "told"),
    [
        (Heard((5, 6, 7), 30, -0.2, 2.0), 2.2, "more words"),
        (Heard((5, 6, 7, 5, 6, 7), 8, -0.2, 2.0), 2.2, "repeats"),
        (Heard((9, 9, 9), 5, -0.2, 2.0), 2.2, "repeats"),
        (Heard((5, 6, 7), 5, -0.2, 0.8), 2.2, "follows"),
        (Heard((), 0, 0.0, None), 2.2, "no words"),
        (Heard((5, 6, 7), 5, -1.6, 2.0), 2.2, "unsure"),
    ],
)
def test_what_looks_odd_is_heard_again_in_a_larger_window(heard: Heard, end_s: float, told: str) -> None:
    assert told in (doubt(heard, SMALL, end_s) or "")


def test_the_larger_window_may_be_less_sure_but_not_hopeless() -> None:
    assert doubt(Heard((5, 6, 7), 5, -0.9, 2.0), LARGE, 2.2) is None
    assert doubt(Heard((5, 6, 7), 5, -0.9, 2.0), SMALL, 2.2) is not None
    assert doubt(Heard((5, 6, 7), 5, -1.6, 2.0), LARGE, 2.2) is not None


def test_noise_is_not_heard_a_third_time() -> None:
    assert doubt(Heard((), 0, 0.0, None), LARGE, 3.0) is None


@pytest.mark.parametrize(
    ("words", "is_loop"),
    [
        ([1, 2, 3, 4], False), ([1, 1], False), ([1, 1, 1], True), ([0, 1, 2, 1, 2, 1, 2], True),
        ([1, 2, 1, 2], False), ([1, 2, 3, 1, 2, 3], True), ([1, 2, 3, 1, 2, 4], False), ([], False),
    ],
)  # fmt: skip
def test_a_loop_is_seen(words: list[int], is_loop: bool) -> None:
    assert looped(words) is is_loop


def test_the_end_of_the_sound_is_found_before_the_silence() -> None:
    audio = np.zeros(3 * RATE, np.float32)
    audio[RATE // 2 : 2 * RATE] = 0.1 * np.sin(np.arange(RATE * 3 // 2) / 5)
    assert sound_end_s(audio) == pytest.approx(2.0, abs=0.03)
    assert sound_end_s(np.full(2 * RATE, 0.1, np.float32)) == pytest.approx(2.0, abs=0.03)
    assert sound_end_s(np.zeros(10, np.float32)) == pytest.approx(10 / RATE)
