"""The end-of-turn benchmark: its recordings hold the pauses it says, and it counts what a listener would."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from os1_edge.bench.joins import AFTER, Joined, joined
from os1_edge.bench.turns import Tally, decide, report, together, turns
from os1_edge.events import CHUNK, RATE, AudioFrame, SpeechPaused, TurnEnded
from os1_edge.hear.turn import TurnDetector


def sentence(words: int = 20) -> np.ndarray:
    """Bursts of 300 ms with 100 ms between, in a faint room."""
    rng = np.random.default_rng(4)
    sound = rng.normal(0, 0.001, RATE + words * RATE * 2 // 5)
    for i in range(words):
        start = RATE // 2 + i * RATE * 2 // 5
        sound[start : start + RATE * 3 // 10] += rng.normal(0, 0.2, RATE * 3 // 10)
    return sound.astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_a_recording_holds_pauses_of_the_length_asked_and_all_of_the_speech(seed: int) -> None:
    clip = sentence()
    made = joined(clip, seed)
    assert made is not None
    assert 1 <= len(made.pauses) <= 3
    for start, end in made.pauses:
        assert 0.3 * RATE - 1 <= end - start <= RATE + 1
        assert np.abs(made.audio[start:end]).max() < 0.01
    assert len(made.audio) == made.end + AFTER
    assert np.abs(made.audio[made.end :]).max() < 0.01
    speech = np.count_nonzero(np.abs(clip) > 0.05)
    assert np.count_nonzero(np.abs(made.audio) > 0.05) == speech


def test_the_same_seed_makes_the_same_recording() -> None:
    first, second, other = (joined(sentence(), seed) for seed in (7, 7, 8))
    assert first is not None
    assert second is not None
    assert other is not None
    assert np.array_equal(first.audio, second.audio)
    assert first.pauses == second.pauses != other.pauses


@pytest.mark.parametrize("clip", [np.zeros(0), np.zeros(RATE), sentence(3), np.ones(5 * RATE)])
def test_a_clip_without_a_fit_gap_makes_no_recording(clip: np.ndarray) -> None:
    assert joined(clip.astype(np.float32), 1) is None


def ended(decided_s: float) -> TurnEnded:
    none = np.zeros(0, np.float32)
    return TurnEnded("t0001", 0, 0, 1, round(decided_s * RATE), "", none, 0)


RECORDING = Joined(np.zeros(5 * RATE, np.float32), ((RATE, 2 * RATE),), 3 * RATE)


def test_cut_offs_are_told_apart_and_only_the_last_end_has_a_delay() -> None:
    tally = Tally()
    tally.add(RECORDING, [ended(1.5), ended(2.5), ended(3.4)])
    assert (tally.cut_in_pauses, tally.cut_elsewhere, tally.delays_s) == (1, 1, [pytest.approx(0.4)])
    tally.add(RECORDING, [ended(3.2)])
    both = together(tally, tally)
    assert both.to_dict() == {
        "cut_offs": 4,
        "in_pauses": 2,
        "elsewhere": 2,
        "median_delay_s": pytest.approx(0.3),
        "p95_delay_s": pytest.approx(0.4),
    }


def heard(*pieces: tuple[int, float]) -> list[tuple[AudioFrame, float]]:
    probabilities = [p for chunks, p in pieces for _ in range(chunks)]
    return [(AudioFrame(i * CHUNK, np.zeros(CHUNK, np.float32)), p) for i, p in enumerate(probabilities)]


def test_a_verdict_counts_only_after_the_time_it_takes() -> None:
    sound = heard((60, 0.9), (60, 0.0))
    asked: list[SpeechPaused] = []

    def sure(paused: SpeechPaused) -> float:
        asked.append(paused)
        return 0.99

    (soon,) = decide(sound, TurnDetector(), sure, 0)
    (late,) = decide(sound, TurnDetector(), sure, 8 * CHUNK)
    (never,) = decide(sound, TurnDetector(), None, 0)
    assert soon.decided < late.decided < never.decided
    assert late.decided >= asked[1].decided + 8 * CHUNK
    assert len(asked) == 2


def test_a_half_with_no_recordings_is_left_out_of_the_report() -> None:
    from os1_edge.bench.turns import Costs

    tally = Tally()
    tally.add(RECORDING, [ended(3.4)])
    ways = ("rule", "ours", "learned")
    tallies = {"first": dict.fromkeys(ways, tally), "second": {way: Tally() for way in ways}}
    found = report(tallies, {"recordings": 1, "pauses": 1}, Costs(sound_s=5.0), 100)
    assert set(found["halves"]) == {"first", "both"}


def test_nothing_to_measure_is_told() -> None:
    result = CliRunner().invoke(turns, [])
    assert result.exit_code == 2
    assert "--shared-data" in result.output
