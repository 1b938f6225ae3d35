"""Where in a recording somebody speaks: runs of chunks, and what neighbours and the room tell of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.events import CHUNK, RATE
from os1_edge.hear.files import transcript
from os1_edge.hear.spans import (
    AFTERWARDS,
    BLOCK,
    SpanRules,
    level_db,
    spans,
    speaks,
    speech_spans,
    weighed,
)


@given(st.lists(st.floats(0, 1), max_size=300), st.integers(1, 6), st.integers(1, 8))
def test_spans_of_speech_are_ordered_disjoint_and_inside(
    probabilities: list[float], min_speech: int, min_silence: int
) -> None:
    rules = SpanRules(min_speech=min_speech, min_silence=min_silence)
    found = spans(probabilities, rules)
    for a, b in found:
        assert 0 <= a < b <= len(probabilities)
        assert b - a >= min_speech
        assert probabilities[a] >= rules.start_above
        assert probabilities[b - 1] >= rules.stop_below
    for (_, b), (c, _) in pairwise(found):
        assert c - b >= min_silence


class Loud:
    """A voice detector that calls loud sound speech, one chunk late as Silero is."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._last = 0.0

    def probability(self, chunk: np.ndarray) -> float:
        was, self._last = self._last, float(np.abs(chunk).max() > 0.1)
        return was


def test_spans_stand_where_the_sound_is_and_never_past_its_end() -> None:
    quiet, loud = np.zeros(RATE, np.float32), np.full(RATE + 7, 0.5, np.float32)
    seconds, found = speech_spans([quiet, loud], Loud())
    assert seconds == pytest.approx(2.0, abs=0.001)
    ((start, end),) = found
    assert start == pytest.approx(1.0, abs=0.033)
    assert 1.95 <= end <= seconds


def test_no_sound_at_all_holds_no_speech() -> None:
    assert speech_spans([], Loud()) == (0.0, [])
    assert not speaks(np.zeros(0, np.float32), Loud())
    assert not speaks(np.zeros(RATE, np.float32), Loud())
    assert speaks(np.full(RATE, 0.5, np.float32), Loud())


class NotAsked:
    """A recogniser that must not be asked: it invents words in silence."""

    def segments(self, audio: np.ndarray) -> list[object]:
        raise AssertionError("asked about silence")


def test_the_recogniser_is_not_asked_about_silence() -> None:
    assert transcript([], NotAsked(), Loud()) == (0.0, [])  # type: ignore[arg-type]
    assert transcript([np.zeros(RATE, np.float32)], NotAsked(), Loud()) == (1.0, [])  # type: ignore[arg-type]


def room(chunks: int, db: float) -> np.ndarray:
    return np.full(chunks, db) + np.random.default_rng(3).normal(0, 1, chunks)


def found(probabilities: np.ndarray, levels: np.ndarray) -> list[tuple[int, int]]:
    return spans(weighed(probabilities, levels).tolist(), AFTERWARDS)


def test_a_voice_far_away_in_a_quiet_room_is_found() -> None:
    """Silero gives it 0.15, and it stands 25 dB out of the room."""
    levels, probabilities = room(400, -75), np.full(400, 0.01)
    levels[200:260], probabilities[201:261] = -50, 0.15
    ((start, end),) = found(probabilities, levels)
    assert abs(start - 200) <= 3
    assert abs(end - 260) <= 3
    assert spans(probabilities.tolist()) == []


def test_a_word_starts_and_ends_where_it_sounds_though_the_detector_is_late() -> None:
    levels, probabilities = room(400, -60), np.full(400, 0.02)
    levels[200:230], probabilities[201:231] = -20, 0.98
    ((start, end),) = found(probabilities, levels)
    assert 200 - start == end - 230, "as early at the start as late at the end"


def test_what_is_as_unsure_in_a_noisy_room_is_no_voice() -> None:
    levels, probabilities = room(400, -32), np.full(400, 0.01)
    levels[200:260], probabilities[201:261] = -22, 0.15
    assert found(probabilities, levels) == []


def test_a_bang_that_the_detector_knows_for_none_is_no_voice() -> None:
    levels, probabilities = room(400, -75), np.full(400, 0.005)
    levels[200:220] = -10
    assert found(probabilities, levels) == []


def test_the_room_is_measured_anew_each_minute() -> None:
    """An hour ago it was loud; that must not hide a quiet voice now."""
    far = np.full(BLOCK, 0.01)
    far[301:361] = 0.15
    quiet = room(BLOCK, -75)
    quiet[300:360] = -50
    alone = found(far, quiet)
    assert alone
    loud_before = np.concatenate([room(BLOCK, -30), quiet])
    after = found(np.concatenate([np.full(BLOCK, 0.01), far]), loud_before)
    assert [(a - BLOCK, b - BLOCK) for a, b in after] == alone


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(-90, 0)), max_size=60),
    st.integers(0, 3),
)
def test_whatever_is_weighed_stays_a_probability(pairs: list[tuple[float, float]], minutes: int) -> None:
    repeated = pairs * (1 + minutes * BLOCK // max(1, len(pairs)))
    out = weighed(np.array([p for p, _ in repeated]), np.array([db for _, db in repeated]))
    assert out.shape == (len(repeated),)
    assert ((out >= 0) & (out <= 1)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_as_quiet_as_silence(value: float) -> None:
    assert level_db(np.full(CHUNK, value, np.float32)) == level_db(np.zeros(CHUNK, np.float32)) == -90


def test_the_loudest_sound_a_file_can_hold_has_a_level() -> None:
    assert np.isfinite(level_db(np.full(CHUNK, 3e38, np.float32)))
