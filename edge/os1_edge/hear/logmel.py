"""Log-mel features as Whisper's feature extractor makes them, for the end-of-turn model.

Follows ``WhisperFeatureExtractor(chunk_length=8)`` of transformers with ``do_normalize=True``: the waveform
is brought to zero mean and unit variance first; then frames of 400 samples every 160, centred, the edges
mirrored; a periodic Hann window; 80 triangular filters on Slaney's mel scale, each of unit area; log10, at
most 8 below the loudest, shifted and scaled to about -1..1. In single precision, which differs from the
reference's by less than 1e-5.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from os1_edge.events import RATE, Samples

WINDOW = 400
"""Samples of a frame (25 ms)."""

HOP = 160
"""Samples from frame to frame (10 ms)."""

MELS = 80
"""Filters."""

AT_A_TIME = 10
"""Frames of one matrix product."""

FLOOR = 1e-10
"""Least mel energy: the logarithm of nothing is not a number."""

RANGE = 8.0
"""Decades below the loudest at which quiet is cut off."""

VARIANCE_FLOOR = 1e-7
"""Added to the variance, as the reference does: silence stays silence."""

Features = NDArray[np.float32]


def log_mel(audio: Samples) -> Features:
    """Features of ``audio`` (shape (n,), n a multiple of 1600 above 0; 16 kHz): shape (80, n / 160)."""
    samples = (audio - audio.mean()) / np.sqrt(audio.var() + VARIANCE_FLOOR)
    padded = np.pad(samples.astype(np.float32), WINDOW // 2, mode="reflect")
    # The reference computes one frame more and drops it.
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[: len(audio) : HOP]
    window, filters = _tables()
    spectrum = np.fft.rfft(frames * window, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    # A few frames at a time: numpy's library of matrices starts threads for larger products, which then spin.
    mel = (power.reshape(-1, AT_A_TIME, WINDOW // 2 + 1) @ filters.T).reshape(-1, MELS).T
    energy = np.log10(np.maximum(mel, np.float32(FLOOR)))
    clipped = np.maximum(energy, energy.max() - np.float32(RANGE))
    features: Features = (clipped + np.float32(4)) / np.float32(4)
    return features


@cache
def _tables() -> tuple[Samples, Samples]:
    """The window, shape (400,), and the mel filters, shape (80, 201)."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    edges = _hertz(np.linspace(0, _mel(np.float64(RATE / 2)), MELS + 2))
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    low, centre, high = (edges[i : i + MELS, None] for i in range(3))
    rising, falling = (bins - low) / (centre - low), (high - bins) / (high - centre)
    filters = np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)
    return window.astype(np.float32), filters.astype(np.float32)


# Slaney's scale: linear to 1000 Hz (15 mel), from there 27 mel for each factor of 6.4.


def _mel(hertz: np.float64) -> np.float64:
    return np.float64(15 + 27 * np.log(hertz / 1000) / np.log(6.4))


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
