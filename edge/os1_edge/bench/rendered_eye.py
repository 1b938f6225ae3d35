"""Near-eye infrared pictures of a three-dimensional eye whose gaze is known: to measure gaze without a
wearer.

Lengths in millimetres. The eye turns about the origin; x points to the wearer's right as seen in the scene
picture, y down, z ahead. The eye camera stands below and beside the eye and looks at it. The eyeball is a
ball with a flat iris painted on (no refraction by the cornea); lids, lashes, two glints, skin, shading,
blur and noise are drawn, because a detector has to get past them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.see.gaze.pupil import Pupil

Vector = NDArray[np.float64]

_BALL = 12.0
_IRIS = 5.9
_CORNEA_AT, _CORNEA = 5.6, 7.8
_LAMPS = (np.asarray([-6.0, 4.0, 0.0]), np.asarray([7.0, 2.0, 0.0]))
"""Where the lamps stand, from the eye camera."""


@dataclass(frozen=True)
class RenderedEye:
    """An eye, its lids and its camera. `picture` draws it."""

    width: int = 192
    height: int = 152
    camera: tuple[float, float, float] = (-13.0, 17.0, 34.0)
    focal_px: float = 230.0
    pupil_mm: float = 2.1
    """Radius of the pupil."""
    iris_level: float = 95.0
    skin_level: float = 165.0
    lid_open: float = 0.55
    """Height of the upper lid's edge over the eye's middle, in radians; the lower one's lies 0.45 below it.
    -0.45 is a closed eye."""
    noise: float = 2.5
    """Standard deviation, grey levels."""
    slip: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How far the glasses, and so the eye camera, have moved, mm."""

    def slipped(self, x: float, y: float, z: float) -> RenderedEye:
        """The same eye behind glasses that have moved by so much."""
        return replace(self, slip=(x, y, z))

    def picture(self, gaze: Vector, rng: np.random.Generator) -> NDArray[np.uint8]:
        """The eye looking along ``gaze`` (3,), as grey uint8 of shape (height, width)."""
        gaze = gaze / np.linalg.norm(gaze)
        rays, origin = self._rays()
        along = rays @ origin
        inside = along * along - (origin @ origin - _BALL * _BALL)
        hit = inside > 0
        reach = -along - np.sqrt(np.where(hit, inside, 0))
        point = origin + rays * reach[..., None]
        skin = self._skin(rng)
        value = np.where(hit, self._ball(point, gaze, rng), skin)
        # The lids: where the ball is hidden by skin. They are highest in the middle and meet at the corners.
        up = np.arcsin(np.clip(-point[..., 1] / _BALL, -1, 1))
        side = np.clip(point[..., 0] / 11.0, -1, 1)
        arch = np.sqrt(np.clip(1 - side * side, 0, 1))
        upper, lower = self.lid_open * arch, -0.45 * arch
        covered = ~hit | (up > upper) | (up < lower) | (point[..., 2] < 0)
        value = np.where(covered, skin - 25 * (np.abs(up - upper) < 0.05), value)
        small = cv2.resize(value.astype(np.float32), (self.width, self.height), interpolation=cv2.INTER_AREA)
        self._lashes(small, rng)
        if self.lid_open > 0.1:
            self._glints(small, gaze)
        small = cv2.GaussianBlur(small, (0, 0), 0.7) + rng.normal(0, self.noise, small.shape)
        return np.asarray(np.clip(small, 0, 255), np.uint8)

    def _axes(self) -> tuple[Vector, Vector]:
        """Rotation (3, 3) from the eye's axes to the camera's, and where the camera is."""
        origin = np.asarray(self.camera) + np.asarray(self.slip)
        # It was aimed before the glasses slipped, and turns no more.
        ahead = np.asarray([0.0, 0.0, 8.0]) - np.asarray(self.camera)
        ahead = ahead / np.linalg.norm(ahead)
        right = np.cross(np.asarray([0.0, 1.0, 0.0]), ahead)
        right = right / np.linalg.norm(right)
        return np.stack([right, np.cross(ahead, right), ahead]), origin

    def _rays(self) -> tuple[Vector, Vector]:
        rotation, origin = self._axes()
        rows, columns = np.mgrid[0 : 2 * self.height, 0 : 2 * self.width] / 2.0 - 0.25
        rays = np.stack(
            [
                (columns - (self.width - 1) / 2) / self.focal_px,
                (rows - (self.height - 1) / 2) / self.focal_px,
                np.ones_like(rows),
            ],
            -1,
        )
        rays = rays @ rotation
        return rays / np.linalg.norm(rays, axis=-1, keepdims=True), origin

    def project(self, point: Vector) -> tuple[float, float]:
        """Pixel of a point in the eye's axes."""
        rotation, origin = self._axes()
        x, y, z = rotation @ (point - origin)
        return (
            float(x / z * self.focal_px + (self.width - 1) / 2),
            float(y / z * self.focal_px + (self.height - 1) / 2),
        )

    def pupil(self, gaze: Vector) -> Pupil:
        """The ellipse that the pupil really is in `picture`, as sure as can be."""
        gaze = gaze / np.linalg.norm(gaze)
        side = np.cross(gaze, [0.0, 1.0, 0.0])
        side = side / np.linalg.norm(side)
        up = np.cross(side, gaze)
        depth = np.sqrt(_BALL**2 - self.pupil_mm**2)
        rim = np.asarray(
            [
                self.project(gaze * depth + self.pupil_mm * (np.cos(a) * side + np.sin(a) * up))
                for a in np.linspace(0, 2 * np.pi, 48, endpoint=False)
            ]
        )
        # Points spread evenly over an ellipse have half the squares of its half axes as their variances.
        (minor, major), axes = np.linalg.eigh(np.cov(rim.T, bias=True))
        return Pupil(
            cx=float(rim[:, 0].mean()),
            cy=float(rim[:, 1].mean()),
            major=float(2 * np.sqrt(2 * major)),
            minor=float(2 * np.sqrt(2 * minor)),
            angle_deg=float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])) % 180),
            confidence=1.0,
        )

    def _ball(self, point: Vector, gaze: Vector, rng: np.random.Generator) -> Vector:
        from_axis = np.arccos(np.clip(point @ gaze / _BALL, -1, 1))
        pupil, iris = np.arcsin(self.pupil_mm / _BALL), np.arcsin(_IRIS / _BALL)
        turn = np.arctan2(point[..., 1], point[..., 0])
        fibres = 8 * np.sin(23 * turn + 3 * rng.random()) * np.sin(9 * from_axis / iris)
        shade = 0.75 + 0.25 * np.clip(point[..., 2] / _BALL, 0, 1)
        value = np.where(from_axis < iris, self.iris_level + fibres, 175.0) * shade
        return np.asarray(np.where(from_axis < pupil, 28.0, value))

    def _skin(self, rng: np.random.Generator) -> Vector:
        coarse = rng.normal(0, 9, (self.height // 16, self.width // 16)).astype(np.float32)
        size = (2 * self.width, 2 * self.height)
        wrinkles = cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)
        fall = np.linspace(1.05, 0.85, 2 * self.width)
        return np.asarray(self.skin_level * fall + wrinkles, np.float64)

    def _lashes(self, canvas: NDArray[Any], rng: np.random.Generator) -> None:
        for side in np.linspace(-0.8, 0.8, 22):
            up = self.lid_open * np.sqrt(1 - side * side)
            x, y = _BALL * 0.9 * side, -_BALL * np.sin(up)
            z = np.sqrt(max(_BALL**2 - x * x - y * y, 1.0))
            root = np.asarray([x, y, z])
            bend = np.asarray([side * 2 + rng.normal(0, 0.3), rng.normal(0.3, 0.6), 3.0])
            tip = np.asarray([side * 2, rng.normal(-2.0, 0.5), 2.0])
            line = [
                self.project(p) for p in (root, root + bend * 0.6, root + bend + tip * 0.5, root + bend + tip)
            ]
            cv2.polylines(
                canvas, [np.round(np.asarray(line) * 8).astype(np.int32)], False, 45.0, 1, cv2.LINE_AA, 3
            )

    def _glints(self, canvas: NDArray[Any], gaze: Vector) -> None:
        _, origin = self._axes()
        middle = gaze * _CORNEA_AT
        for lamp in _LAMPS:
            half = (origin - middle) / np.linalg.norm(origin - middle)
            to_lamp = origin + lamp - middle
            half = half + to_lamp / np.linalg.norm(to_lamp)
            x, y = self.project(middle + _CORNEA * half / np.linalg.norm(half))
            cv2.circle(canvas, (round(x * 8), round(y * 8)), 16, 250.0, -1, cv2.LINE_AA, 3)


def gaze_direction(right_deg: float, down_deg: float) -> Vector:
    """Unit vector (3,) of a direction."""
    right, down = np.radians([right_deg, down_deg])
    ray = np.asarray([np.tan(right), np.tan(down), 1.0])
    return np.asarray(ray / np.linalg.norm(ray), np.float64)
