"""What a replay's report says of its turns: every word that was said counts, and every second has a name."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from os1_edge.app import TurnTrace
from os1_edge.device.session import Session, SessionFile, Utterance
from os1_edge.events import RATE, TurnEnded
from os1_edge.replay import recorder
from os1_edge.replay.measure import last_speech_s, percentile, turn_of, word_error_rate
from os1_edge.replay.report import Report

START = datetime(2026, 3, 2, 8)


def turn(
    start_s: float, end_s: float, heard: str, *, loud_until_s: float | None = None, **of: Any
) -> TurnTrace:
    """A turn of which the microphone was loud from its start to ``loud_until_s``."""
    audio = np.full(round((end_s - start_s + 0.3) * RATE), 0.001, np.float32)
    audio[: round(((loud_until_s or end_s) - start_s) * RATE)] = 0.5
    start, end, decided = (round(s * RATE) for s in (start_s, end_s, end_s + 0.6))
    ended = TurnEnded(f"t{start}", 0, start, end, decided, "silence", audio, start)
    return TurnTrace(ended, heard=heard, **{"reply": "Yes."} | of)


def said(start_s: float, end_s: float, text: str) -> Utterance:
    return Utterance(start_s=start_s, end_s=end_s, text=text)


class Nothing:
    """A memory that nothing was kept in."""

    @property
    def store(self) -> Any:
        return SimpleNamespace(contexts=lambda: [])

    async def events(self) -> list[Any]:
        return []

    async def profile(self) -> list[Any]:
        return []


def reported(
    utterances: list[Utterance],
    turns: list[TurnTrace],
    *,
    realtime: bool = True,
    tell: Any = lambda line: None,
) -> Report:
    """The report of a session in which ``utterances`` were said and ``turns`` were heard."""
    fields: dict[str, Any] = {"schema": 1, "start": START, "frame": [{"file": "a.jpg", "at_s": 0.0}]}
    file = SessionFile.model_validate(fields).model_copy(update={"utterance": utterances})
    made = recorder.Recorder(Session(Path("nowhere"), file), realtime=realtime, tell=tell)
    for trace in turns:
        made.turn_answered(trace)
    return asyncio.run(made.make({}, Nothing(), 1.0))  # type: ignore[arg-type]


def test_all_heard_as_it_was_said_is_no_error() -> None:
    made = reported(
        [said(1, 2, "Good morning."), said(3, 4, "Three o'clock.")],
        [turn(1, 2, "good morning"), turn(3, 4, "3 o'clock")],
    )
    assert made.word_error_rate == 0.0
    assert made.unheard is None
    assert [t.reference for t in made.turns] == ["Good morning.", "Three o'clock."]


def test_an_utterance_that_no_turn_heard_costs_all_its_words_and_is_told_of() -> None:
    made = reported(
        [said(1, 2, "Good morning."), said(5, 6, "Where are my keys?")], [turn(1, 2, "Good morning.")]
    )
    assert made.word_error_rate == pytest.approx(4 / 6, abs=1e-4)
    assert made.unheard == ["Where are my keys?"]


def test_a_turn_without_words_heard_nothing() -> None:
    made = reported([said(1, 2, "Good morning.")], [turn(1, 2, " ", failed="BadSound")])
    assert made.word_error_rate == 1.0
    assert made.unheard == ["Good morning."]
    assert made.turns[0].reference == "Good morning."


def test_words_that_nobody_said_count_as_too_many() -> None:
    made = reported([said(1, 2, "Good morning.")], [turn(1, 2, "Good morning."), turn(5, 6, "Thank you.")])
    assert made.word_error_rate == 1.0
    assert made.turns[1].reference is None


def test_without_references_there_is_no_word_error_rate() -> None:
    made = reported([], [turn(1, 2, "Good morning.")])
    assert made.word_error_rate is None
    assert made.unheard is None


def test_a_reference_counts_for_one_turn_even_if_it_lies_in_two() -> None:
    made = reported([said(1, 4, "one two three four")], [turn(1, 2.9, "one two three"), turn(3.3, 4, "four")])
    assert [t.reference for t in made.turns] == ["one two three four", None]
    assert made.word_error_rate == pytest.approx(2 / 4)


def test_two_utterances_in_one_turn_are_its_reference_in_the_order_said() -> None:
    made = reported([said(2.5, 4, "How are you?"), said(1, 2, "Hello.")], [turn(1, 4, "Hello. How are you?")])
    assert made.turns[0].reference == "Hello. How are you?"
    assert made.word_error_rate == 0.0


def test_an_utterance_belongs_to_the_turn_that_heard_most_of_it() -> None:
    utterance = said(1, 4, "x")
    assert turn_of(utterance, [(0, 1.5), (1.6, 5), (6, 7)]) == 1
    assert turn_of(utterance, [(0, 2), (3, 4)]) == 0
    assert turn_of(utterance, [(0, 1), (4, 5)]) is None
    assert turn_of(utterance, []) is None


def test_a_pair_without_a_reference_or_without_words_counts_all_of_the_other() -> None:
    assert word_error_rate([("", "um er"), ("one two", "one two"), ("three four", "")]) == 1.0
    assert word_error_rate([("", "um er")]) is None
    assert word_error_rate([]) is None


def test_an_utterance_split_over_two_turns_gives_no_negative_latency() -> None:
    """The reference ends with the second turn, two seconds after the first was answered."""
    turns = [
        turn(1, 2.9, "one two", loud_until_s=2.8, spoke_at_s=3.7),
        turn(4.2, 5.1, "three", spoke_at_s=6.0),
    ]
    made = reported([said(1, 5, "one two three")], turns)
    first, second = (t.latency for t in made.turns)
    assert first.endpoint_s == pytest.approx(3.5 - 2.8)
    assert first.voice_to_voice_s == pytest.approx(3.7 - 2.8)
    assert second.endpoint_s == pytest.approx(5.7 - 5.0)


def test_the_end_of_speech_is_the_references_only_where_the_turn_ends_with_it() -> None:
    ended = turn(1, 3, "x", loud_until_s=2.9).ended
    assert last_speech_s(ended, [said(1, 2.6, "near")]) == 2.6
    assert last_speech_s(ended, [said(1, 3.4, "near")]) == 3.4
    assert last_speech_s(ended, [said(1, 2.0, "a"), said(2.1, 2.8, "the last")]) == 2.8
    for far in (
        [],
        [said(1, 2.4, "far")],
        [said(1, 3.6, "far")],
        [said(0, 0.9, "before")],
        [said(3.1, 3.2, "after")],
    ):
        assert last_speech_s(ended, far) == pytest.approx(2.9)


def test_a_reference_that_ends_after_the_turn_was_held_to_be_over_is_not_its_end() -> None:
    ended = turn(1, 3, "x", loud_until_s=2.9).ended
    hasty = TurnEnded("t", 0, ended.start, ended.end, ended.end + RATE // 5, "", ended.audio, ended.start)
    assert last_speech_s(hasty, [said(1, 3.4, "it went on")]) == pytest.approx(2.9)


def test_a_turn_that_failed_says_why_and_is_not_passed_over() -> None:
    lines: list[str] = []
    dropped = turn(5, 6, "", reply="", failed="more than 8 turns waited")
    made = reported([], [dropped, turn(1, 2, "Hello.")], tell=lines.append)
    assert [(t.heard, t.failed) for t in made.turns] == [("Hello.", None), ("", "more than 8 turns waited")]
    assert "(failed: more than 8 turns waited)" in lines[1]
    assert made.turns[1].latency.voice_to_voice_s is None


def test_a_reply_by_rule_needed_no_model() -> None:
    assert reported([], [turn(1, 2, "Hello.", route="rule")]).turns[0].route == "rule"


def test_every_second_from_speech_to_speech_has_a_name() -> None:
    spent = {
        "asr_s": 0.2,
        "recall_s": 0.01,
        "first_token_s": 0.3,
        "first_clause_s": 0.4,
        "first_audio_s": 0.1,
    }
    spoke = {"spoke_at_s": 2.2 + sum(spent.values()), "paused_at": round(2.2 * RATE), "final_text_s": 0.1}
    latency = reported([], [turn(1, 2, "Hello.", **spoke, **spent)]).turns[0].latency.model_dump()
    assert (latency.pop("endpoint_s"), latency.pop("final_text_s")) == (pytest.approx(0.6), 0.1)
    assert latency.pop("voice_to_voice_s") == pytest.approx(sum(latency.values()))
    assert (latency["pause_s"], latency["first_clause_s"]) == (pytest.approx(0.2), 0.4)


def test_percentiles_are_interpolated() -> None:
    assert percentile([4.0], 95) == 4.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert percentile([0.0, 1.0], 95) == pytest.approx(0.95)
