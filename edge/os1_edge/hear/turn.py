"""When a turn starts, pauses and is over: a pure state machine over speech probabilities.

Time is counted in samples. Hysteresis (a higher threshold to start than to go on), a least length of
speech against clicks, and a silence bound at the end. The first chunk is never taken as silence that ends
something: there must have been speech (home-assistant/core#122177).

```
speech   ████████████████░░░░░░█████████████░░░░░░░░░░░░░░
         │               │  │  │            │  │    └ TurnEnded(revision 1): the bound of that verdict is over
         │               │  │  │            │  └ SpeechPaused(1): work on the answer starts; judge(1, 0.98)
         │               │  │  └ SpeechResumed(1): that work is void
         │               │  └ SpeechPaused(0): work starts; judge(0, 0.03) makes the bound a long one
         └ SpeechStarted └ last speech
```

A pause is told early because a wrong guess costs only computing, while the right one saves the wearer a wait.
How long the silence must be is decided by ``pauses.silence_bound``; without a verdict in time, by the rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from os1_edge.events import (
    CHUNK,
    RATE,
    AudioFrame,
    Samples,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
)
from os1_edge.hear.pauses import BOUNDS, Bound, BoundRules, Pauses, silence_bound

TurnEvent = SpeechStarted | SpeechPaused | SpeechResumed | TurnEnded

REGRET = RATE
"""A wearer who speaks again within 1 s after the end of a turn had not finished it."""


@dataclass(frozen=True, slots=True)
class TurnRules:
    """Thresholds; lengths in samples."""

    start_above: float = 0.5
    """Speech probability at which a turn may start."""
    stop_below: float = 0.35
    """Speech probability below which a chunk counts as silence inside a turn."""
    min_speech: int = 3 * CHUNK
    """Speech (96 ms) needed before a turn has started: "stop" lasts 250 ms, a click less than this."""
    min_resume: int = 2 * CHUNK
    """Speech (64 ms) needed to go on after a pause; a chunk of ``start_above`` is enough by itself."""
    pause: int = 5 * CHUNK
    """Silence (160 ms) that is told as a pause. The model of the end of turn judges no better after 100 or
    250 ms (``bench.turns``), and most gaps between words are shorter."""
    silence: int = RATE // 2
    """Silence (0.5 s) that ends a turn on which no verdict has come."""
    bounds: BoundRules = BOUNDS
    """Silence that ends a turn, by verdict."""
    pre_roll: int = 3 * RATE // 10
    """Audio (0.3 s) kept from before the first speech: the detector is late for soft onsets."""
    tail: int = 3 * RATE // 10
    """Audio (0.3 s) kept after the last speech."""
    max_turn: int = 30 * RATE
    """A turn is closed after 30 s of speech: Whisper's window."""


def numbered() -> Callable[[], str]:
    """Turn ids t0001, t0002, …: unique in one run."""
    turns = count(1)
    return lambda: f"t{next(turns):04d}"


