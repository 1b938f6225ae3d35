"""Turns of real voices: speech found where people marked it, and wearers who are not cut off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from os1_edge.bench.turns import measure, shared_clips, together
from os1_edge.device.sound import blocks
from os1_edge.events import RATE
from os1_edge.hear.endpoint import SmartTurn
from os1_edge.hear.spans import speaks, speech_spans
from os1_edge.hear.vad import SileroVad
from os1_edge.speak.tts import Piper

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def vad(pulled: Callable[[str], Path]) -> SileroVad:
    return SileroVad(pulled("silero-vad"))


@pytest.fixture(scope="module")
def model(pulled: Callable[[str], Path]) -> SmartTurn:
    return SmartTurn(pulled("smart-turn-v3.2"))


def clips(shared: Path) -> list[dict[str, Any]]:
    lines = (shared / "audio" / "manifest.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def grid(spans: list[tuple[float, float]], seconds: float) -> np.ndarray:
    """Each 10 ms: speech or not."""
    out = np.zeros(int(seconds * 100), bool)
    for start, end in spans:
        out[int(start * 100) : int(end * 100)] = True
    return out


@pytest.mark.shared_data
def test_speech_is_found_better_than_by_the_detector_alone(shared_data: Path, vad: SileroVad) -> None:
    """0.907 by plain hysteresis over the detector's own probabilities."""
    right = wrong = 0
    for clip in clips(shared_data):
        if not clip.get("labels"):
            continue
        folder = shared_data / "audio"
        marked = grid(json.loads((folder / clip["labels"]).read_text("utf-8")), clip["seconds"])
        found = grid(speech_spans(blocks(folder / clip["path"]), vad)[1], clip["seconds"])
        right += 2 * int((marked & found).sum())
        wrong += int((marked ^ found).sum())
    assert right / (right + wrong) >= 0.93


@pytest.mark.shared_data
def test_nobody_speaks_in_noise(shared_data: Path, vad: SileroVad) -> None:
    noises = [c for c in clips(shared_data) if c["kind"] == "noise"]
    assert len(noises) > 10
    for clip in noises:
        sound = np.concatenate(list(blocks(shared_data / "audio" / clip["path"])))
        assert not speaks(sound, vad), clip["id"]


@pytest.mark.shared_data
def test_pauses_inside_sentences_cut_off_fewer_than_half_as_often_and_no_later(
    shared_data: Path, vad: SileroVad, model: SmartTurn
) -> None:
    """Beside a rule of 0.5 s of silence."""
    tallies, counts, _ = measure(shared_clips(shared_data), vad, model, takes=1, after=RATE // 10)
    assert counts["pauses"] >= 60
    for way in ("ours", "learned"):
        rule, mine = (together(tallies["first"][w], tallies["second"][w]).to_dict() for w in ("rule", way))
        assert mine["in_pauses"] < rule["in_pauses"] / 2
        assert mine["cut_offs"] < rule["cut_offs"] * 0.7
        assert mine["median_delay_s"] <= rule["median_delay_s"]


def said(voice: Piper, text: str, share: float) -> np.ndarray:
    """The first ``share`` of a spoken text, with 0.3 s of silence before it and 160 ms after."""
    sound = soxr.resample(voice.say(text), voice.rate, RATE)
    last = int(np.flatnonzero(np.abs(sound) > 0.01)[-1]) + 1
    return np.pad(sound[: int(last * share)], (3 * RATE // 10, 16 * RATE // 100)).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "broken_off"),
    [("What is the capital of France?", 0.6), ("Remind me to call Anna tomorrow morning at nine.", 0.5)],
)
def test_a_sentence_sounds_finished_and_one_that_breaks_off_does_not(
    text: str, broken_off: float, pulled: Callable[[str], Path], model: SmartTurn
) -> None:
    voice = Piper(pulled("piper-joe"))
    assert model.complete(said(voice, text, 1.0)) > 0.88
    assert model.complete(said(voice, text, broken_off)) < 0.5
