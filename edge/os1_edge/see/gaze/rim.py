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


def points_at(ellipses: Floats, rho: Floats) -> tuple[Floats, Floats]:
    """Picture coordinates at ``rho`` along the rays.

    ``rho`` is of shape (R,), the same for all rays, or (K, RAYS, R). Returns x and y, each (K, RAYS, R).
    """
    flat = ellipses.astype(np.float32)  # 24 bits are a 16,000th of a pixel here, and twice as fast
    cos, sin = np.cos(flat[:, 4, None]), np.sin(flat[:, 4, None])
    along, across = flat[:, 2, None] * _COS, flat[:, 3, None] * _SIN
    dx, dy = cos * along - sin * across, sin * along + cos * across
    rho = rho.astype(np.float32, copy=False)
    return flat[:, 0, None, None] + dx[:, :, None] * rho, flat[:, 1, None, None] + dy[:, :, None] * rho


def unroll(picture: NDArray[np.float32], ellipses: Floats, rho: Floats) -> NDArray[np.float32]:
    """Brightness along the rays, (K, RAYS, R); beyond the picture's border its edge pixels go on."""
    x, y = points_at(ellipses, rho)
    count, rays, steps = x.shape
    flat = cv2.remap(
        picture,
        x.reshape(count * rays, steps),
        y.reshape(count * rays, steps),
        cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.asarray(flat, np.float32).reshape(count, rays, steps)


def strongest_steps(
    rays: NDArray[np.float32], rho: NDArray[np.float32], tolerance: float
) -> tuple[Floats, Floats]:
    """The strongest dark-to-bright step of every ray, nearer ones to ``rho == 1`` preferred.

    ``tolerance`` is the standard deviation, in natural logarithm of ``rho``, of that preference. Returns
    where the step lies (in ``rho``, between samples by a parabola) and how high it is (grey levels), each
    (K, RAYS).
    """
    rise = rays[:, :, 2:] - rays[:, :, :-2]
    where = rho[1:-1]
    liked = np.exp(-0.5 * (np.log(where) / tolerance) ** 2).astype(np.float32)
    best = (rise[:, :, 1:-1] * liked[1:-1]).argmax(2) + 1
    k, n = np.ogrid[: rise.shape[0], : rise.shape[1]]
    left, peak, right = rise[k, n, best - 1], rise[k, n, best], rise[k, n, best + 1]
    bend = np.minimum(left - 2 * peak + right, -1e-3)
    shift = np.clip(0.5 * (left - right) / bend, -0.5, 0.5)
    return where[best] + shift * (rho[1] - rho[0]), peak


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
        conic = _ransac(terms, target, u, v, weight, tolerance)
    else:
        conic = _least_squares(terms, target, weight + 1e-6)
    error = _distance(conic, u, v)
    trust = weight * np.clip(1 - (error / (1.5 * tolerance)) ** 2, 0, None) ** 2
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
    return np.stack([u * u - v * v, u * v, u, v, np.ones_like(u)], -1).astype(np.float64)


def _least_squares(terms: Floats, target: Floats, weight: Floats) -> Floats:
    weighted = terms * weight[..., None]
    square = np.swapaxes(weighted, -1, -2) @ terms + 1e-9 * np.eye(5)
    return np.asarray(np.linalg.solve(square, (np.swapaxes(weighted, -1, -2) @ target[..., None]))[..., 0])


def _distance(conic: Floats, u: Floats, v: Floats) -> Floats:
    """Sampson's first-order distance of the points from the conic, (..., RAYS)."""
    p = conic[..., None, :]
    du = 2 * p[..., 0] * u + p[..., 1] * v + p[..., 2]
    dv = 2 * (1 - p[..., 0]) * v + p[..., 1] * u + p[..., 3]
    # Euler: twice a conic is its slope along (u, v), and its linear terms once more, and its constant twice.
    value = 0.5 * (du * u + dv * v + p[..., 2] * u + p[..., 3] * v) + p[..., 4]
    return np.asarray(value / np.sqrt(du * du + dv * dv + 1e-6))


def _ransac(terms: Floats, target: Floats, u: Floats, v: Floats, weight: Floats, tolerance: float) -> Floats:
    count = len(terms)
    conics = np.linalg.solve(terms[:, _SAMPLES] + 1e-6 * np.eye(5), target[:, _SAMPLES][..., None])[..., 0]
    error = _distance(conics.astype(np.float32), u[:, None], v[:, None])
    ellipses, real = _as_ellipses(conics.reshape(-1, 5))
    axes = np.sort(ellipses[:, 2:4], 1)
    fits = real & (axes[:, 0] > SLIMMEST * axes[:, 1]) & (axes[:, 0] > 0.3) & (axes[:, 1] < 2.2)
    votes = (np.clip(1 - (error / tolerance) ** 2, 0, None) * weight[:, None]).sum(-1)
    # A round one first: lashes and lid corners make slim ellipses out of thin air.
    votes *= (fits * np.where(axes[:, 0] > 0.75 * axes[:, 1], 1.0, 0.8)).reshape(count, -1)
    return np.asarray(conics[np.arange(count), votes.argmax(1)])


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
