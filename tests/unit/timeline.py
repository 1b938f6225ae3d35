"""A microphone as a timeline of speech probabilities, for tests of turns."""

from __future__ import annotations

import numpy as np

from os1_edge.events import CHUNK, RATE, AudioFrame, SpeechPaused, TurnEnded
from os1_edge.hear.pauses import Pauses
from os1_edge.hear.turn import TurnDetector, TurnEvent, TurnRules

MS = RATE // 1000
CHUNK_MS = 32


class Timeline:
    """Feeds pieces of (milliseconds, probability); every sample's value is its own index, so a turn's audio
    says where it was cut."""

    def __init__(self, rules: TurnRules | None = None, pauses: Pauses | None = None) -> None:
        self.detector = TurnDetector(rules or TurnRules(), pauses)
        self.at = 0
        self.events: list[TurnEvent] = []
        self.verdict: float | None = None
        """Given on every pause, as soon as it is told."""

    def hear(self, ms: float, probability: float) -> Timeline:
        for _ in range(round(ms / CHUNK_MS)):
            frame = AudioFrame(self.at, np.arange(self.at, self.at + CHUNK, dtype=np.float32))
            self.at += CHUNK
            if (event := self.detector.step(frame, probability)) is not None:
                self.events.append(event)
            if isinstance(event, SpeechPaused) and self.verdict is not None:
                self.detector.judge(event.turn_id, event.revision, self.verdict)
        return self

    def judged(self, verdict: float | None) -> Timeline:
        self.verdict = verdict
        return self

    def lose(self, ms: float) -> Timeline:
        """Frames that never come."""
        self.at += round(ms / CHUNK_MS) * CHUNK
        return self

    def stop(self) -> Timeline:
        if (last := self.detector.close()) is not None:
            self.events.append(last)
        return self

    @property
    def turns(self) -> list[TurnEnded]:
        return [e for e in self.events if isinstance(e, TurnEnded)]

    @property
    def told_pauses(self) -> list[SpeechPaused]:
        return [e for e in self.events if isinstance(e, SpeechPaused)]

    @property
    def names(self) -> list[str]:
        return [type(e).__name__ for e in self.events]
