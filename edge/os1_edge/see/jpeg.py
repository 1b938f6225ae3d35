"""A frame as a JPEG of at most so many bytes: what the link can carry decides the quality, not a constant."""

from dataclasses import dataclass
from math import exp, log

import cv2
import numpy as np

from os1_edge.events import Image

QUALITIES = (90, 85, 80, 75, 70, 60, 50, 40, 30, 20, 10)
"""Tried from the guess on. 640 x 480 glasses photos: q90 53 kB, q80 35 kB, q50 21 kB (medians)."""
SMALLER = 0.7
"""Scale of the next try where even the worst quality is too large."""
LEAST_SIDE = 64
FAR_BELOW = 0.75
"""Share of the budget below which the next better quality is worth another encoding."""
USUAL_BYTES = {90: 52_500, 85: 40_900, 80: 34_700, 75: 30_600, 70: 28_100, 60: 24_500, 50: 21_400, 40: 18_000,
               30: 14_800, 20: 11_000, 10: 6_800}  # fmt: skip
"""Bytes of a typical photo at 640 x 480, to guess the first quality; 60 and below 50 are interpolated."""


@dataclass(frozen=True, slots=True)
class Jpeg:
    """An encoded frame."""

    data: bytes
    quality: int
    width: int
    height: int
    fits: bool
    """False where even the smallest picture is above the budget."""


class JpegEncoder:
    """Encodes to a byte budget; learns from the last frame how heavy the scene is: one try is the rule."""

    def __init__(self) -> None:
        self._heaviness = 1.0
        """Bytes of the last frame over those of a typical one at its quality and size."""

    def encode(self, image: Image, budget: int) -> Jpeg:
        """`image` (uint8 BGR) in at most `budget` bytes: at the best quality that fits, else smaller.

        Raises `ValueError` for a budget that is not positive.
        """
        if budget <= 0:
            raise ValueError(f"a budget of {budget} bytes holds no picture")
        while True:
            made = self._at_this_size(image, budget)
            height, width = image.shape[:2]
            if made.fits or min(height, width) * SMALLER < LEAST_SIDE:
                return made
            size = round(width * SMALLER), round(height * SMALLER)
            image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)

    def _at_this_size(self, image: Image, budget: int) -> Jpeg:
        scale = image.shape[0] * image.shape[1] / (640 * 480)
        at = self._guess(budget, scale)
        made = self._try(image, at, budget, scale)
        # Down until it fits: each failure teaches how heavy the frame is, so this is one step as a rule.
        while not made.fits and at + 1 < len(QUALITIES):
            at = max(at + 1, self._guess(budget, scale))
            made = self._try(image, at, budget, scale)
        if made.fits and at > 0 and len(made.data) < FAR_BELOW * budget:
            better = self._try(image, at - 1, budget, scale)
            return better if better.fits else made
        return made

    def _try(self, image: Image, at: int, budget: int, scale: float) -> Jpeg:
        made = _encode(image, QUALITIES[at], budget)
        usual = USUAL_BYTES[made.quality] * scale
        self._heaviness = exp(min(max(log(len(made.data) / usual), -3), 3))
        return made

    def _guess(self, budget: int, scale: float) -> int:
        """Index of the best quality expected to fit, five percent kept in hand."""
        for index, quality in enumerate(QUALITIES):
            if USUAL_BYTES[quality] * scale * self._heaviness * 1.05 <= budget:
                return index
        return len(QUALITIES) - 1


def _encode(image: Image, quality: int, budget: int) -> Jpeg:
    good, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not good:
        raise ValueError("the frame could not be encoded")
    height, width = image.shape[:2]
    return Jpeg(data.tobytes(), quality, width, height, len(data) <= budget)


def frame_budget(bytes_per_s: float, seconds: float, most: int = 60_000, least: int = 6_000) -> int:
    """Bytes that a frame may have on a link of `bytes_per_s` when it may take `seconds` of it."""
    return int(min(max(bytes_per_s * seconds, least), most))
