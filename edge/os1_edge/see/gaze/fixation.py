"""Fixations from gaze directions: I-VT, speed against a threshold, as a stream.

The thresholds are those of Tobii's published I-VT (Olsen 2012): 30 degrees a second over a window of 20 ms,
at least 60 ms, neighbours within 75 ms and 0.5 degrees are one. An eye camera on a battery gives 5 to 30
frames a second; at that rate a saccade of a few degrees is no faster than that threshold, so a direction
that leaves the fixation's middle by `reach_deg` ends it as well: I-DT's rule (Salvucci and Goldberg 2000).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from os1_edge.events import Fixation

_SPEED_WINDOW_S = 0.02
_LEAST_S = 0.06
_MERGE_S, _MERGE_DEG = 0.075, 0.5
_GAP_S = 0.25
"""A longer pause between two directions ends a fixation; five frames a second pass."""


@dataclass(slots=True)
class _Run:
    """Slow directions that follow each other: sums only, so that its length costs no memory."""

    start_s: float
    end_s: float
    count: int
    sum_x: float
    sum_y: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.sum_x / self.count, self.sum_y / self.count

    @property
    def long_enough(self) -> bool:
        return self.end_s - self.start_s >= _LEAST_S - 1e-9

    def away(self, x: float, y: float) -> float:
        middle_x, middle_y = self.middle
        return math.hypot(x - middle_x, y - middle_y)

    def joined(self, later: _Run) -> _Run:
        return _Run(
            self.start_s,
            later.end_s,
            self.count + later.count,
            self.sum_x + later.sum_x,
            self.sum_y + later.sum_y,
        )

    def event(self) -> Fixation:
        return Fixation(self.start_s, self.end_s, *self.middle)


class FixationFinder:
    """Turns gaze directions, in degrees, into `Fixation` events; a fixation is told when it can grow no
    more."""

    def __init__(self, speed_deg_s: float = 30.0, reach_deg: float = 1.5) -> None:
        self.speed_deg_s = speed_deg_s
        self.reach_deg = reach_deg
        # 20 ms of directions: 21 at the 1000 Hz of the fastest trackers; the bound holds against broken
        # clocks.
        self._recent: deque[tuple[float, float, float]] = deque(maxlen=64)
        self._run: _Run | None = None
        self._ended: _Run | None = None
        """The last fixation, while its neighbour may still join it."""

    @property
    def current(self) -> Fixation | None:
        """The fixation that goes on, as far as it has come."""
        return self._run.event() if self._run and self._run.long_enough else None

    def step(self, at_s: float, x_deg: float, y_deg: float) -> list[Fixation]:
        """Takes one direction; returns the fixations that are over, oldest first (none, one, seldom two).

        A time that goes back, or on by more than a quarter of a second, ends what was before it.
        """
        told = []
        if self._recent and not 0 < at_s - self._recent[-1][0] <= _GAP_S:
            told = self.stop()
        fast = self._speed(at_s, x_deg, y_deg) > self.speed_deg_s
        self._recent.append((at_s, x_deg, y_deg))
        if self._run and (fast or self._run.away(x_deg, y_deg) > self.reach_deg):
            told += self._close()
        if not fast:
            if self._run is None:
                self._run = _Run(at_s, at_s, 1, x_deg, y_deg)
            else:
                self._run = self._run.joined(_Run(at_s, at_s, 1, x_deg, y_deg))
            self._join()
        if self._ended and at_s - self._ended.end_s > _MERGE_S + _LEAST_S:
            told.append(self._ended.event())
            self._ended = None
        return told

    def stop(self) -> list[Fixation]:
        """Ends what goes on: a blink, or the end of the recording. Returns the fixations that this ends."""
        told = self._close()
        if self._ended:
            told.append(self._ended.event())
        self._ended = None
        self._recent.clear()
        return told

    def _speed(self, at_s: float, x: float, y: float) -> float:
        """Degrees a second since 20 ms ago, or since the last direction where that is longer ago."""
        if not self._recent:
            return 0.0
        while len(self._recent) > 1 and at_s - self._recent[1][0] >= _SPEED_WINDOW_S - 1e-9:
            self._recent.popleft()
        then_s, then_x, then_y = self._recent[0]
        return math.hypot(x - then_x, y - then_y) / (at_s - then_s)

    def _join(self) -> None:
        """The run becomes one with the fixation just before it, if the eye had hardly left that."""
        run, before = self._run, self._ended
        if run and before and run.long_enough:
            near = before.away(*run.middle) <= _MERGE_DEG
            if near and run.start_s - before.end_s <= _MERGE_S:
                self._run, self._ended = before.joined(run), None

    def _close(self) -> list[Fixation]:
        told = []
        if self._run and self._run.long_enough:
            if self._ended:
                told.append(self._ended.event())
            self._ended = self._run
        self._run = None
        return told
