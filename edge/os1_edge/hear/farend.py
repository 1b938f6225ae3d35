"""What the speaker plays, at the microphone's rate and on the session's sample clock.

Resampled by a short windowed sinc of our own: soxr's stream gives its output up to 40 ms late (measured,
22 050 to 16 000; 22 ms at its low quality), and a reference that comes after its echo cancels nothing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from os1_edge.events import CHUNK, RATE, Samples

KEPT = 8 * RATE
"""Samples (8 s) kept: blocks come a little ahead, echoes up to 0.5 s after."""

JOINS = RATE // 125
"""Blocks that follow each other within 8 ms are one stream: the player's clock jitters."""

LOUDEST_OVER = 13 * CHUNK
"""The reference level is the loudest of the last 0.4 s, as the echo comes up to 0.3 s late."""

SIDE = 12
"""Zero crossings of the sinc on each side: 0.75 ms of delay, 60 dB of what aliases are gone."""


class Resampler:
    """One stream at ``rate`` to 16 kHz, block by block, with under a millisecond held back."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        step = Fraction(rate, RATE)
        self._step, self._phases = step, step.denominator
        stretch = max(1.0, float(step))
        self._side = int(np.ceil(SIDE * stretch))
        # Output k lies at input k * step; its whole part says where the taps begin, the rest which taps.
        rests = np.array([float(k * step % 1) for k in range(self._phases)])
        x = (np.arange(-self._side + 1, self._side + 1)[None] - rests[:, None]) / stretch
        window = 0.5 + 0.5 * np.cos(np.pi * np.clip(x / SIDE, -1, 1))
        self._taps = (np.sinc(x * 0.95) * 0.95 * window / stretch).astype(np.float32)
        self._in = np.zeros(self._side - 1, np.float32)
        self._first = -(self._side - 1)
        """Input index of the first sample held."""
        self._made = 0

    def add(self, samples: Samples) -> Samples:
        """The next input; returns what output it completes."""
        self._in = np.concatenate([self._in, samples])
        end = self._first + len(self._in)
        last = int((end - self._side - 1) / self._step)
        k = np.arange(self._made, last + 1, dtype=np.int64)
        if not len(k):
            return np.zeros(0, np.float32)
        whole = k * self._step.numerator // self._step.denominator
        windows = np.lib.stride_tricks.sliding_window_view(self._in, 2 * self._side)
        rows = whole - self._side + 1 - self._first
        out: NDArray[np.float32] = np.einsum("ij,ij->i", windows[rows], self._taps[k % self._phases])
        self._made = int(k[-1]) + 1
        drop = int(self._made * self._step) - self._side + 1 - self._first
        if drop > 0:
            self._in, self._first = self._in[drop:], self._first + drop
        return out.astype(np.float32)


class FarEnd:
    """The last seconds of what was played; silence where nothing was."""

    def __init__(self, delay: int = 0) -> None:
        """``delay``: samples until the microphone hears what is played; added to every index."""
        self._delay = delay
        self._ring = np.zeros(KEPT, np.float32)
        self._end = 0
        self._stream: Resampler | None = None
        self._began = 0
        self._expected = 0
        self._given = 0
        self._written = 0
        self.sounded_until = -KEPT
        """Sample index after the last sound played."""

    def add(self, samples: Samples, rate: int, at_sample: int) -> None:
        """See ``EchoCanceller.played``."""
        if not len(samples):
            return
        at = at_sample + self._delay
        if self._stream is None or self._stream.rate != rate or abs(at - self._expected) > JOINS:
            self._finish()
            self._stream, self._began, self._given, self._written = Resampler(rate), at, 0, 0
        assert self._stream is not None
        self._given += len(samples)
        self._expected = self._began + round(self._given * RATE / rate)
        clean = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float32)
        self._put(self._stream.add(clean))
        if np.any(np.abs(clean) > 1e-4):
            self.sounded_until = self._expected

    def read(self, start: int, n: int) -> Samples:
        """``n`` samples from session sample ``start`` on."""
        out = np.zeros(n, np.float32)
        first, last = max(start, self._end - KEPT, 0), min(start + n, self._end)
        if first < last:
            out[first - start : last - start] = self._ring[np.arange(first, last) % KEPT]
        return out

    def level_before(self, end: int) -> float:
        """Level of the loudest 32 ms in the 0.4 s before ``end``; dB of full scale."""
        power = np.square(self.read(end - LOUDEST_OVER, LOUDEST_OVER).reshape(-1, CHUNK)).mean(axis=1)
        return float(10 * np.log10(power.max() + 1e-10))

    def _finish(self) -> None:
        """The end of a stream is still held back by its filter."""
        if self._stream is not None:
            self._put(self._stream.add(np.zeros(self._stream.rate // 1000, np.float32)))

    def _put(self, samples: Samples) -> None:
        at = self._began + self._written
        self._written += len(samples)
        samples, at = samples[-KEPT:], at + max(0, len(samples) - KEPT)
        if at > self._end:  # silence between two streams
            gap = np.arange(max(self._end, at - KEPT), at) % KEPT
            self._ring[gap] = 0.0
        first = max(0, -at)
        self._ring[np.arange(at + first, at + len(samples)) % KEPT] = samples[first:]
        self._end = max(self._end, at + len(samples))
