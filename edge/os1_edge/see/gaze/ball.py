"""From a pupil's place to gaze through a model of the eye: a ball that turns, seen by a camera that stands
still.

A polynomial has to learn the curvature of the eye from targets, and five are too few for it. The ball knows
it: three numbers say how the eye camera is turned against the scene camera, and the ball's middle, its
radius and its nearness only have to be put right a little (Swirski and Dodgson 2013 use such a ball; so
does pye3d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from os1_edge.see.gaze.rim import Floats
from os1_edge.see.gaze.scene_camera import SceneCamera

NEARNESS = 0.25
"""Turning radius of the pupil (10 mm) over the eye camera's distance, as on most glasses; it is fitted
too."""
_SIGMAS = np.asarray([10.0, 10.0, 10.0, 0.04, 0.04, 0.12, 0.08])
"""How far the fit may go from its start, as standard deviations: three turns in radians (free), the middle in
radii, the radius in logarithm, the nearness."""
_TARGET_DEG = 0.5
"""Standard deviation of a look at a target, which is weighed against those."""


@dataclass(frozen=True, slots=True)
class Ball:
    """A fitted eye. ``view`` (3, 3) takes a gaze in the eye camera's axes to scene pixels, times their
    depth."""

    middle: tuple[float, float]
    radius: float
    nearness: float
    view: tuple[tuple[float, float, float], ...]

    def __call__(self, pupils: Floats) -> Floats:
        """Scene pixels (N, 2) of pupil centres (N, 2)."""
        ray = _gaze((pupils - np.asarray(self.middle)) / self.radius, self.nearness) @ np.asarray(self.view).T
        # Behind the scene camera there is no pixel; 0.05 is 87 degrees from its axis.
        return np.asarray(ray[:, :2] / np.maximum(ray[:, 2:], 0.05))


def _gaze(offset: Floats, nearness: float) -> Floats:
    """Unit gaze (N, 3) in the eye camera's axes (right, down, ahead) of the pupil's offset in radii (N, 2).

    offset = g / (1 - nearness * c), with g the gaze across the view and c its part towards the camera; g and
    c make a unit vector, so c solves a quadratic. A pupil past the ball's edge is taken to be at it.
    """
    square = (offset * offset).sum(1)
    a = square * nearness * nearness + 1
    root = np.sqrt(np.maximum(square * square * nearness * nearness - a * (square - 1), 0))
    towards = (nearness * square + root) / a
    across = offset * (1 - nearness * towards)[:, None]
    gaze = np.column_stack([across, -towards])
    return np.asarray(gaze / np.linalg.norm(gaze, axis=1, keepdims=True))


def fit_ball(
    pupils: Floats,
    targets: Floats,
    weight: Floats,
    eyeball: tuple[float, float, float],
    scene: SceneCamera,
) -> Ball | None:
    """Fits the ball to pupil centres (N, 2) and scene pixels (N, 2); ``eyeball`` is (x, y, radius) to start
    from.

    Gauss-Newton with Huber's weights. ``None`` where it finds nothing.
    """
    focal = scene.focal_px
    tangents = (targets - np.asarray([scene.width / 2, scene.height / 2])) / focal
    rays = np.column_stack([tangents, np.ones(len(tangents))])
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    x, y, radius = eyeball
    start = _gaze((pupils - np.asarray([x, y])) / radius, NEARNESS)
    turn = _nearest_turn(start, rays, weight)

    def miss(p: Floats) -> Floats:
        ray = _seen(pupils, p, (x, y, radius)) @ (_rotation(p[:3]) @ turn).T
        if (ray[:, 2] < 0.05).any():
            return np.full(2 * len(pupils), 1e3)
        return np.asarray((ray[:, :2] / ray[:, 2:] - tangents).ravel() / np.radians(_TARGET_DEG))

    p = np.zeros(7)
    for _ in range(12):
        error = miss(p)
        size = np.hypot(error[::2], error[1::2])
        limit = max(2.0, 1.5 * 1.48 * float(np.median(size)))
        kept = np.minimum(1, limit / np.maximum(size, 1e-9))
        trust = np.repeat(np.sqrt(weight / weight.max() * kept), 2)
        slope = np.column_stack([(miss(p + step) - error) / 1e-4 for step in 1e-4 * np.eye(7)])
        rows = np.vstack([slope * trust[:, None], np.diag(1 / _SIGMAS)])
        step = np.linalg.lstsq(rows, -np.concatenate([error * trust, p / _SIGMAS]), rcond=None)[0]
        p = p + step
        if np.abs(step).max() < 1e-6:
            break
    if not np.isfinite(p).all() or np.abs(miss(p)).max() >= 1e3:
        return None
    camera = np.asarray([[focal, 0, scene.width / 2], [0, focal, scene.height / 2], [0, 0, 1.0]])
    view = camera @ _rotation(p[:3]) @ turn
    return Ball(
        middle=(float(x + radius * p[3]), float(y + radius * p[4])),
        radius=float(radius * np.exp(p[5])),
        nearness=float(NEARNESS + p[6]),
        view=tuple((float(a), float(b), float(c)) for a, b, c in view),
    )


def _nearest_turn(start: Floats, rays: Floats, weight: Floats) -> Floats:
    """The orthogonal map (3, 3) nearest to gaze -> ray (Kabsch); a reflection for a mirrored picture."""
    u, _, vt = np.linalg.svd((rays * weight[:, None]).T @ start)
    return np.asarray(u @ vt)


def _seen(pupils: Floats, p: Floats, eyeball: tuple[float, float, float]) -> Floats:
    x, y, radius = eyeball
    middle = np.asarray([x, y]) + radius * p[3:5]
    return _gaze((pupils - middle) / (radius * np.exp(p[5])), float(NEARNESS + p[6]))


def _rotation(turn: Floats) -> Floats:
    """Rotation matrix of a rotation vector (Rodrigues)."""
    angle = float(np.linalg.norm(turn))
    if angle < 1e-12:
        return np.eye(3)
    x, y, z = turn / angle
    cross = np.asarray([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)
