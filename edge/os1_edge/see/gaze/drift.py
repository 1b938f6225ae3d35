"""Does the calibration still hold? Signs of slipped glasses that need no target to look at."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

SLIPPED_DEG = 8.0
"""A slip worth more than this is past what correcting for it makes good."""
_OUTSIDE_SHARE = 0.4
_WINDOW = 300
"""Ten seconds at 30 frames; and what `outside` is a share of."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Why the calibration should not be trusted, and what to do."""

    reason: str
    advice: str


def judge_drift(slip_deg: float, outside: float, seen: int) -> Drift | None:
    """``slip_deg``: what the eyeball's move would change gaze by. ``outside``: share of the last gazes
    beside the scene picture, of ``seen`` gazes."""
    if slip_deg > SLIPPED_DEG:
        return Drift(
            f"the glasses have slipped, by about {slip_deg:.0f} degrees of gaze",
            "push them back, or look at a point and tap; calibrate again if that does not help",
        )
    if seen >= _WINDOW // 3 and outside > _OUTSIDE_SHARE:
        return Drift(
            f"{100 * outside:.0f} % of the last looks fell beside the scene picture",
            "look at a point and tap",
        )
    return None


class OutsideShare:
    """Share of the last gazes that fell beside the scene picture."""

    def __init__(self) -> None:
        self._outside: deque[bool] = deque(maxlen=_WINDOW)

    def step(self, outside: bool) -> tuple[float, int]:
        """Takes one gaze; returns the share and of how many."""
        self._outside.append(outside)
        return sum(self._outside) / len(self._outside), len(self._outside)
