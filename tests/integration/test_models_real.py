"""Pulled models, as they are: whole by hash, and the converted Whisper against what was really said."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

import os1_models
from os1_models.measure_whisper import SAMPLE_RATE_HZ, audio_context, read_clips, read_wav, word_errors

CLIPS, LONGEST_S = 12, 8.0
LARGEST_WER = 0.20
"""Of the first dozen short clips; the whole set comes to half of this (docs/models.md)."""
LARGEST_BUNDLED_WER = 0.10
"""Of the demo session's synthetic utterances."""


def shared_data() -> Path:
    """`OS1_SHARED_DATA`, else `shared/data` beside the checkout."""
    override = os.environ.get("OS1_SHARED_DATA")
    return Path(override) if override else Path(__file__).resolve().parents[3] / "shared" / "data"


def pulled(name: str) -> Path:
    try:
        return os1_models.path(name)
    except os1_models.ModelMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.models
def test_what_is_pulled_is_whole() -> None:
    here = [model.name for model in os1_models.load_manifest().models if os1_models.installed(model.name)]
    if not here:
        pytest.skip("no model is pulled; run: os1 models pull")
    assert [str(problem) for problem in os1_models.verify(here)] == []


@pytest.mark.models
def test_the_object_labels_are_the_23_and_the_background() -> None:
    labels = pulled("objects-ssd").with_name("labels.txt").read_text().splitlines()
    assert len(labels) == 24
    assert labels[0] == "???"
    assert {"Person", "Laptop", "Mug", "Book", "Car"} <= set(labels)


def heard_wrongly(weights: Path, clips: Sequence[tuple[Path, str]]) -> float:
    """Word error rate of a Whisper file on clips and what was said in them."""
    from pywhispercpp.model import Model
    from whisper_normalizer.english import EnglishTextNormalizer

    normalise = EnglishTextNormalizer()
    # One thread: with two, on a machine whose cores others use too, this took thirty times as long.
    model = Model(
        str(weights), redirect_whispercpp_logs_to=None, n_threads=1, suppress_nst=True, print_progress=False
    )
    errors = words = 0
    for path, transcript in clips:
        samples = read_wav(path)
        heard = model.transcribe(samples, audio_ctx=audio_context(len(samples) / SAMPLE_RATE_HZ))
        said = normalise(transcript).split()
        errors += word_errors(said, normalise(" ".join(segment.text for segment in heard)).split())
        words += len(said)
    return errors / words


@pytest.mark.models
def test_the_converted_whisper_hears_the_bundled_morning(demo_morning: Path) -> None:
    session = tomllib.loads((demo_morning / "session.toml").read_text("utf-8"))
    clips = [
        (demo_morning / microphone["file"], utterance["text"])
        for microphone, utterance in zip(session["microphone"], session["utterance"], strict=True)
    ]
    assert heard_wrongly(pulled("whisper-tiny.en"), clips) <= LARGEST_BUNDLED_WER


@pytest.mark.models
@pytest.mark.shared_data
def test_the_converted_whisper_hears_what_was_said() -> None:
    if not (shared_data() / "audio" / "manifest.jsonl").exists():
        pytest.skip("the labelled speech is not beside the checkout; set OS1_SHARED_DATA")
    short = [clip for clip in read_clips(shared_data(), None) if clip.seconds <= LONGEST_S][:CLIPS]
    wrong = heard_wrongly(pulled("whisper-tiny.en"), [(clip.path, clip.transcript) for clip in short])
    assert wrong < LARGEST_WER
