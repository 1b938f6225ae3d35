"""Open or closed, frame by frame, and blinks from it.

Confidence alone is a noisy sign: lashes of a closed eye can look like a pupil, and a lid that comes down
leaves a good ellipse until it is half over the pupil. So the pupil's height counts too: one that has
suddenly lost four tenths of it is being covered, not narrowing (a pupil takes a second for that).
"""

from __future__ import annotations

from collections import deque
from statistics import median

from os1_edge.events import Blink
from os1_edge.see.gaze.pupil import Pupil

CLOSED_BELOW, OPEN_ABOVE = 0.35, 0.6
"""Confidence under which an open eye counts as closed, and from which a closed one counts as open again."""
_LOST_HEIGHT = 0.6
_LEAST_S, _MOST_S = 0.05, 0.8
"""A blink lasts 0.1 to 0.4 s; frames 33 ms apart see as little as 0.05. Longer: the eye rests, or no eye is
there."""


class BlinkWatch:
    """Turns pupils into open or closed, and into `Blink` events when the eye opens again."""

    def __init__(self) -> None:
        # Heights of the last open pupils: a second at 30 frames, enough for a median that a blink does not
        # move.
        self._heights: deque[float] = deque(maxlen=30)
        self._closed_s: float | None = None

    @property
    def closed(self) -> bool:
        """Whether the eye was closed in the last frame."""
        return self._closed_s is not None

    def step(self, at_s: float, pupil: Pupil | None) -> Blink | None:
        """Takes the pupil of one frame; returns the blink that it ends, if it ends one."""
        confidence = pupil.confidence if pupil else 0.0
        if confidence < CLOSED_BELOW or (pupil and self._covered(pupil)):
            if self._closed_s is None:
                self._closed_s = at_s
            return None
        if self._closed_s is not None and confidence < OPEN_ABOVE:
            return None
        began, self._closed_s = self._closed_s, None
        if pupil:
            self._heights.append(pupil.minor)
        if began is not None and _LEAST_S <= at_s - began <= _MOST_S:
            return Blink(began, at_s)
        return None

    def _covered(self, pupil: Pupil) -> bool:
        if len(self._heights) < 5:
            return False
        if self._closed_s is not None and pupil.confidence >= 0.95:
            return False  # seen clearly again: what it is measured against may be out of date
        return pupil.confidence < 0.95 and pupil.minor < _LOST_HEIGHT * median(self._heights)
