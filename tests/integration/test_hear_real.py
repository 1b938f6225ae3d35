"""Real ears and a real voice: what OS-1 says it also hears, and no sound file makes it hang."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from os1_edge.cli import main
from os1_edge.config import Config
from os1_edge.device.sound import blocks
from os1_edge.events import RATE
from os1_edge.faculties import model_names
from os1_edge.hear.asr import Whisper
from os1_edge.hear.files import speech_spans, transcript
from os1_edge.hear.vad import SileroVad
from os1_edge.replay.measure import word_errors
from os1_edge.speak.tts import Piper

pytestmark = [pytest.mark.models, pytest.mark.timeout(120)]

SENTENCE = "The meeting with Doctor Lee is on Friday in the old library."


@pytest.fixture(scope="module", autouse=True)
def _models(pulled: Callable[[str], Path]) -> None:
    """Every test here needs the ears and the voice."""
    for name in ("silero-vad", "whisper-tiny.en", "piper-joe"):
        pulled(name)


@pytest.fixture(scope="module")
def vad(pulled: Callable[[str], Path]) -> SileroVad:
    return SileroVad(pulled("silero-vad"))


@pytest.fixture(scope="module")
def whisper(pulled: Callable[[str], Path]) -> Whisper:
    # One thread: with two, on a machine whose cores others use too, this takes many times as long.
    return Whisper(pulled("whisper-tiny.en"), threads=1)


@pytest.fixture(scope="module")
def piper(pulled: Callable[[str], Path]) -> Piper:
    return Piper(pulled("piper-joe"))


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory, pulled: Callable[[str], Path]) -> Path:
    """The sentence, spoken by ``os1 say``."""
    pulled("piper-joe")
    path = tmp_path_factory.mktemp("said") / "said.wav"
    result = CliRunner().invoke(main, ["say", SENTENCE, "--out", str(path)])
    assert result.exit_code == 0, result.output
    return path


def os1_json(*words: str | Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, [*(str(w) for w in words), "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_what_os1_says_it_hears_again(spoken: Path) -> None:
    (row,) = os1_json("transcribe", "--threads", "1", spoken)
    errors, words = word_errors(SENTENCE, row["text"])
    assert errors / words <= 0.2, row["text"]
    assert set(row) == {"file", "seconds", "text", "segments", "rtf"}
    assert row["seconds"] == pytest.approx(soundfile.info(str(spoken)).duration, abs=0.01)
    for segment in row["segments"]:
        assert 0 <= segment["start_s"] < segment["end_s"] <= row["seconds"] + 1e-6


@pytest.mark.parametrize(
    ("rate", "channels", "subtype", "format"),
    [
        (8000, 1, "PCM_16", "WAV"),
        (48_000, 2, "PCM_24", "WAV"),
        (44_100, 1, "PCM_16", "FLAC"),
        (16_000, 1, "FLOAT", "WAV"),
    ],
)
def test_speech_of_any_rate_and_format_is_understood(
    rate: int, channels: int, subtype: str, format: str, spoken: Path, tmp_path: Path
) -> None:
    import soxr

    samples, from_rate = soundfile.read(str(spoken), dtype="float32")
    samples = soxr.resample(samples, from_rate, rate)
    path = tmp_path / f"x.{format.lower()}"
    soundfile.write(str(path), np.stack([samples] * channels, axis=1), rate, subtype, format=format)
    (row,) = os1_json("transcribe", "--threads", "1", path)
    errors, words = word_errors(SENTENCE, row["text"])
    assert errors / words <= 0.25, row["text"]
    (found,) = os1_json("vad", path)
    assert found["speech"]
    assert found["speech"][-1][1] <= found["seconds"]


def test_numbers_that_are_none_in_the_middle_of_speech_are_silence(spoken: Path, tmp_path: Path) -> None:
    samples, rate = soundfile.read(str(spoken), dtype="float32")
    samples = np.concatenate([samples, np.full(rate, np.nan, np.float32), np.full(rate, np.inf, np.float32)])
    soundfile.write(str(tmp_path / "x.wav"), samples, rate, "FLOAT")
    (row,) = os1_json("transcribe", "--threads", "1", tmp_path / "x.wav")
    assert "library" in row["text"].lower()
    (found,) = os1_json("vad", tmp_path / "x.wav")
    assert found["speech"][-1][1] < found["seconds"] - 1.5


def test_a_file_of_no_length_has_no_speech_and_no_text(tmp_path: Path) -> None:
    soundfile.write(str(tmp_path / "x.wav"), np.zeros(0, np.float32), RATE)
    (row,) = os1_json("transcribe", tmp_path / "x.wav")
    assert (row["text"], row["segments"], row["seconds"]) == ("", [], 0.0)
    assert os1_json("vad", tmp_path / "x.wav") == [
        {"file": str(tmp_path / "x.wav"), "seconds": 0.0, "speech": []}
    ]


@pytest.mark.parametrize("samples", [1, 100, 511, 512, 1600])
def test_a_blink_of_sound_is_no_word(samples: int, whisper: Whisper, vad: SileroVad) -> None:
    click = np.full(samples, 0.5, np.float32)
    assert transcript([click], whisper, vad)[1] == []
    assert isinstance(whisper.text(click), str)  # whisper.cpp refuses less than 100 ms: it is filled up


@pytest.mark.parametrize("command", ["vad", "transcribe"])
@pytest.mark.parametrize(
    "content", [b"", b"RIFF", b"RIFF\x10\x00\x00\x00WAVEfmt ", b"\x00" * 5000, b"fLaC" + b"\xff" * 5000]
)
def test_a_corrupt_file_is_one_line(command: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(content)
    result = CliRunner().invoke(main, [command, str(tmp_path / "x.wav")])
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"os1: {tmp_path / 'x.wav'}: ")


@pytest.mark.parametrize("model", ["silero-vad", "qwen2.5-0.5b", "nonsense"])
def test_a_model_of_another_job_cannot_hear(
    model: str, spoken: Path, tmp_path: Path, pulled: Callable[[str], Path]
) -> None:
    """whisper.cpp would end the whole process."""
    if model != "nonsense":
        pulled(model)
    result = CliRunner().invoke(main, ["transcribe", str(spoken), "--model", model])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "not a Whisper model" in line or "no model is called 'nonsense'" in line


@pytest.mark.parametrize("setting", ["hear.asr_model", "converse.model", "speak.voice"])
def test_a_model_of_another_job_in_the_settings_is_one_line(
    setting: str, tmp_path: Path, pulled: Callable[[str], Path]
) -> None:
    for name in model_names(Config()):
        pulled(name)
    table, key = setting.split(".")
    (tmp_path / "my.toml").write_text(f'[{table}]\n{key} = "silero-vad"\n')
    words = ["demo", "--out", str(tmp_path / "out"), "--config", str(tmp_path / "my.toml")]
    result = CliRunner(env={"OS1_KEY_FILE": str(tmp_path / "key")}).invoke(main, words)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    (line,) = result.stderr.splitlines()
    assert "silero" in line


def test_of_two_files_the_good_one_is_still_answered(spoken: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["vad", "--json", str(spoken), str(tmp_path / "gone.wav")])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["speech"]
    assert "no such file" in result.stderr


@pytest.mark.parametrize("words", [("",), ("😀",), ("...",)])
def test_nothing_to_say_is_told(words: tuple[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["say", *words, "--out", str(tmp_path / "x.wav")])
    assert result.exit_code == 1
    assert "nothing to say" in result.stderr
    assert not (tmp_path / "x.wav").exists()


def test_speech_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["say", "hi", "--out", str(tmp_path / "gone" / "x.wav")])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [f"os1: {tmp_path / 'gone' / 'x.wav'}: No such file or directory"]


def test_speech_is_written_as_wav_whatever_the_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["say", "hi", "--out", str(tmp_path / "x.sound")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "x.sound").read_bytes()[:4] == b"RIFF"


def test_the_same_clause_sounds_the_same_after_a_restart(pulled: Callable[[str], Path]) -> None:
    first, second = (Piper(pulled("piper-joe")).say("Good morning.") for _ in range(2))
    assert np.array_equal(first, second)


def test_a_faster_voice_is_shorter(piper: Piper, pulled: Callable[[str], Path]) -> None:
    fast = Piper(pulled("piper-joe"), speed=2.0)
    assert 0.35 < len(fast.say(SENTENCE)) / len(piper.say(SENTENCE)) < 0.7


def test_silence_and_hum_hold_no_speech(vad: SileroVad) -> None:
    t = np.arange(20 * RATE) / RATE
    rng = np.random.default_rng(1)
    for sound in (np.zeros(20 * RATE), 0.3 * np.sin(2 * np.pi * 50 * t), 0.02 * rng.standard_normal(len(t))):
        assert speech_spans([sound.astype(np.float32)], vad)[1] == []


def test_speech_after_a_long_quiet_is_found(spoken: Path, vad: SileroVad) -> None:
    """The detector's state drifts in long streams; it starts anew after half a minute of quiet."""
    quiet = [0.001 * np.random.default_rng(i).standard_normal(RATE).astype(np.float32) for i in range(120)]
    _, spans = speech_spans([*quiet, *blocks(spoken)], vad)
    assert spans
    assert spans[0][0] == pytest.approx(120, abs=0.5)


