"""Where the eyeball is in the eye picture, from the shapes of pupils: glasses that slip move it.

A pupil is a disc on a ball that turns. Seen from an angle t it is an ellipse with ratio cos t of its axes,
shifted from the ball's middle along its short axis by R sin t (weak perspective; the two-dimensional core
of Swirski and Dodgson's 2013 eye model). So each pupil votes for a middle; slim ones know it better, and a
few dozen votes place it to a fraction of a millimetre. The pupil's way on the ball is gaze, the middle's
way is slippage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from os1_edge.see.gaze.pupil import Pupil
from os1_edge.see.gaze.rim import Floats

LEAST_VOTES = 40
"""Votes before a shift is spoken of: a vote is off by about 0.4 mm, their mean then by less than 0.1 mm."""
_LEAST_TO_FIT = 20
"""Pupils that an eyeball is fitted to at least."""
_WINDOW = 300
"""Votes kept: 10 s at 30 frames a second; slippage is slower than that, and memory stays flat."""


def lean(pupils: Sequence[Pupil]) -> tuple[Floats, Floats]:
    """``sin t`` times the direction of the short axis, (N, 2), up to its sign; and the weight of each,
    (N,)."""
    rows = np.asarray([(p.minor / p.major, p.angle_deg) for p in pupils], float).reshape(-1, 2)
    cosine = np.clip(rows[:, 0], 0.0, 1.0)
    sine = np.sqrt(1 - cosine * cosine)
    angle = np.radians(rows[:, 1] + 90.0)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * sine[:, None], sine * sine


def fit_eyeball(pupils: Sequence[Pupil]) -> tuple[float, float, float] | None:
    """Middle and turning radius ``(x, y, r)`` of the eyeball in pixels, from pupils that look about.

    ``None`` where the pupils do not tell: too few of them, or all seen from straight ahead.
    """
    if len(pupils) < _LEAST_TO_FIT:
        return None
    at = np.asarray([(p.cx, p.cy) for p in pupils])
    away, weight = lean(pupils)
    if float(weight.mean()) < 0.03:  # on average seen from less than 10 degrees
        return None
    side = float(np.median([p.major for p in pupils]))
    best: tuple[float, float, float, float] | None = None
    # Which way a short axis points away from the middle is not known: begin with a middle on every side.
    for angle in np.arange(8) * np.pi / 4:
        middle = at.mean(0) + 1.5 * side * np.asarray([np.cos(angle), np.sin(angle)])
        fitted = _alternate(at, away, weight, middle)
        if fitted and (best is None or fitted[3] < best[3]):
            best = fitted
    return best[:3] if best else None


def _alternate(
    at: Floats, away: Floats, weight: Floats, middle: Floats
) -> tuple[float, float, float, float] | None:
    radius, error = 0.0, float("inf")
    for _ in range(12):
        signs = np.where(((at - middle) * away).sum(1) < 0, -1.0, 1.0)
        turned = away * signs[:, None]
        total = weight.sum()
        mean_at, mean_away = (weight @ at) / total, (weight @ turned) / total
        a, b = turned - mean_away, at - mean_at
        spread = float((weight[:, None] * a * a).sum())
        if spread < 1e-9:
            return None
        radius = float((weight[:, None] * a * b).sum()) / spread
        middle = mean_at - radius * mean_away
        miss = np.hypot(*(at - middle - radius * turned).T)
        error = float(weight @ np.minimum(miss, 3 * np.median(miss)) / total)
    return (float(middle[0]), float(middle[1]), radius, error) if radius > 0 else None


class SlipWatch:
    """How far the eyeball's middle has moved in the picture since the calibration."""

    def __init__(self, x: float, y: float, radius: float) -> None:
        self._x, self._y, self._radius = x, y, radius
        self._votes = np.zeros((_WINDOW, 3))
        """The newest votes, ``(x, y, weight)``, as a ring."""
        self._count = 0

    def step(self, pupil: Pupil) -> None:
        """Takes the vote of one trustworthy pupil."""
        cosine = min(1.0, pupil.minor / pupil.major)
        sine = math.sqrt(1 - cosine * cosine)
        angle = math.radians(pupil.angle_deg + 90.0)
        dx, dy = sine * self._radius * math.cos(angle), sine * self._radius * math.sin(angle)
        if (pupil.cx - self._x) * dx + (pupil.cy - self._y) * dy < 0:
            dx, dy = -dx, -dy
        self._votes[self._count % _WINDOW] = pupil.cx - dx - self._x, pupil.cy - dy - self._y, sine * sine
        self._count += 1

    @property
    def shift(self) -> tuple[float, float]:
        """Pixels right and down, (0, 0) until there are enough votes. Small ones count less: mostly noise."""
        if self._count < LEAST_VOTES:
            return 0.0, 0.0
        x, y, weight = self._votes[: self._count].T
        right, down = _weighted_median(x, weight), _weighted_median(y, weight)
        # The votes of neighbouring frames share their fault: a tenth of them are counted as independent.
        doubt = 1.25 * float(np.median(np.hypot(x - right, y - down))) / math.sqrt(len(x) / 10)
        square = right * right + down * down
        share = square / (square + doubt * doubt + 1e-9)
        return right * share, down * share


def _weighted_median(values: Floats, weight: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
