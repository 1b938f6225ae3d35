"""The calibration marker in a scene picture: an ArUco square (dictionary 4x4_50, number 0), printed or on a
phone."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_NUMBER = 0
_DICTIONARY = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
_DETECTOR = cv2.aruco.ArucoDetector(_DICTIONARY)


def find_marker(scene: NDArray[np.uint8]) -> tuple[float, float] | None:
    """Pixel of the marker's middle in ``scene`` (BGR or grey uint8), or ``None``."""
    corners, numbers, _ = _DETECTOR.detectMarkers(scene)
    if numbers is None:
        return None
    for square, number in zip(corners, np.asarray(numbers).ravel(), strict=True):
        if int(number) == _NUMBER:
            x, y = np.asarray(square).reshape(4, 2).mean(0)
            return float(x), float(y)
    return None


def draw_marker(side_px: int = 600) -> NDArray[np.uint8]:
    """The marker with its white rim, grey uint8 (side_px, side_px), to be printed or shown."""
    black = cv2.aruco.generateImageMarker(_DICTIONARY, _NUMBER, side_px * 6 // 8)
    rim = (side_px - black.shape[0]) // 2
    page = np.full((side_px, side_px), 255, np.uint8)
    page[rim : rim + black.shape[0], rim : rim + black.shape[1]] = black
    return page
