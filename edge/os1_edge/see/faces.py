"""Faces in a picture, by CenterFace on OpenCV's own engine, and their removal before it goes anywhere.

CenterFace (Xu et al., 2019) marks a face at a quarter of the picture's scale: a heat map of centres, and for
each the logarithm of height and width and the centre's rest. It knows upright faces; a camera that hangs on
its side or is put down on a table sees them turned, so the picture is looked at in four turns.

A face is taken out by coarse mosaic, and the result is looked at again: what is still found as a face is made
coarser, down to one colour. A picture in which a face stays found is not handed out.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.events import Image

Box = tuple[int, int, int, int]
"""x, y, width, height in pixels."""
Floats = NDArray[np.float32]

LONG_SIDE = 640
"""Pixels of the longer side that the network is given; a face of 25 pixels there is found."""
TURNS = (0, 2, 3, 1)
"""Quarter turns counter-clockwise to look at: upright, upside down, then on either side."""
SURE = 0.5
"""Score from which something is said to be a face. On the shared photos nothing else reaches 0.4."""
SUSPECTED = 0.25
"""Score from which it is taken out: a wrongly blurred lamp costs less than a bystander's face."""
SAME_FACE_IOU = 0.3
MAX_FACES = 64
"""More than this in 640 pixels is a pattern, and the rest of the work is bounded."""
MARGIN = 0.25
"""Share of the box added on each side, for hair, chin and a turn of the head."""
CELLS = (5, 3, 1)
"""Mosaic cells along a face's longer side, round after round."""
_OUTPUTS = ("537", "538", "539", "540")
"""CenterFace's names for heat map, sizes, offsets and landmarks: OpenCV 5 wants all of them named."""


@dataclass(frozen=True, slots=True)
class Face:
    """A face, wherever its chin points."""

    score: float
    """0..1; the network's own, not calibrated."""
    box: Box
    """Inside the picture."""


@dataclass(frozen=True, slots=True)
class Blurred:
    """A picture without faces."""

    image: Image
    """The one given where it had none; else a copy."""
    faces: tuple[Face, ...]
    """What was taken out."""
    rounds: int
    """Times that something was taken out; 0 where there was no face."""


class FaceStays(Exception):
    """A face was still found after it had been taken out: the picture must not leave the device."""


class Finder(Protocol):
    """What `blur_faces` needs: `FaceFinder` has it."""

    def find(self, image: Image, least: float = SURE) -> tuple[Face, ...]: ...


class FaceFinder:
    """The network; safe to share between threads (one picture at a time).

    Raises `FileNotFoundError` or `ValueError` when the model is missing or is no CenterFace.
    """

    def __init__(self, model: Path, turns: Sequence[int] = TURNS) -> None:
        if not Path(model).is_file():
            raise FileNotFoundError(f"face detector: no such file: {model}")
        try:
            self._net: Any = cv2.dnn.readNetFromONNX(str(model))
        except cv2.error as error:
            raise ValueError(f"face detector: {model} is no network that can be read") from error
        self._turns = tuple(turns)
        self._lock = threading.Lock()

    def find(self, image: Image, least: float = SURE) -> tuple[Face, ...]:
        """Faces in `image` (uint8 BGR, height x width x 3) that score `least` or more, best first."""
        small = shrink(image, LONG_SIDE)
        found: list[Face] = []
        for turn in self._turns:
            turned = np.ascontiguousarray(np.rot90(small, turn))
            found += [turn_back(face, turn, small.shape) for face in self._look(turned, least)]
        scale = image.shape[1] / small.shape[1], image.shape[0] / small.shape[0]
        height, width = image.shape[:2]
        return tuple(_scaled(face, scale, width, height) for face in distinct(found)[:MAX_FACES])

    def _look(self, picture: Image, least: float) -> list[Face]:
        height, width = picture.shape[:2]
        size = _thirty_twos(width), _thirty_twos(height)
        blob = cv2.dnn.blobFromImage(picture, 1.0, size, (0, 0, 0), swapRB=True)
        with self._lock:
            self._net.setInput(blob)
            heat, sizes, rest, _ = self._net.forward(list(_OUTPUTS))
        return decode(heat[0, 0], sizes[0], rest[0], (width / size[0], height / size[1]), least)


