"""Is an ellipse a pupil? Evidence from the picture round it, and a logistic score over that evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from os1_edge.see.gaze import rim
from os1_edge.see.gaze.rim import Floats

_RHO = np.linspace(0.1, 1.9, 31, dtype=np.float32)
_ALONG = rim.Rays(_RHO)
_INSIDE = slice(0, int((_RHO < 0.86).sum()))


def _mean_between(low: float, high: float) -> NDArray[np.float32]:
    """Weights (R,) that give the mean of the samples between two distances."""
    chosen = (low < _RHO) & (high > _RHO)
    return np.asarray(chosen / chosen.sum(), np.float32)


_MEAN_IN, _MEAN_OUT = _mean_between(0.75, 0.93), _mean_between(1.07, 1.25)

EVIDENCE = ("support", "contrast", "relative", "spread", "shape", "size", "weakest", "ring", "size2")
"""Columns of `evidence`."""
_WEIGHTS = np.asarray([8.761, -0.973, 1.456, -1.839, 8.608, -1.303, 3.827, -1.993, -0.466])
_BIAS = -13.819
"""As ``python -m os1_edge.bench.pupil_fit`` printed them while all six candidates were traced on: ridge
logistic regression on the candidates of 34 recordings' frames (mrgaze, MIT), as they are and distorted at
random, with crops that hold no pupil. Fitted to two candidates they find the same pupils."""


def evidence(smooth: NDArray[np.float32], ellipses: Floats) -> Floats:
    """What speaks for each of the ellipses (K, 5) of ``smooth``, as (K, len(EVIDENCE)).

    support: share of rays with a step at the rim. contrast: median height of that step, in logarithm.
    relative: the same against the pupil's own brightness. spread: unevenness inside against the step.
    shape: ratio of the axes. size: diameter against the picture's longest side, in logarithm, and squared
    (size2). weakest: the step at the weak 15 % of the rim against the median. ring: unevenness round the
    rim against the step.
    """
    rays = _ALONG.unroll(smooth, ellipses)
    count = len(ellipses)
    inside = np.sort(rays[:, ::2, _INSIDE].reshape(count, -1), 1)
    level = inside[:, inside.shape[1] // 2]
    outside = rays @ _MEAN_OUT
    step = outside - rays @ _MEAN_IN
    step[~_seen(smooth.shape, ellipses)] = 0.0
    ordered = np.sort(step, 1)
    contrast = ordered[:, rim.RAYS // 2]
    where, _ = _ALONG.strongest_steps(rays, 0.25)
    support = ((np.abs(where - 1) < 0.09) & (step > np.maximum(6, 0.35 * contrast[:, None]))).mean(1)
    spread = inside[:, inside.shape[1] * 9 // 10] - inside[:, inside.shape[1] // 10]
    axes = np.sort(ellipses[:, 2:4], 1)
    size = np.log(2 * np.sqrt(axes[:, 0] * axes[:, 1]) / max(smooth.shape))
    against = np.maximum(contrast, 4)
    return np.column_stack(
        [
            support,
            np.log(np.maximum(contrast, 1)),
            np.log(np.maximum(contrast / (level + 20), 0.02)),
            np.log(spread / against + 0.05),
            axes[:, 0] / axes[:, 1],
            size,
            np.clip(ordered[:, rim.RAYS * 3 // 20] / against, -1, 1),
            np.log(outside.std(1) / against + 0.05),
            size * size,
        ]
    )


def _seen(shape: tuple[int, ...], ellipses: Floats) -> NDArray[np.bool_]:
    """Which rays (K, RAYS) have the surround of the rim still in the picture."""
    x, y = rim.points_at(ellipses, 1.25)
    return np.asarray((x >= 0) & (y >= 0) & (x <= shape[1] - 1) & (y <= shape[0] - 1))


def confidence(seen: Floats) -> Floats:
    """Probability (K,) that each row of `evidence` is a pupil's."""
    return np.asarray(1 / (1 + np.exp(-(seen @ _WEIGHTS + _BIAS))))