def test_a_recording_longer_than_whispers_window_is_cut_at_pauses(
    spoken: Path, whisper: Whisper, vad: SileroVad
) -> None:
    said = np.concatenate([*blocks(spoken), np.zeros(RATE, np.float32)])
    times = 35 * RATE // len(said) + 1
    seconds, segments = transcript([said] * times, whisper, vad)
    assert seconds > 28
    assert " ".join(s.text for s in segments).lower().count("library") >= times - 1
    assert all(a.start_s <= b.start_s for a, b in pairwise(segments))
    assert segments[-1].start_s > 28


# Labelled recordings of real people and places.


def clips(shared: Path, kind: str) -> list[dict[str, Any]]:
    lines = (shared / "audio" / "manifest.jsonl").read_text("utf-8").splitlines()
    return [row for line in lines if (row := json.loads(line))["kind"] == kind]


@pytest.mark.shared_data
def test_speech_is_found_where_people_marked_it(shared_data: Path, vad: SileroVad) -> None:
    right = missed = invented = 0
    for clip in clips(shared_data, "vad"):
        folder = shared_data / "audio"
        marked = json.loads((folder / clip["labels"]).read_text("utf-8"))
        truth, found = (np.zeros(int(clip["seconds"] * 100) + 1, bool) for _ in range(2))
        for mask, spans in ((truth, marked), (found, speech_spans(blocks(folder / clip["path"]), vad)[1])):
            for a, b in spans:
                mask[round(a * 100) : round(b * 100)] = True
        right += int((truth & found).sum())
        missed += int((truth & ~found).sum())
        invented += int((~truth & found).sum())
    f1 = 2 * right / (2 * right + missed + invented)
    assert f1 >= 0.85, f1


