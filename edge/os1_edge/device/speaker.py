"""Where speech goes out. A replay's speaker keeps the time that a real one would need."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
import soundfile

from os1_edge.clock import Clock
from os1_edge.events import Samples

AHEAD_S = 10.0
"""Speech that may be waiting to be played; who makes more waits."""


class Speaker(Protocol):
    """Plays speech in the order given."""

    async def play(self, turn_id: str, samples: Samples, rate: int) -> float:
        """Hands over mono float32 ``samples``; returns the session second at which the first is heard.
        Waits while more than ``AHEAD_S`` seconds are still to be played."""
        ...

    async def finish(self, turn_id: str) -> str | None:
        """Returns when all that was handed over has been heard; the name of the file it was written to,
        where the speaker keeps one."""
        ...


class ReplaySpeaker:
    """Writes each turn's speech to ``folder/NN.wav``; nothing sounds, but time passes as if it did."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._folder = folder
        self._free_at = 0.0
        self._open: soundfile.SoundFile | None = None
        self._spoken = 0

    async def play(self, turn_id: str, samples: Samples, rate: int) -> float:
        """See ``Speaker.play``."""
        await self._clock.sleep_until(self._free_at - AHEAD_S)
        if self._open is None:
            self._spoken += 1
            file = self._folder / f"{self._spoken:02d}.wav"
            self._open = soundfile.SoundFile(str(file), "w", rate, 1, "PCM_16")
        starts = max(self._clock.now(), self._free_at)
        self._open.write(np.clip(samples, -1.0, 1.0))
        self._free_at = starts + len(samples) / rate
        return starts

    async def finish(self, turn_id: str) -> str | None:
        """See ``Speaker.finish``."""
        if self._open is None:
            return None
        self._open.close()
        self._open = None
        await self._clock.sleep_until(self._free_at)
        return f"{self._spoken:02d}.wav"
