"""The pupil in a near-eye infrared frame: where it is, its ellipse, and how sure that is.

Three steps, after Swirski 2012 (a coarse dark blob, then edges, then a robust ellipse), with Starburst's rays
(Li 2005) in place of Canny edges, so that the cost does not depend on how many lashes the picture shows:

1. *Where may it be?* Small glints are taken out of a small copy by a grey opening; a centre-surround
contrast at
   eight sizes then names dark blobs (`dark_blobs`).
2. *What is its rim?* Rays run out from all blobs at once; each offers its strongest dark-to-bright step. The
   ellipse that most of them agree on is found by RANSAC over five-point conics and fitted again (`rim`).
3. *Is it a pupil?* Rim support, contrast, evenness, shape and size go into one logistic score (`judge`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.see.gaze import judge, rim
from os1_edge.see.gaze.rim import Floats

Grey = NDArray[np.uint8]

LEAST_SIDE = 48
"""A picture smaller than this in either direction holds no pupil that could be measured."""
_WORK_SIDE = 400
"""Rims are traced on a copy halved until its longest side is at most this: a 5 MP frame costs what 320x240
does."""
_COARSE_SIDE = 112
"""Longest side of the copy on which blobs are looked for."""
_SMALL_HALVES, _LARGE_HALVES = (1, 2), (1, 2, 3, 4, 6, 9)
"""Half sides of the squares on that copy, and on half of it: pupils of 3 % to 40 % of the longest side."""
_DARK = 60
"""Grey levels over the picture's darkest at which a blob's contrast counts half of what it would there."""
_LEAST_RESPONSE = 0.03
_DIM = 85
"""Grey level; where 98 % of a picture lie below it, it is brightened."""
_BLOBS_A_SIZE = 3
_CANDIDATES = 10
"""Blobs whose rays are looked at."""
_TRACED = 6
"""Those of them that get an ellipse; the pupil is among them in all labelled frames here."""
_REFINED = 2
"""Those of them that are traced more closely: as good as all six on 540 labelled pictures."""
_BEYOND_DOUBT = 0.95
"""Confidence at which the last frame's pupil, found again, ends the search: 94 % of the right answers on the
labelled pictures have it; of the wrong ones the surest has 0.48."""
_GLINT = 5
"""Side in pixels of the grey opening that takes out glints, on the working copy and on the coarse one."""
_WIDE = rim.Rays(np.linspace(0.3, 2.1, 28, dtype=np.float32))
_CLOSE = rim.Rays(np.linspace(0.6, 1.5, 25, dtype=np.float32))
_DISC = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (_GLINT, _GLINT))


@dataclass(frozen=True, slots=True)
class Pupil:
    """A pupil's ellipse in pixels of the frame as given; pixel centres are whole numbers."""

    cx: float
    cy: float
    major: float
    """Full length of the longer axis."""
    minor: float
    """Full length of the shorter axis."""
    angle_deg: float
    """Angle of the longer axis from x (right) towards y (down), 0 <= angle < 180; what ``cv2.ellipse``
    takes with the axes ``(major / 2, minor / 2)``."""
    confidence: float
    """Probability that this is the pupil, 0..1."""


def find_pupil(frame: NDArray[np.uint8], last: Pupil | None = None) -> Pupil | None:
    """The most likely pupil in ``frame``, grey (H, W) or BGR (H, W, 3), uint8; ``None`` where nothing is
    like one.

    ``last`` is the pupil of the frame before, if there is one. Where it is found again beyond doubt, the rest
    of the picture is not searched; else it is one more candidate, and no more than that, so that a wrong one
    does not stay. Thread-safe; keeps nothing between calls.
    """
    pictures = _prepared(frame)
    if pictures is None:
        return None
    work, smooth, scale = pictures
    found = np.zeros((0, 3))
    if last is not None:
        x, y = (last.cx + 0.5) / scale - 0.5, (last.cy + 0.5) / scale - 0.5
        found = np.asarray([(x, y, (last.major + last.minor) / 4 / scale)])
        again = _likeliest(smooth, outlines(smooth, found), scale)
        if again is not None and again.confidence >= _BEYOND_DOUBT:
            return again
    return _likeliest(smooth, outlines(smooth, np.vstack([found, dark_blobs(work)])), scale)


def candidates(frame: NDArray[np.uint8]) -> tuple[NDArray[np.float32], Floats, int] | None:
    """All that may be the pupil: the smoothed working copy, ellipses (K, 5) on it, and how many pixels of the
    frame are one of its. ``None`` where there is nothing."""
    pictures = _prepared(frame)
    if pictures is None:
        return None
    work, smooth, scale = pictures
    ellipses = outlines(smooth, dark_blobs(work))
    return (smooth, ellipses, scale) if len(ellipses) else None


