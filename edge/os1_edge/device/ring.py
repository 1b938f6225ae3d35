"""Sound that is due soon, for a device that takes it block by block in a thread of its own."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from os1_edge.events import Samples

SLACK_S = 0.08
"""The device's clock and the session's may differ by this before the device's place is set anew: a loop or a
thread that is late for a moment must not cost sound."""

MOST_S = 2.0
"""Sound held at most; the player is ``playback.AHEAD_S`` ahead, a tenth of it. Older goes first."""


class Ring:
    """Blocks with their times. Safe between one thread that puts and one that takes."""

    def __init__(self, rate: int) -> None:
        """``rate``: samples a second of all blocks."""
        self.rate = rate
        self._blocks: deque[tuple[float, Samples]] = deque()
        self._held = 0
        self._at_s: float | None = None
        """Session second of the next sample taken."""
        self._lock = threading.Lock()

    def put(self, block: Samples, at_s: float) -> None:
        """``block`` (mono float32) is due at session second ``at_s``; blocks come in order."""
        with self._lock:
            self._blocks.append((at_s, block))
            self._held += len(block)
            while self._held > MOST_S * self.rate:
                self._held -= len(self._blocks.popleft()[1])

    def drop(self, from_s: float) -> None:
        """Forgets the blocks due at ``from_s`` or later."""
        with self._lock:
            while self._blocks and self._blocks[-1][0] >= from_s:
                self._held -= len(self._blocks.pop()[1])

    def take(self, count: int, now_s: float) -> Samples:
        """The next ``count`` samples; silence where nothing is due. ``now_s``: the session's second."""
        out = np.zeros(count, np.float32)
        with self._lock:
            if self._at_s is None or abs(now_s - self._at_s) > SLACK_S:
                self._at_s = now_s
            begin = self._at_s
            self._at_s = begin + count / self.rate
            while self._blocks:
                at_s, block = self._blocks[0]
                first = round((at_s - begin) * self.rate)
                if first >= count:
                    break
                self._put_into(out, block, first)
                if first + len(block) > count:
                    break  # its rest is due in the next
                self._held -= len(self._blocks.popleft()[1])
        return out

    @staticmethod
    def _put_into(out: Samples, block: Samples, first: int) -> None:
        piece = block[max(0, -first) : len(out) - first]
        start = max(0, first)
        out[start : start + len(piece)] = piece
