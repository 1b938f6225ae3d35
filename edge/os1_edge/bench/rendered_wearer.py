"""A wearer made of rendered eyes: looks at known places of the scene picture, behind glasses that slip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from os1_edge.bench.rendered_eye import RenderedEye, Vector, gaze_direction
from os1_edge.see.gaze.scene_camera import SceneCamera

FIVE = ((0.0, 0.0), (-15.0, -10.0), (15.0, -10.0), (-15.0, 10.0), (15.0, 10.0))
"""Directions of a five-point calibration, degrees right and down."""
_SCENE_AT = np.asarray([25.0, -22.0, 12.0])
"""Where the scene camera is, mm from the eye: on the frame's other side of the lens."""
_TREMOR_DEG = 0.1
"""Standard deviation of the eye about its target."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One eye frame, and the scene pixel that was looked at."""

    frame: NDArray[np.uint8]
    x: float
    y: float


class RenderedWearer:
    """One wearer, told apart by ``seed``: pupil, iris, skin, lids and the eye camera's place differ."""

    def __init__(self, seed: int, scene: SceneCamera | None = None) -> None:
        rng = np.random.default_rng(seed)
        x, y, z = np.asarray([-13.0, 17.0, 34.0]) + rng.uniform(-3, 3, 3)
        self.scene = scene or SceneCamera()
        self.eye = RenderedEye(
            camera=(float(x), float(y), float(z)),
            pupil_mm=rng.uniform(1.5, 2.6),
            iris_level=rng.uniform(75, 125),
            skin_level=rng.uniform(130, 190),
            lid_open=rng.uniform(0.45, 0.6),
        )
        self.slip = np.zeros(3)
        self._rng = rng

    @property
    def eye_size(self) -> tuple[int, int]:
        """Width and height of the eye frames."""
        return self.eye.width, self.eye.height

    def slipped(self, x: float, y: float, z: float) -> None:
        """The glasses move, mm to the wearer's right, down and ahead: both cameras with them."""
        self.slip = np.asarray([x, y, z])
        self.eye = self.eye.slipped(x, y, z)

    def look(self, right_deg: float, down_deg: float, frames: int = 1) -> Iterator[Shown]:
        """Looks at a thing in that direction, 0.6 to 2 m away, for so many frames."""
        thing = gaze_direction(right_deg, down_deg) * self._rng.uniform(600, 2000)
        x, y = self._pixel(thing)
        for _ in range(frames):
            tremor = np.radians([*self._rng.normal(0, _TREMOR_DEG, 2), 0.0])
            eye = replace(self.eye, pupil_mm=self.eye.pupil_mm * self._rng.uniform(0.93, 1.07))
            yield Shown(eye.picture(thing / np.linalg.norm(thing) + tremor, self._rng), x, y)

    def anywhere(self, count: int) -> Iterator[Shown]:
        """``count`` frames, each of another direction within 17 by 11 degrees."""
        for _ in range(count):
            yield from self.look(self._rng.uniform(-17, 17), self._rng.uniform(-11, 11))

    def blink(self) -> NDArray[np.uint8]:
        """A frame with the eye closed."""
        return replace(self.eye, lid_open=-0.45).picture(gaze_direction(0, 0), self._rng)

    def _pixel(self, thing: Vector) -> tuple[float, float]:
        right, down, ahead = thing - (_SCENE_AT + self.slip)
        focal = self.scene.focal_px
        return (
            float(self.scene.width / 2 + focal * right / ahead),
            float(self.scene.height / 2 + focal * down / ahead),
        )
