"""Calibration with live cameras: the wearer looks at the marker, in five places, until each is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.see.gaze.calibration import CONFIDENT, CalibrationError, Look
from os1_edge.see.gaze.looks import Looks
from os1_edge.see.gaze.marker import find_marker
from os1_edge.see.gaze.pupil import find_pupil

PLACES = (
    "in the middle",
    "at the upper left",
    "at the upper right",
    "at the lower left",
    "at the lower right",
)
FRAMES = 20
"""Frames with pupil and marker that a place needs: two thirds of a second."""
_APART = 0.12
"""A new place is at least this share of the picture's width away from those before."""
_PATIENCE_S = 20.0


class Camera(Protocol):
    """What gives frames: a device, or a file that stands for one."""

    def read(self) -> tuple[bool, NDArray[np.uint8]]:
        """Whether there is a frame, and the frame."""
        ...


class Device:
    """A camera of this machine."""

    def __init__(self, index: int, name: str) -> None:
        """Opens camera ``index``. Raises `CalibrationError` where there is none."""
        # OpenCV tells on its own of a camera that is not there, in words that help nobody.
        level = cv2.utils.logging.getLogLevel()
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
        try:
            self._capture = cv2.VideoCapture(index)
        finally:
            cv2.utils.logging.setLogLevel(level)
        if not self._capture.isOpened():
            self._capture.release()
            raise CalibrationError(
                f"no {name} camera at index {index}; connect one, or give a recording instead of --live"
            )

    def read(self) -> tuple[bool, NDArray[np.uint8]]:
        """Whether there is a frame, and the frame."""
        good, frame = self._capture.read()
        return good, np.asarray(frame, np.uint8)

    def close(self) -> None:
        """Gives the camera back."""
        self._capture.release()


def gather(
    eye: Camera,
    scene: Camera,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Looks:
    """Asks for a look at the marker in five places and gathers the frames. Raises `CalibrationError`, with
    what was missing, when a place is not done within 20 s: the wearer is told during the flow, not after
    it."""
    looks: list[Look] = []
    places: list[tuple[float, float]] = []
    sizes: list[tuple[int, int]] = []
    for number, name in enumerate(PLACES):
        tell(f"Look at the marker {name} of the picture, or turn the head until it is there.")
        begun, got = clock(), 0
        no_pupil = no_marker = 0
        while got < FRAMES:
            if clock() - begun > _PATIENCE_S:
                missing = "the pupil" if no_pupil > no_marker else "the marker, at a new place,"
                raise CalibrationError(f"{missing} was not seen for long enough; see to it and begin again")
            frames = _both(eye, scene)
            place = find_marker(frames[1])
            sizes = [(f.shape[1], f.shape[0]) for f in frames]
            if place is None or any(
                np.hypot(place[0] - x, place[1] - y) < _APART * sizes[1][0] for x, y in places
            ):
                no_marker += 1
                continue
            pupil = find_pupil(frames[0])
            if pupil is None or pupil.confidence < CONFIDENT:
                no_pupil += 1
            else:
                got += 1
            looks.append(Look(number, *place, pupil))
        places.append((looks[-1].x, looks[-1].y))
    return Looks(tuple(looks), sizes[0], sizes[1])


def _both(eye: Camera, scene: Camera) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    good_eye, eye_frame = eye.read()
    good_scene, scene_frame = scene.read()
    if not good_eye or not good_scene:
        raise CalibrationError(f"the {'scene' if good_eye else 'eye'} camera stopped giving pictures")
    return eye_frame, scene_frame
