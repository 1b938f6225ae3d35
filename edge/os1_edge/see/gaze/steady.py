"""Is what was found as large as this wearer's pupils were a moment ago?

Where the lid hides the pupil, the iris is the next dark ellipse: two to four times as wide, just as round,
and its gaze a dozen degrees off. A pupil takes many seconds to widen, so that a sudden giant is none. One
that is suddenly small may well be right: then it was the giant that was none.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from os1_edge.see.gaze.pupil import Pupil

_KEPT = 300
"""10 s at 30 frames a second: longer than a look into the far corner, shorter than the dark takes."""
_LEAST = 10
"""Pupils before anything is said of the next one."""
_LIKELY, _FALL = math.log(1.4), 0.15
"""Logarithm of the ratio of widths up to which nothing is strange, and how fast belief falls beyond it."""


class SizeWatch:
    """How wide this wearer's pupils are."""

    def __init__(self) -> None:
        self._widths: deque[float] = deque(maxlen=_KEPT)

    def step(self, pupil: Pupil, trusted: float) -> Pupil:
        """``pupil``, with less confidence where it is suddenly too wide. Those of confidence ``trusted`` or
        more are remembered, also the strange ones: what stays strange for 5 s is believed."""
        known = sorted(self._widths)
        if pupil.confidence >= trusted:
            self._widths.append(pupil.major)
        if len(known) < _LEAST:
            return pupil
        beyond = math.log(max(pupil.major, 1e-6) / known[len(known) // 2]) - _LIKELY
        if beyond <= 0:
            return pupil
        return replace(pupil, confidence=pupil.confidence * math.exp(-((beyond / _FALL) ** 2)))
