"""Geometry of a pupil's rim, for many candidate ellipses at once: rays, steps along them, conics, ellipses.

An ellipse is a row ``(cx, cy, a, b, theta)``: centre and half axes in pixels of the picture it was found
in, ``theta`` the angle in radians from x (right) to the half axis ``a``, y pointing down. ``K`` ellipses
are an array of shape (K, 5). Rays leave an ellipse's centre at ``RAYS`` even steps of its own angle;
``rho`` is the distance along a ray in units of the ellipse, so that ``rho == 1`` is its rim.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

RAYS = 40
"""A pupil of 30 px has a rim of about 94 px: a ray for every two of them, and cheap enough for ten
candidates."""
HYPOTHESES = 20
"""Five-ray samples for RANSAC. With three good rays in four, 20 samples miss with probability 0.5 %."""
SLIMMEST = 0.33
"""Least ratio of the axes: an eye turned 71 degrees away from the camera."""

_ANGLES = np.arange(RAYS, dtype=np.float32) * np.float32(2 * np.pi / RAYS)
_COS, _SIN = np.cos(_ANGLES), np.sin(_ANGLES)
_UNIT = np.stack([_COS, _SIN])

_RIDGE, _RIDGE_OF_FIVE = 1e-9 * np.eye(5), 1e-6 * np.eye(5)


def _spread_samples() -> NDArray[np.intp]:
    """(HYPOTHESES, 5) ray indices, one from every fifth of the circle: five rays side by side bind no
    ellipse."""
    rng = np.random.default_rng(0)
    fifth = RAYS // 5
    rows = [
        (np.arange(5) * fifth + rng.integers(0, fifth, 5) + rng.integers(0, RAYS)) % RAYS
        for _ in range(HYPOTHESES)
    ]
    return np.asarray(rows, np.intp)


_SAMPLES = _spread_samples()


class Rays:
    """Sample points along the rays of an ellipse, at the same distances for every one."""

    def __init__(self, rho: NDArray[np.float32]) -> None:
        """``rho`` (R,): even distances in units of the ellipse."""
        self.rho = rho
        self._step = rho[1] - rho[0]
        self._circle = np.stack([np.outer(_COS, rho), np.outer(_SIN, rho)]).reshape(2, -1).astype(np.float32)
        self._liked: dict[float, NDArray[np.float32]] = {}

    def unroll(self, picture: NDArray[np.float32], ellipses: Floats) -> NDArray[np.float32]:
        """Brightness along the rays, (K, RAYS, R); beyond the picture's border its edge pixels go on."""
        # One product of matrices; the broadcast sums for it took as long as all the rest.
        x, y = (
            turn @ self._circle + middle[:, None].astype(np.float32)
            for turn, middle in zip(_turned(ellipses), ellipses.T, strict=False)
        )
        shape = (len(ellipses) * RAYS, len(self.rho))
        flat = cv2.remap(
            picture, x.reshape(shape), y.reshape(shape), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        return np.asarray(flat, np.float32).reshape(len(ellipses), RAYS, -1)

    def strongest_steps(self, rays: NDArray[np.float32], tolerance: float) -> tuple[Floats, Floats]:
        """The strongest dark-to-bright step of every ray, nearer ones to ``rho == 1`` preferred.

        ``tolerance`` is the standard deviation, in natural logarithm of ``rho``, of that preference. Returns
        where the step lies (in ``rho``, between samples by a parabola) and how high it is (grey levels), each
        (K, RAYS).
        """
        if tolerance not in self._liked:  # as many as there are calls in the code
            away = np.log(self.rho[2:-2]) / tolerance
            self._liked[tolerance] = np.exp(-0.5 * away * away).astype(np.float32)
        rise = rays[:, :, 2:] - rays[:, :, :-2]
        best = (rise[:, :, 1:-1] * self._liked[tolerance]).argmax(2) + 1
        flat, at = rise.reshape(-1), best + _firsts(rise.shape)
        left, peak, right = flat[at - 1], flat[at], flat[at + 1]
        bend = np.minimum(left - 2 * peak + right, np.float32(-1e-3))
        shift = np.minimum(np.maximum(0.5 * (left - right) / bend, -0.5), 0.5)
        return self.rho[1:-1][best] + shift * self._step, peak


def _firsts(shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Where each ray's first sample lies in the flattened samples."""
    count, rays, steps = shape
    return np.arange(0, count * rays * steps, steps).reshape(count, rays)


def _turned(ellipses: Floats) -> tuple[Floats, Floats]:
    """What takes the unit circle to x and to y of the ellipses, each (K, 2)."""
    flat = ellipses.astype(np.float32)  # 24 bits are a 16,000th of a pixel here, and twice as fast
    cos, sin = np.cos(flat[:, 4]), np.sin(flat[:, 4])
    a, b = flat[:, 2], flat[:, 3]
    return np.array([a * cos, -b * sin]).T, np.array([a * sin, b * cos]).T


def points_at(ellipses: Floats, rho: Floats | float) -> tuple[Floats, Floats]:
    """Picture coordinates x and y, each (K, RAYS), of the points at ``rho``, (K, RAYS) or one for all."""
    across, down = _turned(ellipses)
    x, y = across @ _UNIT, down @ _UNIT
    return x * rho + ellipses[:, 0, None], y * rho + ellipses[:, 1, None]


def ellipses_through(
    x: Floats,
    y: Floats,
    weight: Floats,
    centre: Floats,
    size: Floats,
    tolerance: float,
    search: bool,
) -> tuple[Floats, Mask]:
    """Fits an ellipse to each row of points (K, RAYS) robustly.

    ``tolerance`` is how far, in units of ``size`` (K,), a point may lie from the rim and still count. With
    ``search`` the start comes from RANSAC over five-point conics, else from plain least squares; both are
    followed by a reweighted fit. Returns the ellipses (K, 5) and which of them are ellipses at all.
    """
    u = ((x - centre[:, 0, None]) / size[:, None]).astype(np.float32)
    v = ((y - centre[:, 1, None]) / size[:, None]).astype(np.float32)
    terms = _terms(u, v)
    target = -v * v
    if search:
        conic = _ransac(terms, target, weight, tolerance)
    else:
        conic = _least_squares(terms, target, weight + 1e-6)
    error = _distance(conic[:, None], terms)[:, 0]
    trust = weight * np.maximum(1 - (error / (1.5 * tolerance)) ** 2, 0) ** 2
    conic = _least_squares(terms, target, trust + 1e-6)
    ellipses, real = _as_ellipses(conic)
    ellipses[:, :2] = ellipses[:, :2] * size[:, None] + centre
    ellipses[:, 2:4] *= size[:, None]
    return ellipses, real & np.isfinite(ellipses).all(1)


def _terms(u: Floats, v: Floats) -> Floats:
    """Terms of ``p (u² - v²) + q uv + r u + s v + t = -v²``: a conic scaled so that its trace is 1.

    The trace does not change when the picture turns, so no direction is preferred; five unknowns, five
    points.
    """
    terms = np.ones((*u.shape, 5))
    terms[..., 0], terms[..., 1], terms[..., 2], terms[..., 3] = u * u - v * v, u * v, u, v
    return terms


def _least_squares(terms: Floats, target: Floats, weight: Floats) -> Floats:
    weighted = terms * weight[..., None]
    turned = np.swapaxes(weighted, -1, -2)
    return np.asarray(np.linalg.solve(turned @ terms + _RIDGE, turned @ target[..., None])[..., 0])


def _distance(conic: Floats, terms: Floats) -> Floats:
    """Sampson's first-order distance of points from conics.

    ``conic`` (..., C, 5), ``terms`` (..., RAYS, 5) of `_terms`; returns (..., C, RAYS). All as products of
    matrices: of 120 conics at once, a sum a term would cost twice as much.
    """
    p, q, r, s = (conic[..., i] for i in range(4))
    points = np.swapaxes(terms, -1, -2)
    line = points[..., 2:5, :]  # u, v, 1
    du = np.stack([2 * p, q, r], -1) @ line
    dv = np.stack([q, 2 * (1 - p), s], -1) @ line
    v = points[..., 3:4, :]
    value = conic @ points + v * v
    return np.asarray(value / np.sqrt(du * du + dv * dv + np.float32(1e-6)))


def _ransac(terms: Floats, target: Floats, weight: Floats, tolerance: float) -> Floats:
    count = len(terms)
    conics = np.linalg.solve(terms[:, _SAMPLES] + _RIDGE_OF_FIVE, target[:, _SAMPLES][..., None])[..., 0]
    error = _distance(conics.astype(np.float32), terms.astype(np.float32))
    short, long = _axes(conics)
    fits = (short > SLIMMEST * long) & (short > 0.3) & (long < 2.2)
    votes = (np.maximum(1 - (error / tolerance) ** 2, 0) @ weight[..., None])[..., 0]
    # A round one first: lashes and lid corners make slim ellipses out of thin air.
    votes *= fits * np.where(short > 0.75 * long, 1.0, 0.8)
    return np.asarray(conics[np.arange(count), votes.argmax(1)])


def _axes(conic: Floats) -> tuple[Floats, Floats]:
    """Half axes (..., C) of conics (..., C, 5), the shorter one first; none where it is no ellipse."""
    p, q, r, s, t = (conic[..., i] for i in range(5))
    c = 1 - p
    det = np.maximum(4 * p * c - q * q, 1e-3)
    # The constant once the middle is moved to (0, 0).
    level = (c * r * r - q * r * s + p * s * s) / det - t
    half = 0.5 * np.sqrt((p - c) ** 2 + q * q)
    scale = np.sqrt(np.maximum(level, 0))
    return scale / np.sqrt(0.5 + half), scale / np.sqrt(np.maximum(0.5 - half, 1e-3))


def _as_ellipses(conic: Floats) -> tuple[Floats, Mask]:
    """Centre, half axes and angle of conics (K, 5), and which of them are real ellipses."""
    a, b, d, e, f = (conic[:, i] for i in range(5))
    c = 1 - a
    det = 4 * a * c - b * b
    real = det > 1e-3
    safe = np.where(real, det, 1.0)
    x0, y0 = (b * e - 2 * c * d) / safe, (b * d - 2 * a * e) / safe
    level = -(f + 0.5 * (d * x0 + e * y0))
    theta = 0.5 * np.arctan2(b, a - c)
    half = 0.5 * np.sqrt((a - c) ** 2 + b * b)
    first, second = level / np.where(real, 0.5 + half, 1.0), level / np.where(real, 0.5 - half, 1.0)
    real &= (first > 1e-3) & (second > 1e-3)
    axes = np.sqrt(np.abs(np.stack([first, second], -1)))
    return np.column_stack([x0, y0, axes, theta]), real
