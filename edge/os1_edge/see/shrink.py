"""A picture made smaller before it leaves the device."""

from __future__ import annotations

import cv2
import numpy as np


def shrink(data: bytes, side: int, quality: int) -> bytes:
    """A JPEG or PNG again as a JPEG, its longer side at most ``side`` pixels.

    What cannot be read stays as it is.
    """
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        return data
    height, width = image.shape[:2]
    if (scale := side / max(height, width)) < 1:
        size = max(round(width * scale), 1), max(round(height * scale), 1)
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    made, out = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return out.tobytes() if made else data
