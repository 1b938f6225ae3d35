"""Named objects in a picture: an SSD MobileNet v2 (Open Images v4, 23 labels) on LiteRT.

The network gives raw box encodings and class logits; everything after it is the pure functions here. The
numbers (anchors, variances, input scaling) are those of MediaPipe's Objectron object detection graph.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.events import Image

Floats = NDArray[np.float32]

INPUT_SIZE = 300
FEATURE_MAPS = (19, 10, 5, 3, 2, 1)
"""Cells a side of each output layer: 300 pixels at strides 16, 32, ... 512, rounded up."""
MIN_SCALE, MAX_SCALE = 0.2, 0.95
ASPECTS = (1.0, 2.0, 0.5, 3.0, 1.0 / 3.0)
VARIANCES = (10.0, 10.0, 5.0, 5.0)
"""Divisors of the encoded y, x, height, width."""

MIN_SCORE = 0.48
"""Below it, faces seen from below were dogs and brick walls laptops on the glasses photos it was tuned on."""
LABEL_MIN_SCORE: Mapping[str, float] = {"person": 0.40, "table": 0.42, "vehicle": 0.60}
"""People and tables are nearly always right, even when unsure; "vehicle" is what a dim room looks like."""
WHOLE_PICTURE = 0.9
WHOLE_PICTURE_MIN_SCORE = 0.55
"""A box over nine tenths of the picture says "it is all one laptop": believed only when surer."""
SAME_LABEL_IOU = 0.5
OTHER_LABEL_IOU = 0.7
MAX_OBJECTS = 12
"""More names than this help no sentence and no prompt."""


@dataclass(frozen=True, slots=True)
class DetectedObject:
    """One thing the detector can name."""

    label: str
    """Lower case, as a person would say it: "coffee cup"."""
    score: float
    """0..1; the network's own, not calibrated."""
    box: tuple[int, int, int, int]
    """x, y, width, height in pixels of the picture given, inside it."""


@contextmanager
def _native_chatter_dropped() -> Iterator[None]:
    """LiteRT tells standard error which delegate it made, with no switch against it (errors are raised)."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  # a device, not a path
        kept = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class ObjectDetector:
    """The network and its labels; safe to share between threads (one picture at a time).

    Raises `FileNotFoundError` or `ValueError` when the model or its labels do not fit this code.
    """

    def __init__(self, model: Path, labels: Path, threads: int = 2) -> None:
        # Imported late: it is slow, and only needed once there is a model.
        from ai_edge_litert.interpreter import Interpreter

        for needed in (model, labels):
            if not Path(needed).is_file():
                raise FileNotFoundError(f"object detector: no such file: {needed}")
        self.labels = read_labels(Path(labels).read_text(encoding="utf-8"))
        self._lock = threading.Lock()
        with _native_chatter_dropped():
            self._net: Any = Interpreter(model_path=str(model), num_threads=threads)
            self._net.allocate_tensors()
        self._input: int = self._net.get_input_details()[0]["index"]
        outputs = {int(d["shape"][-1]): int(d["index"]) for d in self._net.get_output_details()}
        self._anchors = make_anchors()
        if set(outputs) != {4, len(self.labels)}:
            known = len(self.labels)
            raise ValueError(f"object detector: {known} labels do not fit outputs {sorted(outputs)}")
        self._boxes, self._classes = outputs[4], outputs[len(self.labels)]

    def detect(self, image: Image) -> tuple[DetectedObject, ...]:
        """Objects in `image` (uint8 BGR, height x width x 3), best score first, at most `MAX_OBJECTS`."""
        with self._lock:
            self._net.set_tensor(self._input, to_input(image))
            self._net.invoke()
            encoded: Floats = self._net.get_tensor(self._boxes)[0]
            logits: Floats = self._net.get_tensor(self._classes)[0]
        height, width = image.shape[:2]
        boxes = decode_boxes(encoded, self._anchors)
        return select_objects(boxes, scores(logits), self.labels, width, height)


def read_labels(text: str) -> tuple[str, ...]:
    """One label a line, lower case; the first is the background class."""
    return tuple(line.strip().lower() for line in text.splitlines() if line.strip())


def to_input(image: Image) -> Floats:
    """`(1, 300, 300, 3)` float32 RGB in -1..1; the picture is stretched, as in training."""
    small = cv2.resize(image, (INPUT_SIZE, INPUT_SIZE), interpolation=cv2.INTER_AREA)
    return np.asarray(small[None, :, :, ::-1].astype(np.float32) / 127.5 - 1.0, np.float32)


def make_anchors() -> Floats:
    """`(1917, 4)` float32 anchors: centre y, centre x, height, width as fractions of the picture.

    MediaPipe's SsdAnchorsCalculator: six scales from 0.2 to 0.95, five aspect ratios and one interpolated
    square a cell; the first layer is reduced to three boxes.
    """
    layers = len(FEATURE_MAPS)
    scales = [MIN_SCALE + (MAX_SCALE - MIN_SCALE) * i / (layers - 1) for i in range(layers)] + [1.0]
    anchors = []
    for layer, cells in enumerate(FEATURE_MAPS):
        scale, following = scales[layer], scales[layer + 1]
        if layer == 0:
            shapes = [(1.0, 0.1), (2.0, scale), (0.5, scale)]
        else:
            shapes = [(aspect, scale) for aspect in ASPECTS] + [(1.0, float(np.sqrt(scale * following)))]
        sizes = [(size / np.sqrt(aspect), size * np.sqrt(aspect)) for aspect, size in shapes]
        for row in range(cells):
            for column in range(cells):
                centre = ((row + 0.5) / cells, (column + 0.5) / cells)
                anchors += [(*centre, *size) for size in sizes]
    return np.array(anchors, np.float32)


def decode_boxes(encoded: Floats, anchors: Floats) -> Floats:
    """`(n, 4)` encoded y, x, height, width -> left, top, right, bottom as fractions, clipped to 0..1."""
    offsets = encoded / np.array(VARIANCES, np.float32)
    centre = offsets[:, :2] * anchors[:, 2:] + anchors[:, :2]
    half = np.exp(np.clip(offsets[:, 2:], -8.0, 8.0)) * anchors[:, 2:] / 2.0
    low, high = centre - half, centre + half
    corners = np.concatenate([low[:, ::-1], high[:, ::-1]], axis=1)
    return np.asarray(np.clip(corners, 0.0, 1.0), np.float32)


def scores(logits: Floats) -> Floats:
    """Logits -> 0..1 by the sigmoid (this SSD has one yes/no a class, no softmax)."""
    return (1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))).astype(np.float32)


def overlap(box: Floats, others: Floats) -> Floats:
    """Intersection over union of one `(4,)` box with `(n, 4)` others (left, top, right, bottom)."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(high - low, 0.0, None), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2]) - shared
    return np.asarray(shared / np.maximum(areas, 1e-9), np.float32)


