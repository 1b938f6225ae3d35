"""Voice activity, end of turn, speech recognition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

import os1_models
from os1_edge.bench.stage import Reading, Setting, Stage, Unavailable, Work, timed
from os1_edge.bench.stages.clips import noisy_utterances, utterances
from os1_edge.bench.stages.requantise import requantised
from os1_edge.events import CHUNK, RATE, Samples
from os1_edge.framing import frames
from os1_edge.hear.asr import Whisper
from os1_edge.hear.endpoint import SmartTurn
from os1_edge.hear.recogniser import EngineMissing, make_recogniser
from os1_edge.hear.vad import SileroVad
from os1_edge.replay.measure import word_error_rate

LENGTHS_S = (1.5, 2.7, 3.9, 8.0)
"""Lengths of turns; of the first three the bundled morning has one, the last is several of them."""


@contextmanager
def _vad(_: Setting) -> Iterator[Work]:
    vad = SileroVad(os1_models.path("silero-vad"))
    chunks = [f.samples for f in frames([audio for _, audio in utterances()])]

    def work() -> Sequence[float]:
        vad.reset()
        return (timed(lambda: [vad.probability(c) for c in chunks]) / len(chunks),)

    yield work


@contextmanager
def _turn(_: Setting) -> Iterator[Work]:
    model = SmartTurn(os1_models.path("smart-turn-v3.2"))
    audio = utterances()[-1][1]
    yield lambda: (timed(lambda: model.complete(audio)),)


def long(seconds: float) -> tuple[str, Samples]:
    """Speech of about so many seconds: the utterance nearest, or several until it is reached."""
    said = utterances()
    if seconds <= len(said[-1][1]) / RATE:
        return min(said, key=lambda pair: abs(len(pair[1]) / RATE - seconds))
    text: list[str] = []
    parts: list[Samples] = []
    for words, audio in reversed(said):
        if sum(map(len, parts)) >= seconds * RATE:
            break
        text.append(words)
        parts.append(audio)
    return " ".join(text), np.concatenate(parts)


@contextmanager
def _asr(setting: Setting, *, model: str, seconds: float, engine: str, threads: int) -> Iterator[Work]:
    if threads > setting.threads:
        raise Unavailable(f"it keeps to {setting.threads} cores; see --threads")
    try:
        recogniser = make_recogniser(engine, os1_models.path(model), "en", threads or setting.threads)
    except EngineMissing as missing:
        raise Unavailable(str(missing)) from None
    _, audio = long(seconds)

    def work() -> Sequence[float]:
        ms = timed(lambda: recogniser.text(audio))
        return ms, ms / 1000 / (len(audio) / RATE)

    yield work


def asr(
    model: str, seconds: float, *, engine: str = "whisper", threads: int = 0, quick: bool = False
) -> Stage:
    """The final pass over an utterance. ``threads`` 0: all that are measured with."""
    told = f", {threads} thread{'s' * (threads > 1)}" if threads else ""
    label = f"asr {model}, {len(long(seconds)[1]) / RATE:.1f} s{told}"
    of: dict[str, str | int | float] = {"model": model, "seconds": seconds, "engine": engine}
    of |= {"threads": threads} if threads else {}
    return Stage(
        label,
        "hear",
        (
            Reading(label, of=of | {"figure": "final"}),
            Reading(f"{label}, rtf", "x", of=of | {"figure": "rtf"}),
        ),
        partial(_asr, model=model, seconds=seconds, engine=engine, threads=threads),
        repeats=10,
        within_s=3.0,
        ready_s=0.7,
        quick=quick,
    )


@contextmanager
def _words_wrong(setting: Setting, *, model: str, kind: str) -> Iterator[Work]:
    with TemporaryDirectory() as folder:
        path = os1_models.path(model)
        if kind:
            path = requantised(path, Path(folder) / f"{kind}.bin", kind)
        whisper = Whisper(path, threads=setting.threads)

        def work() -> Sequence[float]:
            began = perf_counter()
            pairs = [(said, whisper.text(audio)) for said, audio in utterances()]
            spent = perf_counter() - began
            seconds = sum(len(audio) for _, audio in utterances()) / RATE
            hard = [(said, whisper.text(audio)) for said, audio in noisy_utterances()]
            wrong, wrong_in_noise = (100 * (word_error_rate(some) or 0.0) for some in (pairs, hard))
            return wrong, wrong_in_noise, spent / seconds

        yield work


def words_wrong(model: str, kind: str = "", *, quick: bool = False) -> Stage:
    """Word error rate over the bundled utterances, as they are and in noise, and the seconds that a second of
    speech took; as the model was pulled, or rounded to ``kind``."""
    name = f"asr {model}{' as ' + kind if kind else ''}, bundled set"
    of: dict[str, str | int | float] = {"model": model, "quantisation": kind or "as pulled"}
    return Stage(
        name,
        "hear",
        (
            Reading(f"{name}, words wrong", "%", of=of | {"figure": "wer"}),
            Reading(f"{name}, words wrong in noise", "%", of=of | {"figure": "wer in noise"}),
            Reading(f"{name}, rtf", "x", of=of | {"figure": "rtf of set"}),
        ),
        partial(_words_wrong, model=model, kind=kind),
        repeats=3,
        within_s=8.0,
        ready_s=1.0,
        warm=0,
        quick=quick,
    )


def stages() -> list[Stage]:
    """All of them."""
    return [
        Stage("vad", "hear", (Reading("vad, a chunk of 32 ms", of={"chunk": CHUNK}),), _vad, within_s=0.8),
        Stage("end of turn", "hear", (Reading("end of turn, a pause judged"),), _turn, within_s=1.0),
        *(asr("whisper-tiny.en", seconds, quick=seconds == 2.7) for seconds in LENGTHS_S),
        *(asr("whisper-tiny.en", 2.7, threads=n) for n in (1, 2, 4)),
        asr("whisper-base", 2.7),
        asr("moonshine-base", 2.7, engine="sherpa"),
        words_wrong("whisper-tiny.en"),
        words_wrong("whisper-tiny.en", "f16"),
        words_wrong("whisper-tiny.en", "q5_1"),
        words_wrong("whisper-base"),
    ]
