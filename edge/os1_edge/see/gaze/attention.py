"""Where the wearer's gaze rested during some time, out of the gazes of the last seconds. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from os1_edge.events import Gaze
from os1_edge.see.gaze.track import EyeSample

KEPT = 4096
"""Gazes looked back on: 20 s at the 200 a second of the fastest eye cameras on glasses."""

RESTED_S = 0.3
"""A look shorter than this passes over a thing (Pupil Core's least fixation online, 300 ms)."""


@dataclass(frozen=True, slots=True)
class _Moment:
    gaze: Gaze
    look: int
    """Number of the fixation it belongs to; 0 in a saccade."""


class Attention:
    """Takes what the eye camera tells, and says where the gaze rested."""

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque(maxlen=KEPT)
        self._look = 0
        self._began_s: float | None = None
        self._told = False

    def add(self, sample: EyeSample) -> bool:
        """Takes one sample; True once a look has lasted `RESTED_S`, once for each look."""
        gaze = sample.gaze
        if gaze is None or not sample.fixation:
            self._began_s = None
        elif self._began_s is None:
            self._began_s, self._told = sample.at_s, False
            self._look += 1
        if gaze is None:
            return False
        self._moments.append(_Moment(gaze, self._look if self._began_s is not None else 0))
        if self._began_s is None or self._told or sample.at_s - self._began_s < RESTED_S:
            return False
        self._told = True
        return True

    def rested(self, from_s: float, to_s: float) -> Gaze | None:
        """The middle of the longest look between two session seconds; of two as long, the later.

        Where the eye never rested, the newest gaze; None where there was none at all.
        """
        seen = [moment for moment in self._moments if from_s <= moment.gaze.at_s <= to_s]
        if not seen:
            return None
        looks: dict[int, list[Gaze]] = {}
        for moment in seen:
            if moment.look:
                looks.setdefault(moment.look, []).append(moment.gaze)
        if not looks:
            return seen[-1].gaze
        longest = max(looks, key=lambda number: (looks[number][-1].at_s - looks[number][0].at_s, number))
        return middle(looks[longest])


def middle(gazes: list[Gaze]) -> Gaze:
    """One gaze for several of the same look, at the time of the last."""
    table = np.asarray([(one.x, one.y, one.confidence, one.error_deg) for one in gazes])
    x, y, confidence, error_deg = (float(value) for value in np.median(table, axis=0))
    return Gaze(gazes[-1].at_s, x, y, confidence, error_deg)
