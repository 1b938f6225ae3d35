"""Looks at targets, out of a recording or from live cameras: what `calibrate` is made of.

A recording is a folder with one of

- ``targets.csv`` with the columns ``file,x,y``: eye pictures, each taken while the wearer looked at that
pixel of
  the scene picture; frames with the same ``x,y`` one after the other are one target;
- ``targets.csv`` with the columns ``start_s,end_s,x,y``, beside ``eye.mp4`` (or .avi, .mkv, .mov): times of
the
  eye video at which a target, of five or of everyday things, was looked at;
- ``eye.mp4`` and ``scene.mp4`` of one clock: the marker is found in the scene, and followed by the eye.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from os1_edge.see.gaze.calibration import CalibrationError, Look
from os1_edge.see.gaze.marker import find_marker
from os1_edge.see.gaze.pupil import Pupil, find_pupil
from os1_edge.see.image import UnreadableImage, iter_video, load_image

VIDEO = (".mp4", ".avi", ".mkv", ".mov", ".m4v", ".webm")
"""Endings of video files."""
EVERY_FRAME = 1e-6
"""Seconds: no video has more frames than one in this time."""
_SETTLE_S = 0.2
"""The eye needs this long to reach a target that appears; frames before it are of the target before."""
_SAME_S = 0.02
"""An eye frame belongs to the scene frame that is nearest and at most this far, or half its own distance,
away."""
_STEP_PX = 0.04
"""A marker that moves by less than this share of the picture's width still is the same target."""
_MOST = 20_000
"""Frames of one calibration: eleven minutes at 30 a second; a longer file is no calibration."""

Frame = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Looks:
    """All looks of a recording, and how large its eye and scene pictures are (width, height)."""

    looks: tuple[Look, ...]
    eye_size: tuple[int, int]
    scene_size: tuple[int, int] | None
    """``None`` where the recording has no scene picture."""


def read_looks(folder: Path) -> Looks:
    """Reads a recording. Raises `CalibrationError` for one that cannot be used, with the reason."""
    if not folder.is_dir():
        raise CalibrationError(
            f"{folder}: not a folder; a recording is a folder with targets.csv or two videos"
        )
    table = folder / "targets.csv"
    eye, scene = _video(folder, "eye"), _video(folder, "scene")
    try:
        if table.is_file():
            rows = _rows(table)
            if "file" in rows[0]:
                return _from_pictures(folder, rows)
            if eye is None:
                raise CalibrationError(f"{folder}: targets.csv names times, but there is no eye.mp4")
            return _from_times(eye, rows, table)
        if eye and scene:
            return _from_marker(eye, scene)
    except UnreadableImage as error:
        raise CalibrationError(str(error)) from None
    raise CalibrationError(f"{folder}: neither targets.csv nor eye.mp4 with scene.mp4 in it")


def _video(folder: Path, name: str) -> Path | None:
    return next((path for ending in VIDEO if (path := folder / (name + ending)).is_file()), None)


def _rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CalibrationError(f"{table}: cannot be read as a table: {error}") from None
    columns = set(rows[0]) if rows else set()
    if not ({"file", "x", "y"} <= columns or {"start_s", "end_s", "x", "y"} <= columns):
        raise CalibrationError(
            f"{table}: needs the columns file,x,y or start_s,end_s,x,y, and a row a target"
        )
    return rows


def _number(row: dict[str, str], column: str, table: Path, line: int) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise CalibrationError(f"{table}:{line}: {column} is not a number: {row[column]!r}")
    return value


def _from_pictures(folder: Path, rows: list[dict[str, str]]) -> Looks:
    table = folder / "targets.csv"
    looks, size, number, place = [], None, -1, (math.nan, math.nan)
    for line, row in enumerate(rows[:_MOST], 2):
        x, y = _number(row, "x", table, line), _number(row, "y", table, line)
        frame = load_image(folder / (row["file"] or ""))
        size = _same_size(frame, size, folder)
        if (x, y) != place:
            number, place = number + 1, (x, y)
        looks.append(Look(number, x, y, find_pupil(frame)))
    assert size is not None
    return Looks(tuple(looks), size, None)


def _from_times(eye: Path, rows: list[dict[str, str]], table: Path) -> Looks:
    spans = [
        tuple(_number(row, column, table, line) for column in ("start_s", "end_s", "x", "y"))
        for line, row in enumerate(rows, 2)
    ]
    looks, size = [], None
    for at_s, frame in _frames(eye):
        size = _same_size(frame, size, eye)
        for number, (start, end, x, y) in enumerate(spans):
            if min(start + _SETTLE_S, (start + end) / 2) <= at_s <= end:
                looks.append(Look(number, x, y, find_pupil(frame)))
    if size is None or not looks:
        raise CalibrationError(f"{table}: no frame of {eye.name} lies within the times given")
    return Looks(tuple(looks), size, None)


def _from_marker(eye: Path, scene: Path) -> Looks:
    scene_size: tuple[int, int] | None = None
    seen: list[tuple[float, tuple[float, float] | None]] = []
    for at_s, frame in _frames(scene):
        scene_size = _same_size(frame, scene_size, scene)
        seen.append((at_s, find_marker(frame)))
    pupils: list[tuple[float, Pupil | None]] = []
    eye_size: tuple[int, int] | None = None
    for at_s, frame in _frames(eye):
        eye_size = _same_size(frame, eye_size, eye)
        pupils.append((at_s, find_pupil(frame)))
    if scene_size is None or eye_size is None:
        raise CalibrationError(f"{eye.parent}: a video without frames")
    return Looks(tuple(pair(pupils, seen, scene_size[0])), eye_size, scene_size)


def pair(
    pupils: Sequence[tuple[float, Pupil | None]],
    markers: Sequence[tuple[float, tuple[float, float] | None]],
    scene_width: int,
) -> Iterator[Look]:
    """Looks from pupils and marker places, each with its time in seconds on one clock, in order.

    A marker that rests is one target, one that moves is cut into many. Frames just after it has appeared
    are left out: the eye is still on its way.
    """
    times = np.asarray([at_s for at_s, _ in markers])
    if not len(times):
        return
    reach = max(_SAME_S, float(np.median(np.diff(times))) / 2 if len(times) > 1 else 0.0) + 1e-6
    number, anchor, since = -1, (math.inf, math.inf), -math.inf
    gone = True
    for at_s, pupil in pupils:
        i = int(np.abs(times - at_s).argmin())
        place = markers[i][1]
        if place is None or abs(times[i] - at_s) > reach:
            gone = True
            continue
        if gone:
            since, gone = at_s, False
        if math.dist(place, anchor) > _STEP_PX * scene_width:
            number, anchor = number + 1, place
        if at_s - since >= _SETTLE_S:
            yield Look(number, *place, pupil)


def _frames(video: Path) -> Iterable[tuple[float, Frame]]:
    for count, (at_s, frame) in enumerate(iter_video(video, EVERY_FRAME)):
        if count == _MOST:
            raise CalibrationError(f"{video}: more than {_MOST} frames; cut it to the calibration")
        yield at_s, frame


def _same_size(frame: Frame, size: tuple[int, int] | None, where: Path) -> tuple[int, int]:
    found = (frame.shape[1], frame.shape[0])
    if size is not None and found != size:
        raise CalibrationError(
            f"{where}: frames of {size[0]}x{size[1]} and of {found[0]}x{found[1]}; use one size"
        )
    return found
