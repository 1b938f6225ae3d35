"""Gaze before any calibration: a direction against the wearer's own middle, and an honest word on its error.

People look ahead more than anywhere else, so the middle of all pupils so far stands for straight ahead. How
far the eye has turned from there follows from the ball's radius in the eye picture, which is guessed from
the picture's size until the pupils' shapes tell it. Nothing here knows the eye camera's place on the frame:
`turn_deg` and `mirrored` say how it is mounted.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from os1_edge.see.gaze.pupil import Pupil
from os1_edge.see.gaze.slip import LEAST_VOTES, fit_eyeball

_RADIUS_SHARE = 0.32
"""Turning radius over the eye picture's longest side: 10 mm of some 31 mm that eye cameras on glasses take
in."""
_FIRST_DEG, _SETTLED_DEG = 13.0, 6.0
"""Median distance of natural gaze from straight ahead; and of the middle of some hundred looks from it."""
_GAIN_DOUBT = 0.3
_SETTLING = 100.0
"""Pupils after which the middle is two thirds of the way to settled."""
_WINDOW = 300
"""Pupils kept: ten seconds at 30 frames hold several looks, and still follow glasses that slip."""
_REFIT = _WINDOW
"""The ball is fitted again after so many more pupils: it moves slowly, and a fit costs some 10 ms."""


class FreeStart:
    """A direction and its error from pupils alone."""

    def __init__(self, longest_side: int, turn_deg: int = 0, mirrored: bool = False) -> None:
        self._radius = _RADIUS_SHARE * longest_side
        self._turn = math.radians(turn_deg)
        self._mirrored = mirrored
        self._seen: deque[Pupil] = deque(maxlen=_WINDOW)
        self._places = np.zeros((_WINDOW, 2))
        """Middles of the pupils in `_seen`, as a ring."""
        self._count = 0

    def step(self, pupil: Pupil) -> tuple[float, float, float]:
        """Takes a trustworthy pupil; returns degrees right, degrees down and the median error in degrees."""
        self._seen.append(pupil)
        self._count += 1
        if self._count % _REFIT == LEAST_VOTES:
            fitted = fit_eyeball(list(self._seen))
            # Shapes tell little while the eye looks one way; a radius far off the guess is such a fit.
            if fitted and 0.5 < fitted[2] / self._radius < 2.0:
                self._radius = fitted[2]
        doubt = _SETTLED_DEG + (_FIRST_DEG - _SETTLED_DEG) * math.exp(-self._count / _SETTLING)
        self._places[(self._count - 1) % _WINDOW] = pupil.cx, pupil.cy
        middle = np.median(self._places[: self._count], axis=0)
        across, down = pupil.cx - float(middle[0]), pupil.cy - float(middle[1])
        across, down = (
            across * math.cos(self._turn) + down * math.sin(self._turn),
            down * math.cos(self._turn) - across * math.sin(self._turn),
        )
        # The eye camera faces the wearer: to their right is to its left, unless the picture is mirrored.
        right = _angle((across if self._mirrored else -across) / self._radius)
        below = _angle(down / self._radius)
        return right, below, math.hypot(doubt, _GAIN_DOUBT * math.hypot(right, below))


def _angle(offset: float) -> float:
    return math.degrees(math.asin(max(-0.9, min(0.9, offset))))
