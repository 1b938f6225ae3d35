"""What the stages work on: the bundled morning's own speech, pictures and words."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from os1_edge.bench.room import loudness
from os1_edge.device.session import Session, load_session
from os1_edge.device.sound import read
from os1_edge.events import RATE, Image, Samples
from os1_edge.see.image import load_image

MARGIN_S = 0.2
"""Kept before and behind each utterance, as the detector keeps it."""


@cache
def morning() -> Session:
    """The bundled session."""
    return load_session(Path(str(files("os1_edge") / "demo" / "morning")))


@cache
def utterances() -> list[tuple[str, Samples]]:
    """(what is said, 16 kHz mono) of each utterance, the shortest first."""
    session = morning()
    out = []
    for said in session.file.utterance:
        clip = max((m for m in session.file.microphone if m.at_s <= said.start_s), key=lambda m: m.at_s)
        sound = read(session.path(clip.file))
        first, last = said.start_s - clip.at_s - MARGIN_S, said.end_s - clip.at_s + MARGIN_S
        part = sound[max(0, round(first * RATE)) : round(last * RATE)]
        out.append((said.text, np.ascontiguousarray(part, np.float32)))
    return sorted(out, key=lambda pair: len(pair[1]))


def in_noise(audio: Samples, seed: int) -> Samples:
    """``audio`` under pink noise as loud as itself (0 dB): the synthetic voice alone is too easy to tell one
    recogniser from another by. The same seed gives the same noise."""
    white = np.fft.rfft(np.random.default_rng(seed).standard_normal(len(audio)))
    pink = np.fft.irfft(white / np.sqrt(np.maximum(1, np.arange(len(white)))), len(audio))
    loud = loudness(audio) / max(float(np.sqrt(np.mean(pink**2))), 1e-9)
    return np.asarray(audio + loud * pink, np.float32)


@cache
def noisy_utterances() -> list[tuple[str, Samples]]:
    """Those of ``utterances`` in noise."""
    return [(text, in_noise(audio, seed)) for seed, (text, audio) in enumerate(utterances())]


@cache
def pictures() -> list[Image]:
    """The scene frames, as they are."""
    session = morning()
    return [load_image(session.path(frame.file)) for frame in session.file.frame]
