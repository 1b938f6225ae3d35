"""The mel filterbank that Whisper was trained with, computed instead of shipped.

Follows `librosa.filters.mel(sr=16000, n_fft=400, n_mels=80)`: Slaney's mel scale (linear below
1 kHz, logarithmic above) with Slaney's area normalisation, as in openai/whisper's
`assets/mel_filters.npz`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ = 16_000
FFT_SAMPLES = 400

_HZ_PER_MEL = 200.0 / 3
_LOG_FROM_HZ = 1000.0
_LOG_FROM_MEL = _LOG_FROM_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27.0


def hz_to_mel(hertz: float) -> float:
    """Slaney mel of a frequency in hertz."""
    if hertz < _LOG_FROM_HZ:
        return hertz / _HZ_PER_MEL
    return _LOG_FROM_MEL + math.log(hertz / _LOG_FROM_HZ) / _LOG_STEP


def mel_to_hz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Frequencies in hertz of Slaney mels."""
    linear = _HZ_PER_MEL * mels
    logarithmic = _LOG_FROM_HZ * np.exp(_LOG_STEP * (mels - _LOG_FROM_MEL))
    return np.where(mels >= _LOG_FROM_MEL, logarithmic, linear)


def mel_filters(bands: int = 80) -> npt.NDArray[np.float32]:
    """Triangular filters, float32, shape (bands, FFT_SAMPLES // 2 + 1)."""
    bins = np.fft.rfftfreq(n=FFT_SAMPLES, d=1.0 / SAMPLE_RATE_HZ)
    edges = mel_to_hz(np.linspace(0.0, hz_to_mel(SAMPLE_RATE_HZ / 2), bands + 2))
    widths = np.diff(edges)
    ramps = np.subtract.outer(edges, bins)
    filters = np.zeros((bands, bins.size), dtype=np.float32)
    for band in range(bands):
        rising = -ramps[band] / widths[band]
        falling = ramps[band + 2] / widths[band + 1]
        filters[band] = np.maximum(0, np.minimum(rising, falling))
    # In two steps through float32, as librosa does: the last bit of some values depends on it.
    filters *= (2.0 / (edges[2:] - edges[:-2]))[:, np.newaxis]
    return filters
