"""The eye on real recordings: labelled pictures, an expert's fixations, Pupil Invisible, Aria, One Euro."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from os1_edge.bench.gaze import measure_fixations, measure_pupils
from os1_edge.see.gaze.filter import OneEuro
from os1_edge.see.gaze.fixation import FixationFinder
from os1_edge.see.gaze.pupil import find_pupil
from os1_edge.see.gaze.scene_camera import SceneCamera

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def eyes(shared_data: Path) -> Path:
    folder = shared_data / "eye"
    if not folder.is_dir():
        pytest.skip(f"no eye recordings at {folder}")
    return folder


def test_pupils_of_many_people_are_found_and_closed_eyes_have_none(eyes: Path) -> None:
    told = measure_pupils(eyes / "mrgaze")["ours"]
    assert told["labelled"] > 100
    assert told["within_5px"] >= 0.97
    assert told["confident_misses"] <= 0.02
    assert told["on_closed"] == 0


def test_the_fixations_are_those_of_an_expert(eyes: Path) -> None:
    for name in ("lookAtPoint_EL_S1.npy", "lookAtPoint_EL_S2.npy"):
        for row in measure_fixations(eyes / "irf-fixations" / name):
            if row["hz"] >= 30:
                assert row["kappa"] > 0.78, row
            assert row["f1"] > 0.75, row


def test_the_one_euro_filter_is_its_authors_to_the_last_digit(eyes: Path) -> None:
    calm = OneEuro(min_cutoff_hz=1.0, beta=0.1, d_cutoff_hz=1.0)
    with (eyes / "one-euro-reference" / "groundTruth.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    # The file's numbers are rounded to six digits; the authors' times were 120 a second.
    worst = max(
        abs(calm.step(i / 120, (float(row["noisy"]),))[0] - float(row["filtered"]))
        for i, row in enumerate(rows)
    )
    assert len(rows) == 1200
    assert worst < 1e-5


def test_a_pupil_invisible_recording_has_the_fixations_its_maker_found(eyes: Path) -> None:
    folder = eyes / "pupil-invisible-recording" / "PupilInvisible"
    camera = json.loads((folder / "scene_camera.json").read_text("utf-8"))["camera_matrix"]
    scene = SceneCamera(1088, 1080, 2 * float(np.degrees(np.arctan(544 / camera[0][0]))))
    finder, told, times = FixationFinder(), [], []
    with (folder / "gaze.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    first = int(rows[0]["timestamp [ns]"])
    for row in rows:
        at_s = (int(row["timestamp [ns]"]) - first) / 1e9
        times.append(at_s)
        if row["blink id"]:
            told += finder.stop()
        else:
            told += finder.step(at_s, *scene.direction(float(row["gaze x [px]"]), float(row["gaze y [px]"])))
    told += finder.stop()
    ours, theirs = np.zeros(len(rows), bool), np.asarray([bool(row["fixation id"]) for row in rows])
    at = np.asarray(times)
    for fixation in told:
        ours |= (at >= fixation.start_s) & (at <= fixation.end_s)
    assert (ours == theirs).mean() > 0.75
    assert 0.5 < len(told) / len({row["fixation id"] for row in rows if row["fixation id"]}) < 2.0


# Where the pupil is on Project Aria's pictures, read off them by eye to some 4 px: file, half, x, y.
ARIA = [
    *[(f"adt_0{n}_eyes.png", 0, 121, 135) for n in (4, 5, 6)],
    *[(f"adt_0{n}_eyes.png", 1, 210, 157) for n in (4, 5, 6)],
    ("aea_00_eyes.png", 0, 110, 130),
    ("aea_00_eyes.png", 1, 151, 159),
    ("aea_02_eyes.png", 0, 121, 132),
    ("aea_02_eyes.png", 1, 172, 153),
    *[(f"extra_gen1_{n}_eyes.png", 0, 121, 137) for n in (0, 1, 2, 3)],
    *[(f"extra_gen1_{n}_eyes.png", 1, 154, 149) for n in (0, 1, 2, 3)],
]


def test_eyes_in_other_glasses_are_found_which_nothing_was_fitted_to(eyes: Path) -> None:
    """Small dark pupils, seen from far to the side, lashes across some of them."""
    near = 0
    for name, half, x, y in ARIA:
        frame = cv2.imread(str(eyes / "projectaria" / "pairs" / name))
        assert frame is not None
        middle = frame.shape[1] // 2
        pupil = find_pupil(
            np.ascontiguousarray(frame[:, half * middle : (half + 1) * middle]).astype(np.uint8)
        )
        near += pupil is not None and bool(np.hypot(pupil.cx - x, pupil.cy - y) <= 8)
    assert near >= len(ARIA) - 1
