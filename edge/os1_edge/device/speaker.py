"""Where speech goes out. A replay's sinks let time pass as a real one would.

A sink is what ``speak.playback.Player`` plays on; the protocol, ``Sink``, is written down in
``speak/sink.py``, because the rooms do not import each other. A live one keeps the blocks with their times
in a ring of at least ``playback.AHEAD_S`` and lets the device's callback take what is due.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import soundfile

from os1_edge.events import Samples

HELD_S = 1.0
"""A replay's blocks wait so long before they go to the file, because a pause may take them back; the player
is never as far ahead."""

LONGEST_GAP_S = 5.0
"""A longer silence inside a reply is written as one of this length; a file must not grow by waiting."""


class NullSink:
    """Nothing is heard and nothing is kept."""

    latency_s = 0.0

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``speak.sink.Sink``."""

    def write(self, block: Samples, at_s: float) -> None:
        """See ``speak.sink.Sink``."""

    def drop(self, from_s: float) -> None:
        """See ``speak.sink.Sink``."""

    def end(self) -> str | None:
        """See ``speak.sink.Sink``."""
        return None


class ReplaySink:
    """Writes each reply to ``folder/NN.wav`` as it was heard: with its gaps, and cut where it was stopped.

    Raises:
        OSError, soundfile.SoundFileError: from any method, when the file cannot be written.
    """

    latency_s = 0.0

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._count = 0
        self._rate = 0
        self._file: soundfile.SoundFile | None = None
        self._waiting: deque[tuple[float, Samples]] = deque()  # bounded: blocks come playback.AHEAD_S early
        self._written_to: float | None = None
        """Session second of the end of what the file holds."""

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``speak.sink.Sink``."""
        self.end()
        self._count += 1
        self._rate = rate
        self._written_to = None
        self._file = soundfile.SoundFile(str(self._folder / self._name), "w", rate, 1, "PCM_16")

    def write(self, block: Samples, at_s: float) -> None:
        """See ``speak.sink.Sink``."""
        while self._waiting and self._waiting[0][0] < at_s - HELD_S:
            self._put(*self._waiting.popleft())
        self._waiting.append((at_s, block))

    def drop(self, from_s: float) -> None:
        """See ``speak.sink.Sink``."""
        while self._waiting and self._waiting[-1][0] >= from_s:
            self._waiting.pop()

    def end(self) -> str | None:
        """See ``speak.sink.Sink``."""
        if self._file is None:
            return None
        try:
            while self._waiting:
                self._put(*self._waiting.popleft())
        finally:
            self._waiting.clear()
            file, self._file = self._file, None
            file.close()
        return self._name

    @property
    def _name(self) -> str:
        return f"{self._count:02d}.wav"

    def _put(self, at_s: float, block: Samples) -> None:
        assert self._file is not None
        if self._written_to is not None and (gap := at_s - self._written_to) > 0:
            self._file.write(np.zeros(round(min(gap, LONGEST_GAP_S) * self._rate), np.float32))
        self._file.write(np.clip(block, -1.0, 1.0))
        self._written_to = at_s + len(block) / self._rate
