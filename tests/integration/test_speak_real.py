"""The real voice: what it says comes back as words, at an even level, and its words lie where they sound."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soxr

from os1_edge.events import RATE
from os1_edge.hear.asr import Whisper
from os1_edge.speak.heard import AUDIBLE
from os1_edge.speak.tts import PEAK, NotAVoice, Piper

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def piper(pulled: Callable[[str], Path]) -> Piper:
    return Piper(pulled("piper-joe"))


@pytest.fixture(scope="module")
def whisper(pulled: Callable[[str], Path]) -> Whisper:
    return Whisper(pulled("whisper-tiny.en"))


def heard(whisper: Whisper, piper: Piper, text: str) -> str:
    sound = np.asarray(soxr.resample(piper.say(text), piper.rate, RATE), np.float32)
    quiet = np.zeros(RATE // 4, np.float32)
    return whisper.text(np.concatenate([quiet, sound, quiet])).lower()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Your dentist appointment is at three this afternoon.",
            r"dentist appointment is at (3|three) this afternoon",
        ),
        ("You paid $3.14 for the tea.", r"(\$3\.14|(3|three) dollars and (14|fourteen) cents)"),
        ("It was on Jan. 5, 2026, I think.", r"january (5|5th|fifth),? (2026|20,? 26|twenty twenty.six)"),
        ("The train leaves at 14:30 from platform 2.", r"(14|fourteen).{0,2}(30|thirty)"),
        ("Dr. Lee said that it weighs 5 kg.", r"(dr\.?|doctor) (lee|leigh|li).*(5|five) (kilograms|kg)"),
        (
            "It is 20 °C outside, about 5% colder.",
            r"(20|twenty) ?(degrees celsius|°c).*(5%|(5|five) percent)",
        ),
    ],
)
def test_what_is_written_is_heard(piper: Piper, whisper: Whisper, text: str, expected: str) -> None:
    assert re.search(expected, heard(whisper, piper, text))


def test_clauses_are_as_loud_as_each_other_and_end_in_the_pause_of_their_mark(piper: Piper) -> None:
    levels, pauses = [], []
    for clause in ("Yes.", "You have a dentist appointment,", "It is at three on Market Street.", "No!"):
        samples = piper.speak(clause).samples
        assert np.isfinite(samples).all()
        assert np.abs(samples).max() <= PEAK + 1e-6
        loud = samples[np.abs(samples) > AUDIBLE]
        levels.append(20 * np.log10(np.sqrt(np.mean(loud**2))))
        pauses.append((len(samples) - np.flatnonzero(np.abs(samples) > AUDIBLE)[-1]) / piper.rate)
    assert max(levels) - min(levels) < 3.0
    assert pauses == pytest.approx([0.32, 0.14, 0.32, 0.32], abs=0.01)


def test_the_voice_tells_where_its_words_lie(piper: Piper, whisper: Whisper) -> None:
    clause = "The dentist is at half past three, and the bus leaves at two."
    speech = piper.speak(clause)
    assert speech.words is not None
    assert [clause[: w.text_end].split()[-1] for w in speech.words] == clause.split()
    assert speech.words[-1].end <= len(speech.samples)
    # Cut behind "three,", the first half is heard and nothing of the second.
    cut = next(w for w in speech.words if clause[: w.text_end].endswith("three,"))
    half = np.asarray(soxr.resample(speech.samples[: cut.end], piper.rate, RATE), np.float32)
    text = whisper.text(np.concatenate([half, np.zeros(RATE // 2, np.float32)])).lower()
    assert re.search(r"half past (3|three)", text)
    assert "bus" not in text


def test_a_very_long_text_is_spoken_piece_by_piece(piper: Piper) -> None:
    tracemalloc.start()
    try:
        pieces = 0
        for samples in piper.stream("word " * 150):
            assert len(samples) / piper.rate < 40
            pieces += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert pieces >= 4
    assert peak < 40e6


@pytest.mark.parametrize("text", ["", "   ", "😀", "...", "\n\n"])
def test_nothing_to_say_is_no_sound(piper: Piper, text: str) -> None:
    assert len(piper.say(text)) == 0


@pytest.mark.parametrize(
    "text", ["[[", "[[ h ]]", "茶", "a\x00b", "<x>" * 50, "☃" * 300, "Ünïcödé façade", "1" * 40, "\ud800"]
)
def test_odd_text_neither_crashes_nor_hangs(piper: Piper, text: str) -> None:
    assert np.isfinite(piper.say(text)).all()


def test_the_same_seed_says_the_same(pulled: Callable[[str], Path]) -> None:
    first, second = (Piper(pulled("piper-joe"), seed=3).speak("Good morning.").samples for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("settings", "model", "problem"),
    [
        (None, b"", "no settings"),
        ("{", b"", "JSONDecodeError"),
        ("{}", b"", "KeyError"),
        ("[]", b"", "not a Piper voice"),
        ("real", b"not a model", "not a Piper voice that works here"),
        ("real", None, "not a Piper voice that works here"),
    ],
)
def test_a_wrong_voice_file_is_told_with_its_name(
    tmp_path: Path, pulled: Callable[[str], Path], settings: str | None, model: bytes | None, problem: str
) -> None:
    file = tmp_path / "voice.onnx"
    if model is not None:
        file.write_bytes(model)
    if settings is not None:
        real = json.loads(Path(f"{pulled('piper-joe')}.json").read_text("utf-8"))
        Path(f"{file}.json").write_text(json.dumps(real) if settings == "real" else settings)
    with pytest.raises(NotAVoice, match=problem) as raised:
        Piper(file)
    assert str(file) in str(raised.value)