class TurnDetector:
    """Takes frames with their speech probability; says when turns start, pause and end.

    The events of a turn are ``SpeechStarted (SpeechPaused SpeechResumed)* [SpeechPaused] TurnEnded``. The
    audio of the last ``SpeechPaused`` and of the ``TurnEnded`` of its revision hold the same speech from the
    same first sample on.
    """

    def __init__(
        self,
        rules: TurnRules = TurnRules(),  # frozen
        pauses: Pauses | None = None,
        ids: Callable[[], str] | None = None,
    ) -> None:
        """``pauses`` is what is known of the wearer, and learns; ``ids`` makes a turn's id."""
        self.rules = rules
        self.pauses = pauses or Pauses()
        self._ids = ids or numbered()
        self._before: deque[AudioFrame] = deque(
            maxlen=rules.pre_roll // CHUNK + rules.min_speech // CHUNK + 1
        )
        self._frames: list[AudioFrame] = []
        """The open turn's audio; bounded by ``max_turn``."""
        self._start: int | None = None
        self._turn_id = ""
        self._revision = 0
        self._paused = False
        self._bound = Bound(rules.silence, "")
        self._speech_end = 0
        self._run = 0
        self._next: int | None = None
        """Sample index at which the next frame should start."""
        self._last: TurnEnded | None = None
        """The turn before, where its end was a guess."""

    @property
    def speaking(self) -> bool:
        """Whether a turn is open."""
        return self._start is not None

    @property
    def length(self) -> int:
        """Samples of the open turn so far, pre-roll and pauses with it; 0 when nobody speaks."""
        if not self._frames:
            return 0
        last = self._frames[-1]
        return last.start + len(last.samples) - self._frames[0].start

    @property
    def gap(self) -> int:
        """Samples since the open turn's last speech; 0 where none is open."""
        if self._start is None:
            return 0
        last = self._frames[-1]
        return last.start + len(last.samples) - self._speech_end

    def so_far(self) -> SpeechPaused:
        """The open turn as it would be told if it paused now, for partial transcripts; changes nothing.

        Raises:
            RuntimeError: no turn is open.
        """
        if self._start is None:
            raise RuntimeError("no turn is open; ask `speaking` first")
        last = self._frames[-1]
        return self._told(last.start + len(last.samples))

    def step(self, frame: AudioFrame, probability: float) -> TurnEvent | None:
        """Takes the next frame; returns what it decided."""
        lost = frame.start - (frame.start if self._next is None else self._next)
        self._next = frame.start + len(frame.samples)
        ended = self._skip(frame.start, lost) if lost else None
        if self._start is None:
            # One event a frame: a start that falls on an end is told by the next frame.
            return self._wait(frame, probability, tell=ended is None) or ended
        return self._go_on(frame, probability)

    def judge(self, turn_id: str, revision: int, p_complete: float) -> None:
        """Takes the verdict on a ``SpeechPaused``: the probability 0..1 that the wearer has finished.

        One on another turn or revision is ignored, and so is what is no probability; a later one on the same
        pause replaces it.
        """
        if self._start is None or not self._paused or not 0 <= p_complete <= 1:
            return
        if (turn_id, revision) == (self._turn_id, self._revision):
            spoken_s = (self._speech_end - self._start) / RATE
            self._bound = silence_bound(p_complete, self.pauses.reach_s, spoken_s, self.rules.bounds)

    def close(self) -> TurnEnded | None:
        """The stream has stopped: an open turn ends with it. Frames may follow, from any sample index on."""
        self._next = None
        if self._start is None:
            self._forget()
            return None
        last = self._frames[-1]
        ended = self._end(last.start + len(last.samples), "the microphone stopped")
        self._forget()
        return ended

    def _wait(self, frame: AudioFrame, probability: float, tell: bool) -> SpeechStarted | None:
        self._before.append(frame)
        self._run = self._run + len(frame.samples) if probability >= self.rules.start_above else 0
        if self._run < self.rules.min_speech or not tell:
            return None
        self._turn_id, self._revision, self._paused = self._ids(), 0, False
        self._bound = Bound(self.rules.silence, "")
        self._speech_end = frame.start + len(frame.samples)
        self._start = self._speech_end - self._run
        self._frames = list(self._before)
        self._before.clear()
        self._run = 0
        if self._last is not None and self._start - self._last.decided <= REGRET:
            self.pauses.learn(self._start - self._last.end)
        self._last = None
        return SpeechStarted(self._turn_id, at=self._start)

    def _go_on(self, frame: AudioFrame, probability: float) -> TurnEvent | None:
        assert self._start is not None
        self._frames.append(frame)
        end = frame.start + len(frame.samples)
        if (resumed := self._speech(frame, probability)) is not None:
            return resumed
        silence = end - self._speech_end
        if silence >= self._bound.samples:
            verdict = f", {self._bound.reason}" if self._bound.reason else ""
            return self._end(end, f"{silence / RATE:.2f} s of silence{verdict}")
        if end - self._start >= self.rules.max_turn:
            return self._end(end, f"{self.rules.max_turn / RATE:.0f} s is the longest turn")
        if silence >= self.rules.pause and not self._paused:
            return self._pause(end)
        return None

    def _speech(self, frame: AudioFrame, probability: float) -> SpeechResumed | None:
        """Notes whether the frame is speech; after a pause, one soft chunk is not yet."""
        end = frame.start + len(frame.samples)
        self._run = self._run + len(frame.samples) if probability >= self.rules.stop_below else 0
        needed = self.rules.min_resume if self._paused and probability < self.rules.start_above else 1
        if self._run < needed:
            return None
        before, self._speech_end = self._speech_end, end
        if not self._paused:
            return None
        at = end - self._run
        self.pauses.learn(at - before)
        self._paused, self._revision = False, self._revision + 1
        self._bound = Bound(self.rules.silence, "")
        return SpeechResumed(self._turn_id, self._revision, at)

    def _pause(self, decided: int) -> SpeechPaused:
        self._paused = True
        return self._told(decided)

    def _told(self, decided: int) -> SpeechPaused:
        assert self._start is not None
        audio_start, audio = self._cut(self._start - self.rules.pre_roll, decided)
        return SpeechPaused(
            turn_id=self._turn_id,
            revision=self._revision,
            start=self._start,
            end=self._speech_end,
            decided=decided,
            audio=audio,
            audio_start=audio_start,
        )

    def _end(self, decided: int, reason: str) -> TurnEnded:
        assert self._start is not None
        audio_start, audio = self._cut(self._start - self.rules.pre_roll, self._speech_end + self.rules.tail)
        ended = TurnEnded(
            turn_id=self._turn_id,
            revision=self._revision,
            start=self._start,
            end=self._speech_end,
            decided=decided,
            reason=reason,
            audio=audio,
            audio_start=audio_start,
        )
        # What followed the speech may be the soft onset of the next turn.
        self._before.extend(f for f in self._frames if f.start >= self._speech_end)
        self._start, self._frames, self._paused, self._run = None, [], False, 0
        self._last = ended if decided - ended.end >= self.rules.pause else None
        return ended

    def _skip(self, start: int, lost: int) -> TurnEnded | None:
        """The stream goes on at sample ``start``, ``lost`` after where it should (before it, if negative)."""
        if self._start is None:
            self._forget()
            return None
        last = self._frames[-1]
        end = last.start + len(last.samples)
        if lost < 0 or start - self._speech_end >= self._bound.samples:
            ended = self._end(end, f"{abs(lost) / RATE:.2f} s of sound are missing")
            self._forget()
            return ended
        # Silence in its place keeps sample indices true; shorter than the bound, so memory is safe.
        self._frames.append(AudioFrame(end, np.zeros(lost, np.float32)))
        return None

    def _forget(self) -> None:
        """Drops what came before a break: it does not adjoin what follows."""
        self._before.clear()
        self._run = 0
        self._last = None

    def _cut(self, first: int, last: int) -> tuple[int, Samples]:
        kept = [f for f in self._frames if f.start + len(f.samples) > first and f.start < last]
        return kept[0].start, np.concatenate([f.samples for f in kept])
