"""The eye: pupils on labelled pictures, gaze on rendered wearers, fixations on hand-labelled recordings.

    os1 bench gaze [--shared-data DIR] [--wearers N] [--json]

- *pupils*: share of the labelled pictures (``eye/mrgaze``) with the pupil's middle within 5 px, at a width
  of 192 px, and of those where a confident one is further off; closed eyes with a confident pupil;
  milliseconds a frame of one thread, searched for and found again from the frame before. Where
  ``pupil-detectors`` is installed, the same for it, as the pictures are and at half size, frame by frame in
  turn; and the ratio of the times.
- *calibration*: rendered wearers look at five points, then anywhere; degrees between where gaze is put and
  where it was. Then the glasses slip by 0.7 mm.
- *fixations*: agreement with a human expert (``eye/irf-fixations``) at several frame rates: Cohen's kappa of
  the samples, and F1 of the fixations, matched by overlap.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.bench.rendered_wearer import FIVE, RenderedWearer
from os1_edge.config import GazeSettings
from os1_edge.see.gaze.calibration import Calibration, Look, calibrate
from os1_edge.see.gaze.fixation import FixationFinder
from os1_edge.see.gaze.pupil import Pupil, find_pupil
from os1_edge.see.gaze.track import GazeTracker

_CONFIDENT = 0.6
_NEAR_PX = 5.0
_RATES_HZ = (1000, 125, 30, 10)
_SLIP_MM = (0.3, 0.6, 0.2)

Found = tuple[float, float, float] | None
"""Middle and confidence of a pupil."""
Find = Callable[[NDArray[np.uint8]], Found]
Mask = NDArray[np.bool_]


@dataclass(slots=True)
class Tally:
    """What one detector did on the labelled pictures."""

    near: int = 0
    confident_misses: int = 0
    on_closed: int = 0
    labelled: int = 0
    closed: int = 0
    ms: list[float] = field(default_factory=list)

    def add(self, found: Found, row: dict[str, str], width: int, ms: float) -> None:
        self.ms.append(ms)
        confident = found is not None and found[2] >= _CONFIDENT
        if row["status"] == "absent":
            self.closed += 1
            self.on_closed += confident
            return
        self.labelled += 1
        away = (
            np.hypot(found[0] - float(row["cx"]), found[1] - float(row["cy"])) * 192 / width
            if found and found[2] > 0
            else np.inf
        )
        self.near += bool(away <= _NEAR_PX)
        self.confident_misses += bool(confident and away > _NEAR_PX)

    def told(self) -> dict[str, Any]:
        times = self.ms or [0.0]  # no picture could be read
        return {
            "within_5px": round(self.near / max(self.labelled, 1), 4),
            "confident_misses": round(self.confident_misses / max(self.labelled, 1), 4),
            "labelled": self.labelled,
            "on_closed": self.on_closed,
            "closed": self.closed,
            "ms_median": round(float(np.median(times)), 2),
            "ms_p95": round(float(np.percentile(times, 95)), 2),
        }


def _ours(grey: NDArray[np.uint8]) -> Found:
    pupil = find_pupil(grey)
    return (pupil.cx, pupil.cy, pupil.confidence) if pupil else None


def _again(grey: NDArray[np.uint8], before: Pupil | None) -> Found:
    """As in a film: the pupil is three pixels from where the frame before had it."""
    last = replace(before, cx=before.cx + 3, cy=before.cy - 3) if before else None
    pupil = find_pupil(grey, last)
    return (pupil.cx, pupil.cy, pupil.confidence) if pupil else None


def _theirs() -> dict[str, Find]:
    """``pupil-detectors`` with its defaults, and at half size, its best on these pictures; or nothing."""
    try:
        from pupil_detectors import Detector2D  # type: ignore[import-not-found]  # no wheel for aarch64
    except ImportError:
        return {}
    detector = Detector2D()

    def whole(grey: NDArray[np.uint8]) -> Found:
        found = detector.detect(grey)
        return *found["ellipse"]["center"], found["confidence"]

    def half(grey: NDArray[np.uint8]) -> Found:
        found = whole(
            np.ascontiguousarray(cv2.resize(grey, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))
        )
        return (2 * found[0] + 0.5, 2 * found[1] + 0.5, found[2]) if found else None

    return {"pupil-detectors": whole, "pupil-detectors, half size": half}


def measure_pupils(folder: Path) -> dict[str, Any]:
    """The labelled pictures of ``folder`` (see its ``pupil_ellipses.csv``), each detector on each in turn.

    Raises:
        click.ClickException: the pictures are not there.
    """
    table = folder / "pupil_ellipses.csv"
    if not table.is_file():
        raise click.ClickException(f"no labelled eyes: {table} is missing; see --shared-data")
    cv2.setNumThreads(1)
    detectors = {"ours": _ours, "ours, found again": _ours, **_theirs()}
    tallies = {name: Tally() for name in detectors}
    with table.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["status"] in ("ok", "partial", "absent")]
    for row in rows:
        picture = cv2.imread(str(folder / row["file"]), cv2.IMREAD_GRAYSCALE)
        if picture is None:
            continue
        grey = np.asarray(picture, np.uint8)
        detectors["ours, found again"] = partial(_again, before=find_pupil(grey))
        for name, find in detectors.items():
            begun = thread_time()
            found = find(grey)
            tallies[name].add(found, row, grey.shape[1], 1000 * (thread_time() - begun))
    told = {name: tally.told() for name, tally in tallies.items()}
    for name, row_ in told.items():
        if name not in ("ours", "ours, found again"):
            row_["ours_to_it"] = round(told["ours"]["ms_median"] / row_["ms_median"], 2)
    return told


def calibrated(wearer: RenderedWearer, frames: int = 10) -> Calibration:
    """The wearer looks at five points, ``frames`` frames each."""
    looks = [
        Look(number, shown.x, shown.y, find_pupil(shown.frame))
        for number, (right, down) in enumerate(FIVE)
        for shown in wearer.look(right, down, frames)
    ]
    return calibrate(looks, wearer.eye_size, wearer.scene)


def gaze_errors(wearer: RenderedWearer, calibration: Calibration, frames: int, warm: int = 45) -> list[float]:
    """Degrees of error on ``frames`` looks, after ``warm`` others that only the slip watch learns from."""
    tracker = GazeTracker(GazeSettings(), calibration)
    errors = []
    for number, shown in enumerate(wearer.anywhere(warm + frames)):
        # Half a second apart, so that the filter does not carry one look into the next.
        sample = tracker.step(shown.frame, number * 0.5)
        if number >= warm and sample.gaze:
            at, truth = np.asarray([(sample.gaze.x, sample.gaze.y)]), np.asarray([(shown.x, shown.y)])
            errors.append(float(wearer.scene.angles_between(at, truth)[0]))
    return errors


def measure_calibration(wearers: int, frames: int = 30) -> dict[str, Any]:
    """Gaze of so many rendered wearers after five points: seated as calibrated, and slipped."""
    seated: list[float] = []
    slipped: list[float] = []
    said = []
    for seed in range(wearers):
        wearer = RenderedWearer(seed)
        made = calibrated(wearer)
        said.append(made.quality.median_deg)
        seated += gaze_errors(wearer, made, frames)
        wearer.slipped(*_SLIP_MM)
        slipped += gaze_errors(wearer, made, frames)
    return {
        "wearers": wearers,
        "seated": _degrees(seated),
        "slipped_0.7mm": _degrees(slipped),
        "told_median_deg": round(float(np.median(said)), 2),
    }


def _degrees(errors: list[float]) -> dict[str, Any]:
    middle, tail = np.percentile(errors, [50, 90])
    return {"median_deg": round(float(middle), 2), "p90_deg": round(float(tail), 2), "frames": len(errors)}


def measure_fixations(recording: Path) -> list[dict[str, Any]]:
    """A labelled recording (``.npy``, 1000 Hz), thinned out to several frame rates."""
    table = np.load(recording)
    out = []
    for rate in _RATES_HZ:
        rows = table[:: 1000 // rate]
        found = _fixating(rows)
        kappa, f1 = agreement(found, rows["evt"] == 1, rows["evt"] != 0)
        out.append({"file": recording.name, "hz": rate, "kappa": round(kappa, 3), "f1": round(f1, 3)})
    return out


def _fixating(rows: NDArray[Any]) -> Mask:
    """Which samples lie in a fixation that was found; a blink ends one, as it does when an eye is tracked."""
    finder, told = FixationFinder(), []
    for row in rows:
        if row["status"] and row["evt"] != 5:
            told += finder.step(float(row["t"]), float(row["x"]), float(row["y"]))
        else:
            told += finder.stop()
    found = np.zeros(len(rows), np.bool_)
    for fixation in [*told, *finder.stop()]:
        found |= (rows["t"] >= fixation.start_s) & (rows["t"] <= fixation.end_s)
    return found


def agreement(found: Mask, truth: Mask, judged: Mask) -> tuple[float, float]:
    """Cohen's kappa of the ``judged`` samples; F1 of the runs, true ones matched by overlap (Hooge 2018)."""
    a, b = found[judged], truth[judged]
    observed = float((a == b).mean())
    chance = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean()))
    true_runs, found_runs = _runs(truth), _runs(found)
    used: set[int] = set()
    for start, end in true_runs:
        overlaps = [
            (min(end, stop) - max(start, begin), i)
            for i, (begin, stop) in enumerate(found_runs)
            if i not in used and min(end, stop) > max(start, begin)
        ]
        if overlaps:
            used.add(max(overlaps)[1])
    return (observed - chance) / (1 - chance), 2 * len(used) / (len(true_runs) + len(found_runs))