def _prepared(frame: NDArray[np.uint8]) -> tuple[Grey, NDArray[np.float32], int] | None:
    """The working copy of ``frame``, the same smoothed, and how many of the frame's pixels one of it is."""
    grey = _as_grey(frame)
    if min(grey.shape) < LEAST_SIDE:
        return None
    work, scale = _halved(grey)
    if min(work.shape) < LEAST_SIDE:  # a strip: too narrow once its length is halved
        return None
    work = _lit(work)
    opened = cv2.morphologyEx(work, cv2.MORPH_OPEN, _DISC)
    return work, np.asarray(cv2.GaussianBlur(opened, (5, 5), 1.0), np.float32), scale


def _likeliest(smooth: NDArray[np.float32], ellipses: Floats, scale: int) -> Pupil | None:
    if not len(ellipses):
        return None
    score = judge.confidence(judge.evidence(smooth, ellipses))
    best = int(score.argmax())
    return _as_pupil(ellipses[best], scale, float(score[best]))


def dark_blobs(work: Grey) -> Floats:
    """Dark blobs of ``work`` as rows ``(x, y, radius)``, (N, 3), the darkest against their surround first."""
    height, width = work.shape
    half = cv2.resize(
        work[: height // 2 * 2, : width // 2 * 2], (width // 2, height // 2), interpolation=cv2.INTER_AREA
    )
    zoom = _COARSE_SIDE / max(half.shape)
    small = cast(Grey, cv2.resize(half, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_LINEAR))
    small = cast(Grey, cv2.morphologyEx(small, cv2.MORPH_OPEN, _DISC))
    zoom = small.shape[1] / width
    darkest = _quantile(small, 0.01)
    rows: list[tuple[float, float, float, float]] = []
    for radius, pixel, response in _centre_surround(small, darkest):
        reach = 2 * min(max(2, int(radius) // pixel), 6 // pixel) + 1
        beaten = np.maximum(cv2.dilate(response, np.ones((reach, reach), np.uint8)), _LEAST_RESPONSE)
        spots = np.flatnonzero(cv2.compare(response, beaten, cv2.CMP_GE))
        strength = response.ravel()[spots]
        for i in np.argsort(-strength)[:_BLOBS_A_SIZE]:
            y, x = divmod(int(spots[i]), response.shape[1])
            at = (pixel * (x + 0.5) / zoom - 0.5, pixel * (y + 0.5) / zoom - 0.5)
            rows.append((float(strength[i]), *at, radius / zoom))
    return _apart(rows)


def _centre_surround(small: Grey, darkest: int) -> Iterator[tuple[float, int, NDArray[np.float32]]]:
    """For every size, how much brighter the squares round a square are than it, against its own darkness.

    Yields a blob's radius in pixels of ``small``, how many of those one pixel of the answer is, and the
    answer.

    Of the four neighbours the second darkest counts: a lid may lie on one side of a pupil, but a straight
    border or a corner has no brighter neighbour on two sides and is no blob.
    """
    fine = small.astype(np.float32)
    high, broad = small.shape
    coarse = np.asarray(
        cv2.resize(
            fine[: high // 2 * 2, : broad // 2 * 2], (broad // 2, high // 2), interpolation=cv2.INTER_AREA
        ),
        np.float32,
    )
    for flat, zoom, halves in ((fine, 1, _SMALL_HALVES), (coarse, 2, _LARGE_HALVES)):
        for half in halves:
            side = 2 * half + 1
            mean = cv2.boxFilter(flat, -1, (side, side), borderType=cv2.BORDER_REPLICATE)
            wide = cv2.copyMakeBorder(mean, side, side, side, side, cv2.BORDER_REPLICATE)
            up, down = wide[: -2 * side, side:-side], wide[2 * side :, side:-side]
            left, right = wide[side:-side, : -2 * side], wide[side:-side, 2 * side :]
            darker = cv2.max(cv2.min(up, down), cv2.min(left, right))
            second = cv2.min(darker, cv2.min(cv2.max(up, down), cv2.max(left, right)))
            contrast = cv2.divide(cv2.subtract(second, mean), mean + np.float32(_DARK - darkest))
            # The largest square in a disc has 0.71 of its radius; a little more still answers best there.
            yield zoom * side / 2 / 0.9, zoom, cast("NDArray[np.float32]", contrast)


def _apart(rows: list[tuple[float, float, float, float]]) -> Floats:
    """The strongest rows of ``(strength, x, y, radius)`` that do not say the same, as (N, 3)."""
    kept: list[tuple[float, float, float, float]] = []
    for row in sorted(rows, reverse=True):
        _, x, y, r = row
        same = any(
            (x - kx) ** 2 + (y - ky) ** 2 < 0.25 * min(r, kr) ** 2 and max(r, kr) < 1.5 * min(r, kr)
            for _, kx, ky, kr in kept
        )
        if not same:
            kept.append(row)
            if len(kept) == _CANDIDATES:
                break
    return np.asarray([row[1:] for row in kept], np.float64).reshape(-1, 3)


def outlines(smooth: NDArray[np.float32], found: Floats) -> Floats:
    """Ellipses (K, 5) of the rims round the blobs ``found`` (N, 3): at most one each."""
    if not len(found):
        return np.zeros((0, 5))
    circles = np.column_stack([found[:, :2], found[:, 2], found[:, 2], np.zeros(len(found))])
    rho, height = _WIDE.strongest_steps(_WIDE.unroll(smooth, circles), 0.4)
    # A pupil has a rim nearly all round; a shadow or a lash has a higher one, but on one side.
    all_round = np.sort(height, 1)[:, rim.RAYS // 4]
    chosen = np.argsort(-all_round)[:_TRACED]
    ellipses, rho, height = circles[chosen], rho[chosen], height[chosen]
    ellipses = _refit(ellipses, rho, height, smooth.shape, 0.12, search=True)
    if len(ellipses) > _REFINED:
        likely = judge.confidence(judge.evidence(smooth, ellipses))
        ellipses = ellipses[np.argsort(-likely)[:_REFINED]]
    for tolerance, search in ((0.16, True), (0.08, False)):
        if not len(ellipses):
            break
        rho, height = _CLOSE.strongest_steps(_CLOSE.unroll(smooth, ellipses), tolerance)
        ellipses = _refit(ellipses, rho, height, smooth.shape, 0.07, search)
    return ellipses


def _refit(
    ellipses: Floats,
    rho: Floats,
    height: Floats,
    shape: tuple[int, ...],
    tolerance: float,
    search: bool,
) -> Floats:
    height = np.maximum(height, 0)
    weight = np.sqrt(np.minimum(height / (np.sort(height, 1)[:, rim.RAYS * 7 // 10, None] + 1e-3), 1))
    x, y = rim.points_at(ellipses, rho)
    size = np.sqrt(ellipses[:, 2] * ellipses[:, 3])
    fitted, real = rim.ellipses_through(x, y, weight, ellipses[:, :2], size, tolerance, search)
    return fitted[real & _possible(fitted, shape)]


def _possible(ellipses: Floats, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which ellipses have a pupil's size and shape and their centre in the picture."""
    rows, columns = shape[:2]
    longest = max(rows, columns)
    axes = np.sort(ellipses[:, 2:4], 1)
    x, y = ellipses[:, 0], ellipses[:, 1]
    sized = (
        (axes[:, 0] > 0.012 * longest)
        & (axes[:, 1] < 0.22 * longest)
        & (axes[:, 0] > rim.SLIMMEST * axes[:, 1])
    )
    return np.asarray(sized & (x > 0) & (y > 0) & (x < columns) & (y < rows))


def _as_grey(frame: NDArray[np.uint8]) -> Grey:
    if frame.dtype != np.uint8 or frame.ndim not in (2, 3):
        raise TypeError(
            f"an eye frame is uint8 of shape (H, W) or (H, W, 3), not {frame.dtype} {frame.shape}"
        )
    return cast(Grey, cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)) if frame.ndim == 3 else frame


def _halved(grey: Grey) -> tuple[Grey, int]:
    """``grey`` halved until it is small enough, and how many of its pixels one pixel then stands for."""
    scale = 1
    while max(grey.shape) > _WORK_SIDE:
        height, width = grey.shape[0] // 2, grey.shape[1] // 2
        grey = cast(
            Grey, cv2.resize(grey[: 2 * height, : 2 * width], (width, height), interpolation=cv2.INTER_AREA)
        )
        scale *= 2
    return grey, scale


def _lit(grey: Grey) -> Grey:
    """``grey``, brightened where hardly anything in it is brighter than a third of white (a weak lamp, 12
    bits of 16): the steps at a rim would be lost among the grey levels."""
    bright = _quantile(grey, 0.98)
    if bright >= _DIM:
        return grey
    return cast(Grey, cv2.convertScaleAbs(grey, alpha=min(2 * _DIM / max(bright, 1), 16.0)))


def _quantile(grey: Grey, share: float) -> int:
    histogram = cv2.calcHist([grey], [0], None, [256], [0, 256]).ravel()
    return int(np.searchsorted(np.cumsum(histogram), share * grey.size))


def _as_pupil(ellipse: NDArray[Any], scale: int, confidence: float) -> Pupil:
    cx, cy, a, b, theta = (float(value) for value in ellipse)
    if a < b:
        a, b, theta = b, a, theta + np.pi / 2
    return Pupil(
        cx=(cx + 0.5) * scale - 0.5,
        cy=(cy + 0.5) * scale - 0.5,
        major=2 * a * scale,
        minor=2 * b * scale,
        angle_deg=float(np.degrees(theta) % 180.0),
        confidence=confidence,
    )
