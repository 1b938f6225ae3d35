"""Words in a picture: PP-OCR on onnxruntime, for the crop that the wearer looks at, at a fixation only.

Two networks of PaddleOCR: one marks where text is (differentiable binarisation, Liao et al., 2020), the other
reads a line (CTC over 18,708 characters). The steps between are those of RapidOCR, done with OpenCV alone: a
text line's outline is a rectangle, so widening it needs no polygon library.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.events import Image

Floats = NDArray[np.float32]

LONG_SIDE = 640
"""Pixels of the longer side in which text is looked for; a gaze crop is smaller."""
SHORT_SIDE = 192
"""A smaller crop is enlarged to this: letters of 8 pixels are not found."""
INK = 0.3
"""Probability from which a pixel belongs to text."""
LINE_SCORE = 0.5
"""Mean probability inside a line's box (RapidOCR's default)."""
READ_SCORE = 0.8
"""Mean probability of the characters; RapidOCR's 0.5 reads coins as letters and guesses at blurred words."""
SINGLE_SCORE = 0.95
"""For a lone character: a coin or a lamp looks like one."""
WIDENED = 1.6
"""The marked core of a line is widened by area x this / outline."""
LEAST_SIDE = 3
MAX_LINES = 12
"""Lines read in one picture, largest first: a page of print is not read aloud, and each costs time."""
LINE_HEIGHT = 48
MAX_LINE_WIDTH = 960
"""Twenty times as wide as high; longer lines are squeezed."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text."""

    text: str
    score: float
    """Mean probability of its characters, 0..1."""
    corners: tuple[tuple[float, float], ...]
    """Four corners in pixels of the picture given, clockwise from the text's upper left."""


class TextReader:
    """The two networks; safe to share between threads (one picture at a time).

    Raises `FileNotFoundError` or `ValueError` when a model is missing or of another kind.
    """

    def __init__(self, finder: Path, reader: Path, threads: int = 2) -> None:
        # Imported late: it is slow, and only needed once there is a model.
        import onnxruntime

        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # The arena never gives back what the widest line took.
        options.enable_cpu_mem_arena = False
        for needed in (finder, reader):
            if not Path(needed).is_file():
                raise FileNotFoundError(f"text reader: no such file: {needed}")
        only = ["CPUExecutionProvider"]
        self._find: Any = onnxruntime.InferenceSession(str(finder), options, providers=only)
        self._read: Any = onnxruntime.InferenceSession(str(reader), options, providers=only)
        listed = self._read.get_modelmeta().custom_metadata_map.get("character", "")
        if not listed:
            raise ValueError(f"text reader: {reader} does not list its characters")
        self._characters = ("", *listed.splitlines(), " ")
        self._lock = threading.Lock()

    def read(self, image: Image) -> tuple[TextLine, ...]:
        """Lines in `image` (uint8 BGR, height x width x 3), from top to bottom, at most `MAX_LINES`."""
        with self._lock:
            lines = [self._line(image, corners) for corners in self._lines(image)]
        read = [line for line in lines if believable(line.text, line.score)]
        return tuple(sorted(read, key=lambda line: min(y for _, y in line.corners)))

    def _lines(self, image: Image) -> list[Floats]:
        height, width = image.shape[:2]
        scale = min(LONG_SIDE / max(height, width), max(1.0, SHORT_SIDE / min(height, width)))
        size = _thirty_twos(width * scale), _thirty_twos(height * scale)
        small = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
        fed = (small.astype(np.float32) / 127.5 - 1.0).transpose(2, 0, 1)[None]
        (ink,) = self._find.run(None, {self._find.get_inputs()[0].name: np.ascontiguousarray(fed)})
        return outlines(ink[0, 0], (width / size[0], height / size[1]))

    def _line(self, image: Image, corners: Floats) -> TextLine:
        fed = (straighten(image, corners).astype(np.float32) / 127.5 - 1.0).transpose(2, 0, 1)[None]
        (chances,) = self._read.run(None, {self._read.get_inputs()[0].name: np.ascontiguousarray(fed)})
        text, score = spell(chances[0], self._characters)
        return TextLine(text, score, tuple((float(x), float(y)) for x, y in corners))


def outlines(ink: Floats, scale: tuple[float, float]) -> list[Floats]:
    """Where text is likely (h, w) -> corners (4, 2) of at most `MAX_LINES` lines, largest first."""
    mask = (ink > INK).astype(np.uint8)
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    found: list[tuple[float, Floats]] = []
    for contour in sorted(contours, key=cv2.contourArea, reverse=True)[: 4 * MAX_LINES]:
        (x, y), (wide, high), angle = cv2.minAreaRect(contour)
        if min(wide, high) < LEAST_SIDE:
            continue
        inside = np.zeros(ink.shape, np.uint8)
        cv2.fillPoly(inside, [contour], 1)
        if cv2.mean(ink, inside)[0] < LINE_SCORE:
            continue
        more = wide * high * WIDENED / (wide + high)
        box = cv2.boxPoints(((x, y), (wide + more, high + more), angle))
        found.append((wide * high, ordered(np.asarray(box * np.array(scale), np.float32))))
    found.sort(key=lambda pair: -pair[0])
    return [corners for _, corners in found[:MAX_LINES]]


def ordered(corners: Floats) -> Floats:
    """Four corners clockwise from the upper left, as the text runs from left to right."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    left, right = left[np.argsort(left[:, 1])], right[np.argsort(right[:, 1])]
    return np.array([left[0], right[0], right[1], left[1]], np.float32)


def straighten(image: Image, corners: Floats) -> Image:
    """The line cut out, upright, `LINE_HEIGHT` pixels high; turned where it is much higher than wide."""
    sides = np.linalg.norm(corners - np.roll(corners, -1, axis=0), axis=1)
    wide, high = float(max(sides[0], sides[2])), float(max(sides[1], sides[3], 1.0))
    if high > 1.5 * wide:
        corners, wide, high = np.roll(corners, -1, axis=0), high, wide
    width = int(np.clip(round(LINE_HEIGHT * wide / max(high, 1.0)), 16, MAX_LINE_WIDTH))
    target = np.array([[0, 0], [width, 0], [width, LINE_HEIGHT], [0, LINE_HEIGHT]], np.float32)
    turn = cv2.getPerspectiveTransform(corners.astype(np.float32), target)
    line = cv2.warpPerspective(
        image, turn, (width, LINE_HEIGHT), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(line, np.uint8)


def spell(chances: Floats, characters: Sequence[str]) -> tuple[str, float]:
    """CTC: probabilities (steps, characters) -> text and the mean probability of what was read.

    The first character is the blank; a character repeated without a blank between is one.
    """
    best = chances.argmax(axis=1)
    new = np.concatenate([[True], best[1:] != best[:-1]]) & (best != 0)
    if not new.any():
        return "", 0.0
    return "".join(characters[i] for i in best[new]), float(chances.max(axis=1)[new].mean())


def believable(text: str, score: float) -> bool:
    """Is a line of this text and score text at all?"""
    length = len(text.strip())
    return length > 0 and score >= (READ_SCORE if length > 1 else SINGLE_SCORE)


def _thirty_twos(side: float) -> int:
    return max(32, round(side / 32) * 32)