def _runs(mask: Mask) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


@click.command()
@click.option(
    "--shared-data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar="OS1_SHARED_DATA",
    help="Holds eye/mrgaze and eye/irf-fixations; without it, rendered wearers only. $OS1_SHARED_DATA.",
)
@click.option(
    "--wearers", type=click.IntRange(0, 100), default=6, show_default=True, help="Rendered wearers."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def gaze(shared_data: Path | None, wearers: int, as_json: bool) -> None:
    """Pupils, calibration and fixations, measured.

    Pupils and fixations on the labelled pictures and recordings of --shared-data, times in milliseconds of
    one thread; the calibration on rendered wearers, in degrees.
    """
    found: dict[str, Any] = {}
    if shared_data:
        found["pupils"] = measure_pupils(shared_data / "eye" / "mrgaze")
        recordings = sorted((shared_data / "eye" / "irf-fixations").glob("*.npy"))
        found["fixations"] = [row for recording in recordings for row in measure_fixations(recording)]
    if wearers:
        found["calibration"] = measure_calibration(wearers)
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, row in found.get("pupils", {}).items():
        click.echo(
            f"{name}: pupil within 5 px {100 * row['within_5px']:.1f} % of {row['labelled']}, "
            f"confident misses {100 * row['confident_misses']:.1f} %, "
            f"on {row['on_closed']} of {row['closed']} closed eyes; "
            f"{row['ms_median']:.2f} ms a frame (p95 {row['ms_p95']:.1f})"
            + (f", OS-1 takes {row['ours_to_it']:.2f} times as long" if "ours_to_it" in row else "")
        )
    for name in ("seated", "slipped_0.7mm"):
        if wearers:
            row = found["calibration"][name]
            click.echo(f"gaze, {name}: {row['median_deg']:.2f} degrees median, {row['p90_deg']:.2f} at p90")
    for row in found.get("fixations", []):
        click.echo(f"{row['file']} at {row['hz']} Hz: kappa {row['kappa']:.2f}, F1 {row['f1']:.2f}")


if __name__ == "__main__":
    gaze()
