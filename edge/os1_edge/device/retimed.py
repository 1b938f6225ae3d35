"""Blocks of sound with their times, at another rate."""

from __future__ import annotations

import numpy as np
import soxr

from os1_edge.events import Samples

SAME_S = 0.002
"""A block that is due within this of the end of the one before goes on with it."""


class Retimed:
    """A streaming resampler that knows when its output is due.

    It gives a block's last samples only with the next block, so the times of what comes out are counted, not
    copied from what went in.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        self._in, self._out = rate_in, rate_out
        self._resampler: soxr.ResampleStream | None = None
        self._next_in_s = self._next_out_s = 0.0

    def add(self, block: Samples, at_s: float) -> list[tuple[Samples, float]]:
        """What is complete after ``block`` (mono float32), due at ``at_s``; each with its own time."""
        if self._in == self._out:
            return [(block, at_s)]
        done = []
        if self._resampler is None or abs(at_s - self._next_in_s) > SAME_S:
            done = self.finish()
            self._resampler = soxr.ResampleStream(self._in, self._out, 1, dtype="float32")
            self._next_out_s = at_s
        self._next_in_s = at_s + len(block) / self._in
        return done + self._timed(self._resampler.resample_chunk(block))

    def finish(self) -> list[tuple[Samples, float]]:
        """What is left of the blocks so far."""
        resampler, self._resampler = self._resampler, None
        if resampler is None:
            return []
        return self._timed(resampler.resample_chunk(np.zeros(0, np.float32), last=True))

    def drop(self) -> None:
        """Nothing is left."""
        self._resampler = None

    def _timed(self, samples: Samples) -> list[tuple[Samples, float]]:
        if not len(samples):
            return []
        at_s = self._next_out_s
        self._next_out_s += len(samples) / self._out
        return [(np.asarray(samples, np.float32), at_s)]
