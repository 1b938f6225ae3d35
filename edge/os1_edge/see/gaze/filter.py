"""The One Euro filter: a low-pass whose cutoff rises with speed (Casiez, Roussel and Vogel, CHI 2012).

Still gaze is calmed, a saccade passes at once. Follows the authors' own implementation to the last digit
(their ``groundTruth.csv``): the speed is taken against the last *filtered* value.
"""

from __future__ import annotations

import math


class OneEuro:
    """Filters one or more channels of a signal that share their timestamps.

    ``min_cutoff_hz`` rules the calm of a resting signal, ``beta`` how fast the cutoff rises with the speed
    (in units of the signal a second), ``d_cutoff_hz`` the calm of that speed.
    """

    def __init__(self, min_cutoff_hz: float = 1.0, beta: float = 0.1, d_cutoff_hz: float = 1.0) -> None:
        if not (min_cutoff_hz > 0 and d_cutoff_hz > 0 and beta >= 0):
            raise ValueError("cutoffs must be above 0 Hz and beta at least 0")
        self.min_cutoff_hz = min_cutoff_hz
        self.beta = beta
        self.d_cutoff_hz = d_cutoff_hz
        self._at_s: float | None = None
        self._value: tuple[float, ...] = ()
        self._speed: tuple[float, ...] = ()

    def reset(self) -> None:
        """Forgets the past: the next value passes as it is. After a blink or a jump there is nothing to
        smooth."""
        self._at_s = None

    def step(self, at_s: float, value: tuple[float, ...]) -> tuple[float, ...]:
        """The filtered value at ``at_s`` seconds. A time that does not advance gives the last value again."""
        if self._at_s is None or len(value) != len(self._value):
            self._at_s, self._value, self._speed = at_s, value, (0.0,) * len(value)
            return value
        gap = at_s - self._at_s
        if gap <= 0:
            return self._value
        calm = _share(self.d_cutoff_hz, gap)
        speed, filtered = [], []
        for new, old, slow in zip(value, self._value, self._speed, strict=True):
            rate = calm * (new - old) / gap + (1 - calm) * slow
            share = _share(self.min_cutoff_hz + self.beta * abs(rate), gap)
            speed.append(rate)
            filtered.append(share * new + (1 - share) * old)
        self._at_s, self._value, self._speed = at_s, tuple(filtered), tuple(speed)
        return self._value


def _share(cutoff_hz: float, gap_s: float) -> float:
    """Weight of the newest value in a first-order low-pass of that cutoff."""
    return 1.0 / (1.0 + 1.0 / (2 * math.pi * cutoff_hz * gap_s))
