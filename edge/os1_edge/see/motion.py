"""Does the picture hold still? Told from frames that follow each other closely, or not at all. Pure.

A camera on a head moves with it, and things move before it: two pictures do not tell which it was, so only
the picture is spoken of.
"""

from __future__ import annotations

from typing import Literal

from os1_edge.see.frames import CHANGED_BITS, Look, distance, same_view

Motion = Literal["still", "moving", ""]

CLOSE_S = 2.0
"""Seconds between two frames beyond which they tell nothing of a movement: a head turns, and turns back."""


class MotionWatch:
    """Compares each frame with the one before it. Holds one `Look`."""

    def __init__(self) -> None:
        self._before: tuple[Look, float] | None = None

    def step(self, look: Look, at_s: float) -> Motion:
        """ "still", "moving", or "" where the frames do not tell: no near one before, or neither is clear."""
        before, self._before = self._before, (look, at_s)
        if before is None or not 0 < at_s - before[1] <= CLOSE_S:
            return ""
        if same_view(before[0], look):
            return "still"
        return "moving" if distance(before[0], look) >= CHANGED_BITS else ""
