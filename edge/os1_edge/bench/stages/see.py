"""Pupil, gaze, JPEG, objects, words, faces: one frame of 640 x 480 of the scene, 192 x 192 of the eye."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import cycle
from time import perf_counter

import cv2
import numpy as np

import os1_models
from os1_edge.bench.gaze import calibrated
from os1_edge.bench.rendered_wearer import RenderedWearer
from os1_edge.bench.stage import Reading, Setting, Stage, Work, timed
from os1_edge.bench.stages.clips import pictures
from os1_edge.config import GazeSettings
from os1_edge.events import Image
from os1_edge.see.faces import FaceFinder, FaceStays, blur_faces
from os1_edge.see.frames import look_of
from os1_edge.see.gaze.pupil import find_pupil
from os1_edge.see.gaze.track import GazeTracker
from os1_edge.see.jpeg import JpegEncoder
from os1_edge.see.objects import ObjectDetector
from os1_edge.see.quality import judge_picture
from os1_edge.see.text import TextReader

BUDGETS = (60_000, 30_000, 15_000, 8_000)
"""Bytes that a picture may take: of a good link, and of ever worse ones."""
SHOWN_QUALITIES = (90, 75, 60, 40, 20)
"""Of those that ``JpegEncoder`` chooses from."""
EYES = 24


def _frames() -> list[Image]:
    return [np.asarray(cv2.resize(image, (640, 480)), np.uint8) for image in pictures()]


@contextmanager
def _over(_: Setting, *, work: Callable[[Image], object]) -> Iterator[Work]:
    """One frame after the other, a mean of all a sample: frames differ more than moments do."""
    frames = _frames()
    yield lambda: (timed(lambda: [work(frame) for frame in frames]) / len(frames),)


@contextmanager
def _eye(_: Setting) -> Iterator[Work]:
    cv2.setNumThreads(1)
    wearer = RenderedWearer(1)
    calibration = calibrated(wearer, 4)
    looks = [shown.frame for shown in wearer.anywhere(EYES)]
    tracker, at = GazeTracker(GazeSettings(), calibration), iter(range(10**9))

    def work() -> Sequence[float]:
        pupil = timed(lambda: [find_pupil(look) for look in looks]) / EYES
        gaze = timed(lambda: [tracker.step(look, next(at) / 30) for look in looks]) / EYES
        return pupil, gaze

    yield work


@contextmanager
def _jpeg(_: Setting) -> Iterator[Work]:
    frames = _frames()
    encoders = [JpegEncoder() for _ in BUDGETS]

    def work() -> Sequence[float]:
        out: list[float] = []
        for encoder, budget in zip(encoders, BUDGETS, strict=True):
            began = perf_counter()
            sizes = [len(encoder.encode(frame, budget).data) for frame in frames]
            out += [1000 * (perf_counter() - began) / len(frames), sum(sizes) / len(sizes) / 1000]
        return out

    yield work


@contextmanager
def _jpeg_by_quality(_: Setting) -> Iterator[Work]:
    frames = _frames()

    def work() -> Sequence[float]:
        out: list[float] = []
        for quality in SHOWN_QUALITIES:
            began = perf_counter()
            how = [cv2.IMWRITE_JPEG_QUALITY, quality]
            sizes = [cv2.imencode(".jpg", frame, how)[1].size for frame in frames]
            out += [1000 * (perf_counter() - began) / len(frames), sum(sizes) / len(sizes) / 1000]
        return out

    yield work


@contextmanager
def _objects(setting: Setting) -> Iterator[Work]:
    labels = os1_models.path("objects-ssd", "labels.txt")
    detector = ObjectDetector(os1_models.path("objects-ssd"), labels, setting.threads)
    frames = cycle(_frames())
    yield lambda: (timed(lambda: detector.detect(next(frames))),)


@contextmanager
def _words(setting: Setting) -> Iterator[Work]:
    finder = os1_models.path("ppocr", "PP-OCRv6_det_small.onnx")
    reader = TextReader(finder, os1_models.path("ppocr"), setting.threads)
    crops = cycle([frame[128:352, 208:432] for frame in _frames()])
    yield lambda: (timed(lambda: reader.read(next(crops))),)


@contextmanager
def _faces(setting: Setting) -> Iterator[Work]:
    cv2.setNumThreads(setting.threads)
    finder = FaceFinder(os1_models.path("centerface"))
    frames = cycle(_frames())

    def blur() -> None:
        with suppress(FaceStays):
            blur_faces(next(frames), finder)

    yield lambda: (timed(blur),)


def stages() -> list[Stage]:
    """All of them."""
    jpeg = tuple(
        reading
        for budget in BUDGETS
        for reading in (
            Reading(f"jpeg, at most {budget // 1000} kB", of={"budget": budget}),
            Reading(f"jpeg, at most {budget // 1000} kB, size", "kB", of={"budget": budget}),
        )
    )
    by_quality = tuple(
        reading
        for quality in SHOWN_QUALITIES
        for reading in (
            Reading(f"jpeg, quality {quality}", of={"quality": quality}),
            Reading(f"jpeg, quality {quality}, size", "kB", of={"quality": quality}),
        )
    )
    return [
        Stage(
            "pupil and gaze", "see", (Reading("pupil, a frame"), Reading("gaze, a frame")), _eye, ready_s=1.5
        ),
        Stage("jpeg", "see", jpeg, _jpeg, repeats=10),
        Stage("jpeg by quality", "see", by_quality, _jpeg_by_quality, quick=False, repeats=10),
        Stage("frame hash", "see", (Reading("frame hash"),), partial(_over, work=look_of), quick=False),
        Stage(
            "frame quality",
            "see",
            (Reading("frame quality"),),
            partial(_over, work=judge_picture),
            quick=False,
        ),
        Stage("objects", "see", (Reading("objects, a frame"),), _objects),
        Stage("words", "see", (Reading("words, a crop of 224 px"),), _words, within_s=3.0),
        Stage("faces", "see", (Reading("faces taken out, a frame"),), _faces, within_s=3.0),
    ]
