"""How long a silence ends a turn, and what is learned of the wearer's pauses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline import Timeline

from os1_edge.events import RATE
from os1_edge.hear.pauses import REACH_S, USUAL_S, Pauses, silence_bound


def waited(verdict: float | None, pauses: Pauses | None = None) -> tuple[float, str]:
    """Seconds of silence to the end of a turn, and the reason told."""
    line = Timeline(pauses=pauses).judged(verdict).hear(1600, 0.9).hear(4000, 0.01)
    (turn,) = line.turns
    return (turn.decided - turn.end) / RATE, turn.reason


def test_a_finished_question_waits_least_and_an_unfinished_one_most() -> None:
    finished, likely, none, unfinished = (waited(p)[0] for p in (0.99, 0.9, None, 0.02))
    assert finished < likely < none < unfinished
    assert finished <= 0.4
    assert none == pytest.approx(0.5, abs=0.033)
    assert 1 <= unfinished <= 1.3


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [(0.99, ", finished (0.99)"), (0.9, "likely finished"), (0.1, "may go on (0.10)")],
)
def test_why_a_turn_ended_is_told(verdict: float, reason: str) -> None:
    assert reason in waited(verdict)[1]
    assert "of silence" in waited(None)[1]


@pytest.mark.parametrize("p", [float("nan"), -0.1, 1.5, float("inf")])
def test_a_verdict_that_is_no_probability_changes_nothing(p: float) -> None:
    assert waited(p) == waited(None)


def test_a_command_of_one_word_does_not_wait_as_an_unfinished_sentence_does() -> None:
    """The model is not sure of "stop"."""
    line = Timeline().judged(0.7).hear(992, 0.01).hear(256, 0.9).hear(2016, 0.01)
    (turn,) = line.turns
    assert turn.decided - turn.end <= 0.5 * RATE
    sentence = Timeline().judged(0.7).hear(992, 0.01).hear(2560, 0.9).hear(2016, 0.01)
    (turn,) = sentence.turns
    assert turn.decided - turn.end >= 0.9 * RATE


# What is learned of the wearer.


def test_a_wearer_who_pauses_long_is_waited_for_longer_each_time() -> None:
    pauses = Pauses()
    before = waited(0.1, pauses)[0]
    line = Timeline(pauses=pauses).judged(0.0)
    for _ in range(12):
        line.hear(992, 0.9).hear(992, 0.01)
    assert waited(0.1, pauses)[0] > before + 0.3
    assert waited(0.99, pauses)[0] > waited(0.99)[0] + 0.05


def test_a_wearer_who_hardly_pauses_is_answered_sooner() -> None:
    pauses = Pauses()
    line = Timeline(pauses=pauses).judged(0.0)
    for _ in range(30):
        line.hear(992, 0.9).hear(192, 0.01)
    assert waited(0.99, pauses)[0] < waited(0.99)[0] - 0.05
    assert waited(0.02, pauses)[0] < waited(0.02)[0] - 0.2


def test_a_wearer_who_was_cut_off_is_given_more_time() -> None:
    """The pause was longer than the bound, so no pause inside a turn shows it."""
    line = Timeline().judged(0.99)
    for _ in range(6):
        line.hear(992, 0.9).hear(800, 0.01)
    assert len(line.turns) >= 5
    assert line.detector.pauses.reach_s > USUAL_S * 1.1
    later = Timeline().judged(0.99)
    for _ in range(6):
        later.hear(992, 0.9).hear(3008, 0.01)
    assert later.detector.pauses.reach_s == USUAL_S, "a new turn after a while is no regret"


def test_a_new_turn_after_the_longest_or_after_the_microphone_stopped_teaches_nothing() -> None:
    line = Timeline().hear(70_016, 0.9).stop().hear(320, 0.0).hear(320, 0.9).stop().hear(320, 0.9).stop()
    assert len(line.turns) >= 4
    assert line.detector.pauses.reach_s == USUAL_S


@given(st.floats(0, 1), st.floats(0, 10))
def test_no_verdict_cuts_at_once_or_waits_for_ever(p: float, reach_s: float) -> None:
    assert 0.2 * RATE <= silence_bound(p, reach_s, 2.0).samples <= 2 * RATE
    assert silence_bound(p, reach_s, 2.0).samples <= silence_bound(p, reach_s + 0.1, 2.0).samples


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 3))
def test_surer_is_never_slower(p: float, q: float, spoken_s: float) -> None:
    low, high = sorted((p, q))
    for reach_s in (0.3, 0.6, 1.2):
        assert silence_bound(high, reach_s, spoken_s).samples <= silence_bound(low, reach_s, spoken_s).samples


def test_most_pauses_of_whatever_length_are_covered() -> None:
    pauses = Pauses()
    rng = np.random.default_rng(2)
    reach_s = []
    for s in rng.uniform(0.2, 1.0, 2000):
        pauses.learn(round(s * RATE))
        reach_s.append(pauses.reach_s)
    assert np.mean(reach_s[200:]) == pytest.approx(0.2 + 0.8 * 0.8, abs=0.05)


@given(st.lists(st.integers(0, 100 * RATE), max_size=300))
def test_what_was_learned_is_the_same_after_a_restart(lengths: list[int]) -> None:
    pauses = Pauses()
    for samples in lengths:
        pauses.learn(samples)
    again = Pauses.from_dict(json.loads(json.dumps(pauses.to_dict())))
    assert again.reach_s == pytest.approx(pauses.reach_s, abs=1e-4)
    assert again.to_dict() == pauses.to_dict()
    assert REACH_S[0] <= again.reach_s <= REACH_S[1]


@pytest.mark.parametrize(
    "kept",
    [{}, {"reach_s": "x", "seen": 1}, {"reach_s": float("nan"), "seen": 2}, {"reach_s": 0.9}, {"seen": None}],
)
def test_what_was_kept_but_cannot_be_read_is_learned_anew(kept: dict[str, object]) -> None:
    assert Pauses.from_dict(kept).to_dict() == Pauses().to_dict()


def test_kept_numbers_out_of_range_come_back_into_it() -> None:
    assert Pauses.from_dict({"reach_s": 99.0, "seen": 10**9}).reach_s == REACH_S[1]
    assert Pauses.from_dict({"reach_s": -1, "seen": -5}).reach_s == REACH_S[0]