def decode(heat: Floats, sizes: Floats, rest: Floats, scale: tuple[float, float], least: float) -> list[Face]:
    """Network outputs -> faces, best first, of one turn.

    `heat` is (h, w) scores; `sizes` (2, h, w) the logarithms of height and width in quarter-scale cells;
    `rest` (2, h, w) what y and x of the centre lie beyond the cell. `scale` brings x and y to the picture.
    """
    rows, columns = np.nonzero(heat >= least)
    tall, wide = (np.exp(np.clip(layer[rows, columns], -10, 8)) * 4 for layer in sizes)
    middle_y = (rows + rest[0][rows, columns] + 0.5) * 4
    middle_x = (columns + rest[1][rows, columns] + 0.5) * 4
    faces = [
        Face(
            float(heat[rows[i], columns[i]]),
            (
                round(float(middle_x[i] - wide[i] / 2) * scale[0]),
                round(float(middle_y[i] - tall[i] / 2) * scale[1]),
                max(1, round(float(wide[i]) * scale[0])),
                max(1, round(float(tall[i]) * scale[1])),
            ),
        )
        # Neighbouring cells name the same face: the best four faces' worth of cells bound the pairing below.
        for i in np.argsort(-heat[rows, columns], kind="stable")[: 4 * MAX_FACES]
    ]
    return distinct(faces)


def distinct(faces: Sequence[Face]) -> list[Face]:
    """The best of those that overlap, best first."""
    kept: list[Face] = []
    for face in sorted(faces, key=lambda one: -one.score):
        if all(shared(face.box, other.box) < SAME_FACE_IOU for other in kept):
            kept.append(face)
    return kept


def shared(one: Box, other: Box) -> float:
    """Intersection over union."""
    wide = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    high = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / (one[2] * one[3] + other[2] * other[3] - wide * high)


def turn_back(face: Face, turn: int, shape: Sequence[int]) -> Face:
    """A face found in `np.rot90(picture, turn)`, as it lies in the picture of `shape`."""
    height, width = shape[:2]
    x, y, wide, high = face.box
    back: dict[int, Box] = {
        0: (x, y, wide, high),
        1: (width - y - high, x, high, wide),
        2: (width - x - wide, height - y - high, wide, high),
        3: (y, height - x - wide, high, wide),
    }
    return Face(face.score, back[turn % 4])


def blur_faces(image: Image, finder: Finder) -> Blurred:
    """`image` with every face taken out, looked at again until none is found.

    Raises `FaceStays` when one is still found after the last round: then nothing may be written or sent.
    """
    faces = finder.find(image, SUSPECTED)
    if not faces:
        return Blurred(image, (), 0)
    clean, gone = image.copy(), list(faces)
    for number, cells in enumerate(CELLS, 1):
        for face in gone:
            _mosaic(clean, face.box, cells)
        left = finder.find(clean, SUSPECTED)
        if not left:
            return Blurred(clean, tuple(gone), number)
        gone = distinct([*gone, *left])
    raise FaceStays("a face is still found after it was blurred; the picture is kept back")


def shrink(image: Image, side: int) -> Image:
    """`image` with its longer side at most `side`."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return image
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _mosaic(image: Image, box: Box, cells: int) -> None:
    """Replaces the box and its margin, in place, by `cells` smooth patches along the longer side."""
    x, y, wide, high = box
    left, top = max(0, round(x - MARGIN * wide)), max(0, round(y - MARGIN * high))
    right = min(image.shape[1], round(x + (1 + MARGIN) * wide))
    bottom = min(image.shape[0], round(y + (1 + MARGIN) * high))
    if right <= left or bottom <= top:
        return
    part = image[top:bottom, left:right]
    side = max(part.shape[:2])
    few = max(1, round(cells * part.shape[1] / side)), max(1, round(cells * part.shape[0] / side))
    coarse = cv2.resize(part, few, interpolation=cv2.INTER_AREA)
    image[top:bottom, left:right] = cv2.resize(
        coarse, (part.shape[1], part.shape[0]), interpolation=cv2.INTER_NEAREST
    )


def _scaled(face: Face, scale: tuple[float, float], width: int, height: int) -> Face:
    x, y, wide, high = face.box
    left = min(max(0, round(x * scale[0])), width - 1)
    top = min(max(0, round(y * scale[1])), height - 1)
    right = min(width, max(left + 1, round((x + wide) * scale[0])))
    bottom = min(height, max(top + 1, round((y + high) * scale[1])))
    return Face(face.score, (left, top, right - left, bottom - top))


def _thirty_twos(side: int) -> int:
    """The network halves five times."""
    return max(32, round(side / 32) * 32)
