"""When a turn starts and when it is over: a pure state machine over speech probabilities.

Time is counted in samples. Hysteresis (a higher threshold to start than to go on), a least length of
speech against clicks, and a silence bound at the end. The first chunk is never taken as silence that ends
something: there must have been speech (home-assistant/core#122177).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from os1_edge.events import CHUNK, RATE, AudioFrame, Samples, SpeechStarted, TurnEnded


@dataclass(frozen=True, slots=True)
class TurnRules:
    """Thresholds; lengths in samples."""

    start_above: float = 0.5
    """Speech probability at which a turn may start."""
    stop_below: float = 0.35
    """Speech probability below which a chunk counts as silence inside a turn."""
    min_speech: int = 3 * CHUNK
    """Speech (96 ms) needed before a turn has started: "stop" lasts 250 ms, a click less than this."""
    silence: int = RATE // 2
    """Silence (0.5 s) that ends a turn."""
    pre_roll: int = 3 * RATE // 10
    """Audio (0.3 s) kept from before the first speech: the detector is late for soft onsets."""
    tail: int = 3 * RATE // 10
    """Audio (0.3 s) kept after the last speech."""
    max_turn: int = 30 * RATE
    """A turn is closed after 30 s of speech: Whisper's window."""


class TurnDetector:
    """Takes frames with their speech probability; says when turns start and end."""

    def __init__(self, rules: TurnRules = TurnRules()) -> None:  # frozen
        self.rules = rules
        self._before: deque[AudioFrame] = deque(
            maxlen=rules.pre_roll // CHUNK + rules.min_speech // CHUNK + 1
        )
        self._frames: list[AudioFrame] = []
        """The open turn's audio; bounded by ``max_turn``."""
        self._start: int | None = None
        self._speech_end = 0
        self._run = 0
        self._turns = 0

    @property
    def speaking(self) -> bool:
        """Whether a turn is open."""
        return self._start is not None

    def step(self, frame: AudioFrame, probability: float) -> SpeechStarted | TurnEnded | None:
        """Takes the next frame; returns what it decided."""
        if self._start is None:
            return self._wait(frame, probability)
        self._frames.append(frame)
        end = frame.start + len(frame.samples)
        if probability >= self.rules.stop_below:
            self._speech_end = end
        if end - self._speech_end >= self.rules.silence:
            return self._end(end, f"{(end - self._speech_end) / RATE:.2f} s of silence")
        if end - self._start >= self.rules.max_turn:
            return self._end(end, f"{self.rules.max_turn / RATE:.0f} s is the longest turn")
        return None

    def close(self) -> TurnEnded | None:
        """The stream has ended: an open turn ends with it."""
        if self._start is None:
            return None
        last = self._frames[-1]
        return self._end(last.start + len(last.samples), "the microphone stopped")

    def _wait(self, frame: AudioFrame, probability: float) -> SpeechStarted | None:
        self._before.append(frame)
        self._run = self._run + len(frame.samples) if probability >= self.rules.start_above else 0
        if self._run < self.rules.min_speech:
            return None
        self._turns += 1
        self._speech_end = frame.start + len(frame.samples)
        self._start = self._speech_end - self._run
        self._frames = list(self._before)
        self._before.clear()
        self._run = 0
        return SpeechStarted(turn_id=f"t{self._turns:04d}", at=self._start)

    def _end(self, decided: int, reason: str) -> TurnEnded:
        assert self._start is not None
        audio_start, audio = self._cut(self._start - self.rules.pre_roll, self._speech_end + self.rules.tail)
        ended = TurnEnded(
            turn_id=f"t{self._turns:04d}",
            revision=0,
            start=self._start,
            end=self._speech_end,
            decided=decided,
            reason=reason,
            audio=audio,
            audio_start=audio_start,
        )
        # What followed the speech may be the soft onset of the next turn.
        self._before.extend(f for f in self._frames if f.start >= self._speech_end)
        self._start, self._frames = None, []
        return ended

    def _cut(self, first: int, last: int) -> tuple[int, Samples]:
        kept = [f for f in self._frames if f.start + len(f.samples) > first and f.start < last]
        return kept[0].start, np.concatenate([f.samples for f in kept])
