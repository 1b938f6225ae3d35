"""From a pupil's place in the eye picture to a point on the scene picture: polynomials, fitted robustly.

How many terms a calibration can carry is not guessed: each set of terms that the number of targets allows
is tried with every target left out in turn, and the one that tells the left-out ones best is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from os1_edge.see.gaze.ball import Ball, fit_ball
from os1_edge.see.gaze.rim import Floats
from os1_edge.see.gaze.scene_camera import SceneCamera

TERMS: dict[str, Callable[[Floats, Floats], list[Floats]]] = {
    "linear": lambda x, y: [np.ones_like(x), x, y],
    "bilinear": lambda x, y: [np.ones_like(x), x, y, x * y],
    "quadratic": lambda x, y: [np.ones_like(x), x, y, x * y, x * x, y * y],
    "cubic": lambda x, y: [
        *(np.ones_like(x), x, y, x * y, x * x, y * y),
        *(x * x * x, x * x * y, x * y * y, y * y * y),
    ],
}
"""Name and terms of each polynomial, few to many."""
LEAST_FOR_BALL = 4
"""Targets that place a ball; three would leave it nothing to be checked by."""
_TRIPLES = 300
"""Triples of targets that the search for gross errors tries at most: all of them up to 13 targets."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A fitted map. ``middle`` and ``scale`` bring pupil pixels to about -1..1 before the terms are made."""

    terms: str
    middle: tuple[float, float]
    scale: float
    weights: tuple[tuple[float, float], ...]
    """One row ``(x, y)`` a term, in pixels of the scene picture."""

    def __call__(self, pupils: Floats) -> Floats:
        """Scene pixels (N, 2) of pupil centres (N, 2)."""
        return np.asarray(_design(self.terms, self.middle, self.scale, pupils) @ np.asarray(self.weights))


Map = Polynomial | Ball


def pupil_for(
    gaze: Map, target: tuple[float, float], near: tuple[float, float]
) -> tuple[float, float] | None:
    """The pupil centre that maps to ``target``, by Newton's method from ``near``, or ``None``."""
    at = np.asarray(near, float)
    step = 0.1
    for _ in range(30):
        here, right, down = gaze(at + np.asarray([(0.0, 0.0), (step, 0.0), (0.0, step)]))
        slope = np.column_stack([(right - here) / step, (down - here) / step])
        if abs(np.linalg.det(slope)) < 1e-9:
            return None
        move = np.linalg.solve(slope, np.asarray(target) - here)
        # A long way at once may leave the range in which the slope means anything.
        length = float(np.hypot(*move))
        at = at + move * min(1.0, 20.0 / max(length, 1e-9))
        if length < 1e-3:
            return float(at[0]), float(at[1])
    return None


def fit(pupils: Floats, targets: Floats, weight: Floats, terms: str) -> Polynomial:
    """Fits pupil centres (N, 2) to scene pixels (N, 2) by least squares with Huber's weights.

    A trace of ridge holds terms that the points say nothing about at nought.
    """
    middle = (float(pupils[:, 0].mean()), float(pupils[:, 1].mean()))
    scale = float(max(np.abs(pupils - pupils.mean(0)).max(), 1e-6))
    design = _design(terms, middle, scale, pupils)
    ridge = 1e-4 * np.eye(design.shape[1])
    ridge[:3, :3] = 0
    trust = weight.copy()
    solution = np.zeros((design.shape[1], 2))
    for _ in range(8):
        weighted = design * trust[:, None]
        solution = np.linalg.lstsq(
            weighted.T @ design + ridge * trust.sum(), weighted.T @ targets, rcond=None
        )[0]
        miss = np.hypot(*(design @ solution - targets).T)
        limit = max(1.5 * 1.48 * float(np.median(miss)), 1.0)
        trust = weight * np.minimum(1.0, limit / np.maximum(miss, 1e-9))
    return Polynomial(terms, middle, scale, tuple((float(x), float(y)) for x, y in solution))


def consistent(
    pupils: Floats, targets: Floats, weight: Floats, limit_px: float
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which points (N,) agree with one linear map within ``limit_px``: RANSAC over triples.

    Finds targets that the wearer did not look at, or that were named wrongly.
    """
    count = len(pupils)
    if count <= 3:
        return np.ones(count, np.bool_)
    triples = list(combinations(range(count), 3))
    if len(triples) > _TRIPLES:
        rng = np.random.default_rng(0)
        triples = [triples[i] for i in rng.choice(len(triples), _TRIPLES, replace=False)]
    ones = np.column_stack([np.ones(count), pupils])
    best, agreed = -1.0, np.ones(count, np.bool_)
    for triple in triples:
        corner = ones[list(triple)]
        if abs(np.linalg.det(corner)) < 1e-6 * np.ptp(pupils, axis=0).prod():
            continue
        miss = np.hypot(*(ones @ np.linalg.solve(corner, targets[list(triple)]) - targets).T)
        votes = float((weight * np.clip(1 - (miss / limit_px) ** 2, 0, None)).sum())
        if votes > best:
            best, agreed = votes, miss <= limit_px
    return agreed


def choose(
    pupils: Floats,
    targets: Floats,
    weight: Floats,
    eyeball: tuple[float, float, float] | None,
    scene: SceneCamera,
) -> tuple[Map, Floats]:
    """The map whose left-out errors are least, and the predictions (N, 2) of each point when it was left
    out."""
    count = len(pupils)
    ways: list[Callable[[Floats, Floats, Floats], Map | None]] = [
        partial(fit, terms=name)
        for name, terms in TERMS.items()
        # A point more than there are terms, or leaving one out would leave the fit nothing to check itself
        # by.
        if name == "linear" or count >= len(terms(pupils[:1, 0], pupils[:1, 1])) + 2
    ]
    if eyeball and count >= LEAST_FOR_BALL:
        ways.insert(0, partial(fit_ball, eyeball=eyeball, scene=scene))
    best: tuple[float, Map, Floats] | None = None
    for way in ways:
        whole = way(pupils, targets, weight)
        parts = [way(pupils[keep], targets[keep], weight[keep]) for keep in ~np.eye(count, dtype=np.bool_)]
        if whole is None or any(part is None for part in parts):
            continue
        left_out = np.vstack([part(pupils[i : i + 1]) for i, part in enumerate(parts) if part])
        miss = float(np.sqrt((weight @ ((left_out - targets) ** 2).sum(1)) / weight.sum()))
        # The ball first, then few terms to many: a later one has to earn its place by a tenth.
        if best is None or miss < 0.9 * best[0]:
            best = (miss, whole, left_out)
    assert best is not None
    return best[1], best[2]


def _design(terms: str, middle: tuple[float, float], scale: float, pupils: Floats) -> Floats:
    x, y = ((pupils - np.asarray(middle)) / scale).T
    return np.column_stack(TERMS[terms](x, y))
