"""The log-mel front end of the end-of-turn model, against a slow reference written from the definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from os1_edge.events import RATE
from os1_edge.hear.endpoint import HEARD, SPEECH, NotSmartTurn, SmartTurn
from os1_edge.hear.logmel import HOP, MELS, log_mel


def slow_log_mel(audio: np.ndarray) -> np.ndarray:
    """The same in double precision, each step spelt out; the transform is a sum of sines."""
    x = audio.astype(np.float64)
    x = (x - x.mean()) / math.sqrt(x.var() + 1e-7)
    mirrored = np.concatenate([x[200:0:-1], x, x[-2:-202:-1]])
    n = np.arange(400)
    window = 0.5 * (1 - np.cos(2 * np.pi * n / 400))
    angles = 2 * np.pi * np.outer(n, np.arange(201)) / 400
    filters = np.array([[slaney(m, k * RATE / 400) for k in range(201)] for m in range(MELS)])
    columns = []
    for i in range(len(audio) // HOP):
        frame = mirrored[i * HOP : i * HOP + 400] * window
        power = (frame @ np.cos(angles)) ** 2 + (frame @ np.sin(angles)) ** 2
        columns.append(np.log10(np.maximum(filters @ power, 1e-10)))
    energy = np.stack(columns, axis=1)
    return (np.maximum(energy, energy.max() - 8) + 4) / 4


def slaney(filter_number: int, hertz: float) -> float:
    """The weight of the filter at a frequency: a triangle of area 1 between its neighbours' centres."""
    top = 15 + 27 * math.log(8) / math.log(6.4)
    low, centre, high = (mel_to_hertz(top * (filter_number + i) / (MELS + 1)) for i in range(3))
    inside = min((hertz - low) / (centre - low), (high - hertz) / (high - centre))
    return max(0.0, inside) * 2 / (high - low)


def mel_to_hertz(mel: float) -> float:
    return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def sounds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    t = np.arange(RATE) / RATE
    return {
        "noise": rng.normal(0, 0.1, RATE),
        "tones": 0.3 * np.sin(2 * np.pi * 440 * t) + 0.05 * np.sin(2 * np.pi * 3000 * t),
        "sweep": 0.5 * np.sin(2 * np.pi * (50 * t + 3900 * t**2)),
        "silence before a word": np.concatenate([np.zeros(RATE // 2), rng.normal(0, 0.2, RATE // 2)]),
        "click": np.eye(1, RATE, 5000)[0] * 0.9,
        "silence": np.zeros(RATE),
        "offset": np.full(RATE, 0.3) + rng.normal(0, 0.01, RATE),
        "faint": rng.normal(0, 1e-5, RATE),
    }


@pytest.mark.parametrize("name", sounds())
def test_the_model_sees_what_its_training_saw(name: str) -> None:
    audio = sounds()[name].astype(np.float32)
    got, reference = log_mel(audio), slow_log_mel(audio)
    assert got.shape == (MELS, RATE // HOP)
    assert got.dtype == np.float32
    assert np.abs(got - reference).max() < 2e-4


def test_eight_seconds_are_eight_hundred_frames() -> None:
    assert log_mel(np.zeros(HEARD, np.float32)).shape == (80, 800)


def test_as_whispers_own_feature_extractor() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    extractor = transformers.WhisperFeatureExtractor(chunk_length=8)
    audio = np.concatenate([np.zeros(3 * RATE), *(s for s in sounds().values())])[:HEARD].astype(np.float32)
    (reference,) = extractor(
        audio, sampling_rate=RATE, max_length=HEARD, do_normalize=True, return_tensors="np"
    ).input_features
    assert np.abs(log_mel(audio) - reference).max() < 2e-4


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07" + b"\x00" * 100])
def test_a_file_that_is_no_model_is_told_with_its_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(content)
    with pytest.raises(NotSmartTurn, match=r"x\.onnx: not a Smart Turn model"):
        SmartTurn(tmp_path / "x.onnx")


@pytest.mark.models
def test_the_model_of_another_job_is_told(pulled: Callable[[str], Path]) -> None:
    with pytest.raises(NotSmartTurn, match="not a Smart Turn model"):
        SmartTurn(pulled("silero-vad"))


@pytest.mark.models
@pytest.mark.parametrize("samples", [0, 1, 100, RATE, 8 * RATE, 31 * RATE])
def test_a_turn_of_any_length_is_judged(samples: int, pulled: Callable[[str], Path]) -> None:
    model = SmartTurn(pulled("smart-turn-v3.2"))
    audio = np.random.default_rng(1).normal(0, 0.1, samples).astype(np.float32)
    assert 0 <= model.complete(audio) <= 1


@pytest.mark.models
def test_numbers_that_are_none_are_silence_to_the_model(pulled: Callable[[str], Path]) -> None:
    model = SmartTurn(pulled("smart-turn-v3.2"))
    voice = np.random.default_rng(1).normal(0, 0.1, RATE).astype(np.float32)
    broken, silent = voice.copy(), voice.copy()
    broken[100:300], silent[100:300] = np.nan, 0
    broken[500], silent[500] = np.inf, 0
    assert model.complete(broken) == model.complete(silent)


@pytest.mark.models
def test_silence_is_put_before_a_short_turn_not_after_it(pulled: Callable[[str], Path]) -> None:
    model = SmartTurn(pulled("smart-turn-v3.2"), speech=HEARD)
    turn = np.random.default_rng(1).normal(0, 0.1, 2 * RATE).astype(np.float32)
    assert model.complete(turn) == model.complete(np.pad(turn, (6 * RATE, 0)))
    assert model.complete(turn) != model.complete(np.pad(turn, (0, 6 * RATE)))


@pytest.mark.models
def test_of_a_long_turn_the_last_words_are_judged(pulled: Callable[[str], Path]) -> None:
    model = SmartTurn(pulled("smart-turn-v3.2"))
    last = np.random.default_rng(1).normal(0, 0.1, SPEECH).astype(np.float32)
    before = np.random.default_rng(2).normal(0, 0.3, 20 * RATE).astype(np.float32)
    assert model.complete(np.concatenate([before, last])) == model.complete(last)
    whole = SmartTurn(pulled("smart-turn-v3.2"), speech=HEARD)
    assert whole.complete(np.concatenate([before, last])) != whole.complete(last)