def suppress(boxes: Floats, values: Floats, classes: NDArray[np.int64]) -> list[int]:
    """Indices to keep, best first.

    A box goes when a better one of its own class overlaps it by `SAME_LABEL_IOU`, or a better one of any
    class by `OTHER_LABEL_IOU`: a mug and a coffee cup in one place are one thing.
    """
    order = np.argsort(-values, kind="stable")
    kept: list[int] = []
    for index in order:
        if kept:
            shared = overlap(boxes[index], boxes[kept])
            same = classes[kept] == classes[index]
            if np.any(shared >= np.where(same, SAME_LABEL_IOU, OTHER_LABEL_IOU)):
                continue
        kept.append(int(index))
    return kept


def worth_naming(boxes: Floats, values: Floats, labels: Sequence[str]) -> NDArray[np.bool_]:
    """`(n, classes)` booleans: which box may be called what by the thresholds above."""
    least = np.array([LABEL_MIN_SCORE.get(label, MIN_SCORE) for label in labels], np.float32)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    least = np.where(areas[:, None] > WHOLE_PICTURE, np.maximum(least, WHOLE_PICTURE_MIN_SCORE), least)
    good = values >= least
    good[:, 0] = False
    return np.asarray(good, np.bool_)


def select_objects(
    boxes: Floats, values: Floats, labels: Sequence[str], width: int, height: int
) -> tuple[DetectedObject, ...]:
    """Decoded `boxes` (n, 4) and class `values` (n, classes) -> what is worth naming, best first."""
    anchor, classes = np.nonzero(worth_naming(boxes, values, labels))
    chosen = values[anchor, classes]
    kept = suppress(boxes[anchor], chosen, classes)[:MAX_OBJECTS]
    return tuple(
        DetectedObject(labels[classes[i]], float(chosen[i]), to_pixels(boxes[anchor[i]], width, height))
        for i in kept
    )


def to_pixels(box: Floats, width: int, height: int) -> tuple[int, int, int, int]:
    """Fractions (left, top, right, bottom) -> x, y, width, height in whole pixels, at least 1 x 1, inside."""
    left, top = min(int(box[0] * width), width - 1), min(int(box[1] * height), height - 1)
    right, bottom = round(float(box[2]) * width), round(float(box[3]) * height)
    return left, top, max(1, min(right, width) - left), max(1, min(bottom, height) - top)