@pytest.mark.shared_data
def test_strangers_are_understood(shared_data: Path, whisper: Whisper, vad: SileroVad) -> None:
    english = pytest.importorskip("whisper_normalizer.english", reason="whisper-normalizer is not installed")
    normalise = english.EnglishTextNormalizer()
    short = sorted(clips(shared_data, "speech"), key=lambda c: c["id"])
    short = [c for c in short if 3 <= c["seconds"] <= 9 and c["id"].startswith("ls-")][::4][:5]
    assert len(short) == 5
    errors = words = 0
    for clip in short:
        segments = transcript(blocks(shared_data / "audio" / clip["path"]), whisper, vad)[1]
        wrong, of = word_errors(normalise(clip["transcript"]), normalise(" ".join(s.text for s in segments)))
        errors, words = errors + wrong, words + of
    assert errors / words <= 0.2, f"{errors} of {words} words wrong"


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["noise-silero-silence", "noise-office", "noise-am-friction0", "noise-ding2"]
)
def test_where_nobody_speaks_nothing_is_written(
    name: str, shared_data: Path, whisper: Whisper, vad: SileroVad
) -> None:
    (clip,) = [c for c in clips(shared_data, "noise") if c["id"] == name]
    segments = transcript(blocks(shared_data / "audio" / clip["path"]), whisper, vad)[1]
    assert " ".join(s.text for s in segments) == ""
