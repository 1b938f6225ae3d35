"""Real recognition: every engine in the seat, nothing left from the turn before, nothing made of noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from os1_edge.device.sound import read
from os1_edge.events import RATE, Samples
from os1_edge.hear.asr import UnknownLanguage, Whisper
from os1_edge.hear.files import TELL_EVERY, transcript
from os1_edge.hear.recogniser import Recogniser, UnknownEngine, make_recogniser
from os1_edge.hear.sherpa import NotMoonshine
from os1_edge.hear.vad import SileroVad
from os1_edge.replay.measure import word_errors
from os1_edge.speak.tts import Piper

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]

SENTENCE = "Please call me when the train arrives at the station."


@pytest.fixture(scope="module")
def whisper(pulled: Callable[[str], Path]) -> Whisper:
    return Whisper(pulled("whisper-tiny.en"), threads=1)


@pytest.fixture(scope="module")
def vad(pulled: Callable[[str], Path]) -> SileroVad:
    return SileroVad(pulled("silero-vad"))


@pytest.fixture(scope="module")
def moonshine(pulled: Callable[[str], Path]) -> Recogniser:
    pytest.importorskip("sherpa_onnx", reason="the extra sherpa is not installed")
    return make_recogniser("sherpa", pulled("moonshine-base"), threads=1)


@pytest.fixture(scope="module")
def say(pulled: Callable[[str], Path]) -> Callable[[str], Samples]:
    """Speaks a text: mono float32 at 16 kHz, with a little room around it."""
    piper = Piper(pulled("piper-joe"))
    hush = (0.001 * np.random.default_rng(3).standard_normal(RATE // 4)).astype(np.float32)

    def speak(text: str) -> Samples:
        voice = soxr.resample(piper.say(text), piper.rate, RATE).astype(np.float32)
        return np.concatenate([hush, voice, hush])

    return speak


def shared(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "audio" / "manifest.jsonl").read_text("utf-8").splitlines()
    return [row for line in lines if (row := json.loads(line))["kind"] == kind]


def bare(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum() or c == " ").strip()


@pytest.mark.parametrize("word", ["Stop.", "Yes.", "No."])
def test_one_word_is_heard_once(word: str, whisper: Whisper, say: Callable[[str], Samples]) -> None:
    assert bare(whisper.text(say(word))) == bare(word)


@pytest.mark.parametrize("engine", ["whisper", "moonshine"])
def test_every_engine_in_the_seat_writes_what_was_said(
    engine: str, say: Callable[[str], Samples], request: pytest.FixtureRequest
) -> None:
    recogniser: Recogniser = request.getfixturevalue(engine)
    audio = say(SENTENCE)
    (segment, *more) = recogniser.segments(audio)
    heard = " ".join(s.text for s in (segment, *more))
    errors, words = word_errors(SENTENCE, heard)
    assert errors / words <= 0.2, heard
    assert heard == recogniser.text(audio)
    assert 0 <= segment.start_s < segment.end_s <= len(audio) / RATE


def test_a_turn_reads_the_same_whatever_was_heard_before(
    whisper: Whisper, say: Callable[[str], Samples]
) -> None:
    """With flash attention and another window, earlier speech leaks into a transcript."""
    hiss = (0.05 * np.random.default_rng(1).standard_normal(RATE)).astype(np.float32)
    turns = [say("Good morning."), say(SENTENCE), np.tile(say("I left my keys at the office."), 3), hiss]
    alone = [whisper.text(t) for t in turns]
    for i in (2, 0, 3, 1, 2, 1, 0):
        assert whisper.text(turns[i]) == alone[i]


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_pass_that_nobody_waits_for_is_abandoned_and_leaves_nothing(
    after: int, whisper: Whisper, say: Callable[[str], Samples]
) -> None:
    audio, asked = say(SENTENCE), 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    assert whisper.text(audio, cancelled) == ""
    assert asked == after + 1, "it went on after it was told to stop"
    assert "station" in whisper.text(audio)
    assert whisper.text(audio, lambda: False) == whisper.text(audio)


@pytest.mark.parametrize("engine", ["whisper", "moonshine"])
def test_silence_hum_and_numbers_that_are_none_give_no_text(
    engine: str, request: pytest.FixtureRequest
) -> None:
    recogniser: Recogniser = request.getfixturevalue(engine)
    t = np.arange(3 * RATE) / RATE
    hiss = 0.05 * np.random.default_rng(7).standard_normal(3 * RATE)
    for sound in (np.zeros(0), np.zeros(RATE), np.full(RATE, np.nan), 0.3 * np.sin(2 * np.pi * 50 * t), hiss):
        assert recogniser.text(sound.astype(np.float32)) == ""


@pytest.mark.shared_data
@pytest.mark.parametrize("engine", ["whisper", "moonshine"])
def test_noise_that_got_past_voice_activity_gives_no_text(
    engine: str, shared_data: Path, request: pytest.FixtureRequest
) -> None:
    recogniser: Recogniser = request.getfixturevalue(engine)
    noise = [c for c in shared(shared_data, "noise") if c["seconds"] <= 1.5 or c["id"] == "noise-koala"]
    assert len(noise) >= 6
    heard = {c["id"]: recogniser.text(read(shared_data / "audio" / c["path"])) for c in noise}
    assert not any(heard.values()), heard


@pytest.mark.shared_data
def test_strangers_are_understood_by_the_second_engine(shared_data: Path, moonshine: Recogniser) -> None:
    english = pytest.importorskip("whisper_normalizer.english", reason="whisper-normalizer is not installed")
    normalised = english.EnglishTextNormalizer()
    errors = words = 0
    for clip in [c for c in shared(shared_data, "speech") if 2 <= c["seconds"] <= 5][::7]:
        heard = moonshine.text(read(shared_data / "audio" / clip["path"]))
        wrong, of = word_errors(normalised(clip["transcript"]), normalised(heard))
        errors, words = errors + wrong, words + of
    assert words > 20
    assert errors / words <= 0.2


@pytest.mark.shared_data
def test_short_utterances_that_loop_in_a_tight_window_are_heard_once(
    shared_data: Path, whisper: Whisper
) -> None:
    """Each of these repeats itself to the end of its tokens in 256 encoder positions without the checks."""
    clips = {c["id"]: c for c in shared(shared_data, "speech")}
    for name in ("ps-goforward", "cheetah-en", "ls-6930-75918-0000"):
        heard = whisper.text(read(shared_data / "audio" / clips[name]["path"]))
        said = bare(clips[name]["transcript"]).split()
        assert len(bare(heard).split()) <= len(said) + 1, heard


def test_clipped_speech_is_understood(whisper: Whisper, say: Callable[[str], Samples]) -> None:
    loud = np.clip(say(SENTENCE) * 12, -1, 1)
    errors, words = word_errors(SENTENCE, whisper.text(loud))
    assert errors / words <= 0.3


def test_a_language_is_set_or_found(pulled: Callable[[str], Path], say: Callable[[str], Samples]) -> None:
    model, audio = pulled("whisper-base"), say("Good morning, my friend.")
    found = Whisper(model, "auto", threads=1).text(audio)
    assert "morning" in found.lower()
    assert Whisper(model, "de", threads=1).text(audio) != found


def test_an_english_model_refuses_another_language(pulled: Callable[[str], Path]) -> None:
    with pytest.raises(UnknownLanguage, match="whisper-base"):
        Whisper(pulled("whisper-tiny.en"), "de")


def test_an_engine_or_a_model_that_is_none_is_named(pulled: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(UnknownEngine, match="whisper, sherpa"):
        make_recogniser("vosk", tmp_path)
    pytest.importorskip("sherpa_onnx", reason="the extra sherpa is not installed")
    with pytest.raises(NotMoonshine, match="not a Moonshine model"):
        make_recogniser("sherpa", pulled("whisper-tiny.en"))


class _Counting:
    """A recogniser that tells how much sound it was given at once."""

    def __init__(self) -> None:
        self.longest = 0

    def segments(self, audio: Samples, cancelled: object = None) -> list[Any]:
        self.longest = max(self.longest, len(audio))
        return []

    def text(self, audio: Samples, cancelled: object = None) -> str:
        raise AssertionError("unused")


def test_hours_of_sound_are_taken_in_pieces_with_word_of_progress(
    vad: SileroVad, say: Callable[[str], Samples]
) -> None:
    said = np.concatenate([say(SENTENCE), np.zeros(RATE // 2, np.float32)])
    rows = 4 * TELL_EVERY // len(said)
    counting, told = _Counting(), list[float]()
    seconds, _ = transcript((said for _ in range(rows)), counting, vad, told.append)
    assert seconds == pytest.approx(rows * len(said) / RATE, abs=0.05)
    assert 0 < counting.longest <= 31 * RATE
    assert [round(t / 60) for t in told] == [1, 2, 3]


def test_a_file_cut_off_in_the_middle_is_written_as_far_as_it_goes(
    whisper: Whisper, vad: SileroVad, say: Callable[[str], Samples], tmp_path: Path
) -> None:
    soundfile.write(str(tmp_path / "x.wav"), say(SENTENCE), RATE)
    whole = (tmp_path / "x.wav").read_bytes()
    (tmp_path / "x.wav").write_bytes(whole[: len(whole) * 2 // 3])
    seconds, segments = transcript([read(tmp_path / "x.wav")], whisper, vad)
    assert seconds > 1
    assert "call" in " ".join(s.text for s in segments).lower()


def test_half_a_minute_of_speech_is_heard_to_its_end(whisper: Whisper, say: Callable[[str], Samples]) -> None:
    """Of a whole window Whisper makes several segments; only the first brings the time of its beginning."""
    sentences = [
        "The first train leaves at seven in the morning.",
        "My sister lives in a small house by the river.",
        "We bought apples, bread and a bottle of milk.",
        "The children played in the garden until the evening.",
        "He forgot his umbrella in the office again.",
        "The doctor asked me to come back on Thursday.",
        "There is a new book on the kitchen table.",
        "They are building a bridge over the old road.",
    ]
    spoken: list[str] = []
    sound = np.zeros(0, np.float32)
    for sentence in sentences * 2:
        if len(sound) > 24 * RATE:
            break
        sound = np.concatenate([sound, say(sentence), np.zeros(RATE // 2, np.float32)])
        spoken.append(sentence)
    assert 24 < len(sound) / RATE < 29
    errors, words = word_errors(
        " ".join(spoken), whisper.text(np.pad(sound, (0, max(0, 26 * RATE - len(sound)))))
    )
    assert errors / words <= 0.3
