"""The wake word: a real model, real synthesised speech."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from os1_edge.events import CHUNK, RATE, AudioFrame, Samples
from os1_edge.framing import frames
from os1_edge.hear import wake
from os1_edge.hear.capture import Capture
from os1_edge.hear.wake import PHRASES, NoWakeWord, WakeWord, without_phrase

installed = pytest.mark.skipif(wake.problem() is not None, reason=str(wake.problem()))


@pytest.fixture(scope="module")
def say(pulled: Callable[[str], Path]) -> Callable[[str], Samples]:
    """Speech at 16 kHz."""
    import soxr

    from os1_edge.speak.tts import Piper

    voice = Piper(pulled("piper-joe"))
    return lambda text: np.asarray(soxr.resample(voice.say(text), voice.rate, RATE), np.float32)


def quiet(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)


def noticed(ear: WakeWord, sound: Samples) -> list[float]:
    """Seconds at which the wake word was noticed."""
    return [(f.start + CHUNK) / RATE for f in frames([sound]) if ear.heard(f)]


@installed
@pytest.mark.models
@pytest.mark.parametrize("phrase", PHRASES)
def test_the_wake_word_is_noticed_once_soon_after_its_end(phrase: str, say: Callable[[str], Samples]) -> None:
    said = say(f"{phrase.title()}.")
    end = 1 + float(np.flatnonzero(np.abs(said) > 0.02)[-1]) / RATE
    (at,) = noticed(WakeWord(phrase), np.concatenate([quiet(1), said, quiet(2)]))
    assert end - 0.2 < at < end + 0.3


@installed
@pytest.mark.models
def test_it_is_noticed_again_and_again(say: Callable[[str], Samples]) -> None:
    """No double wake, and not stuck after the first (wyoming-satellite#23, #154)."""
    once = np.concatenate([say("Okay Nabu."), quiet(3)])
    assert len(noticed(WakeWord("okay_nabu"), np.concatenate([quiet(1), *[once] * 3]))) == 3


@installed
@pytest.mark.models
def test_other_words_wake_nobody(say: Callable[[str], Samples]) -> None:
    ear = WakeWord("hey jarvis")
    sound = np.concatenate(
        [quiet(1), say("Okay, now the travel is over. Hey, there is a harvest."), quiet(1)]
    )
    assert noticed(ear, sound) == []
    assert noticed(ear, np.random.default_rng(1).normal(0, 0.1, 5 * RATE).astype(np.float32)) == []


@installed
@pytest.mark.models
def test_a_wake_word_cut_in_two_by_a_gap_is_none(say: Callable[[str], Samples]) -> None:
    ear, said = WakeWord("okay nabu"), say("Okay Nabu.")
    assert noticed(ear, np.concatenate([quiet(1), said[: len(said) // 2]])) == []
    ear.reset()
    assert noticed(ear, np.concatenate([said[len(said) // 2 :], quiet(1)])) == []


@installed
@pytest.mark.models
def test_the_command_right_after_the_wake_word_passes_whole(say: Callable[[str], Samples]) -> None:
    word, command = say("Okay Nabu."), say("What time is it?")
    word = word[: np.flatnonzero(np.abs(word) > 0.02)[-1]]
    command = command[np.flatnonzero(np.abs(command) > 0.02)[0] :]
    begins = RATE + len(word) + RATE // 20
    sound = np.concatenate([quiet(1), word, quiet(0.05), command, quiet(1)])
    capture = Capture(wake=WakeWord("okay nabu"))
    out = [heard for frame in frames([sound]) for heard in capture.step(frame)]
    assert RATE < out[0].start <= begins
    assert np.array_equal(
        np.concatenate([f.samples for f in out])[begins - out[0].start :][: len(command)], command
    )


@installed
def test_numbers_that_are_none_do_not_break_it() -> None:
    ear = WakeWord("alexa")
    for bad in (np.nan, np.inf, 1e9):
        assert not ear.heard(AudioFrame(0, np.full(CHUNK, bad, np.float32)))


def test_a_phrase_without_a_model_is_told_with_those_that_have_one() -> None:
    with pytest.raises(NoWakeWord, match="okay nabu, hey jarvis"):
        WakeWord("hey os one")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, *_: Any) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(NoWakeWord, match=r"pip install 'os1\[wake\]'"):
        WakeWord("okay nabu")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Okay Nabu, what time is it?", "what time is it?"),
        ("okay nabu. What time is it?", "What time is it?"),
        ("Nabu, what time is it?", "what time is it?"),
        ("What time is it, okay Nabu?", "What time is it, okay Nabu?"),
        ("Okay, what time is it?", "Okay, what time is it?"),
        ("Okay Nabu.", ""),
        ("", ""),
    ],
)
def test_the_wake_word_is_no_part_of_what_was_said(text: str, left: str) -> None:
    assert without_phrase(text, "okay nabu") == left
