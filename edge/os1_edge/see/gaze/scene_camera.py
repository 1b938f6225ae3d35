"""Pixels of the scene picture as directions, and back: a pinhole camera."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from os1_edge.see.gaze.rim import Floats


@dataclass(frozen=True, slots=True)
class SceneCamera:
    """Size of the scene picture and its horizontal field of view; no distortion, the axis in the middle."""

    width: int = 640
    height: int = 480
    fov_deg: float = 82.0

    @property
    def focal_px(self) -> float:
        """Focal length in pixels."""
        return self.width / 2 / math.tan(math.radians(self.fov_deg) / 2)

    def direction(self, x: float, y: float) -> tuple[float, float]:
        """Degrees right of and below the axis of pixel ``(x, y)``."""
        return (
            math.degrees(math.atan((x - self.width / 2) / self.focal_px)),
            math.degrees(math.atan((y - self.height / 2) / self.focal_px)),
        )

    def pixel(self, right_deg: float, down_deg: float) -> tuple[float, float]:
        """The pixel of a direction; the inverse of `direction`. Held within 80 degrees of the axis."""
        right, down = (math.radians(max(-80.0, min(80.0, angle))) for angle in (right_deg, down_deg))
        return self.width / 2 + self.focal_px * math.tan(right), self.height / 2 + self.focal_px * math.tan(
            down
        )

    def angles_between(self, first: Floats, second: Floats) -> Floats:
        """Degrees between the rays of two arrays of pixels, each (N, 2), as (N,)."""
        a, b = self._rays(first), self._rays(second)
        # atan2 of cross and dot: exact for small angles, where the arc cosine is not.
        cross = np.linalg.norm(np.cross(a, b), axis=1)
        return np.asarray(np.degrees(np.arctan2(cross, (a * b).sum(1))))

    def _rays(self, pixels: Floats) -> Floats:
        middle = np.asarray([self.width / 2, self.height / 2])
        return np.column_stack([(pixels - middle) / self.focal_px, np.ones(len(pixels))])
