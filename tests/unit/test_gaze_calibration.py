"""Calibration from numbers: what is fitted, what is refused and why, files, taps, slips; without pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from os1_edge.bench.rendered_eye import RenderedEye, gaze_direction
from os1_edge.see.gaze.calibration import Calibration, CalibrationError, Look, calibrate, load, save
from os1_edge.see.gaze.drift import judge_drift
from os1_edge.see.gaze.pupil import Pupil
from os1_edge.see.gaze.quality import report_html, verdict
from os1_edge.see.gaze.scene_camera import SceneCamera
from os1_edge.see.gaze.slip import SlipWatch, fit_eyeball

SCENE = SceneCamera()
EYE = (192, 152)
FIVE = [(0, 0), (-15, -10), (15, -10), (-15, 10), (15, 10)]
GRID = [(x, y) for x in (-18, -9, 0, 9, 18) for y in (-12, -4, 4, 12)]


def pupil_at(
    right: float, down: float, eye: RenderedEye | None = None, noise: float = 0.0, seed: int = 0
) -> Pupil:
    """The ellipse of a pupil that looks there, its middle off by some noise."""
    true = (eye or RenderedEye()).pupil(gaze_direction(right, down))
    dx, dy = np.random.default_rng(seed).normal(0, noise, 2)
    return replace(true, cx=true.cx + dx, cy=true.cy + dy)


def looks(directions: list[tuple[int, int]], frames: int = 8, **about: object) -> list[Look]:
    return [
        Look(n, *SCENE.pixel(x, y), pupil_at(x, y, noise=0.15, seed=100 * n + i, **about))  # type: ignore[arg-type]
        for n, (x, y) in enumerate(directions)
        for i in range(frames)
    ]


def error_deg(
    made: Calibration, right: float, down: float, slip: tuple[float, float] = (0.0, 0.0), **about: object
) -> float:
    at = made.gaze(pupil_at(right, down, **about), slip)  # type: ignore[arg-type]
    return float(SCENE.angles_between(np.asarray([at]), np.asarray([SCENE.pixel(right, down)]))[0])


@pytest.fixture(scope="module")
def five() -> Calibration:
    return calibrate(looks(FIVE), EYE, SCENE)


def test_five_points_tell_gaze_between_and_beyond_them(five: Calibration) -> None:
    assert five.map.kind == "ball"
    errors = [error_deg(five, x, y) for x, y in GRID]
    assert np.median(errors) < 0.7
    assert max(errors) < 2.0


def test_many_natural_targets_do_as_well() -> None:
    made = calibrate(looks(GRID, frames=3), EYE, SCENE)
    assert np.median([error_deg(made, x, y) for x, y in [(-12, -8), (5, 5), (13, 0), (0, -11)]]) < 0.7


def test_a_target_that_was_not_looked_at_is_left_out_and_told_of() -> None:
    seen = looks(GRID[::2], frames=4)
    wrong = [Look(k.target, k.x + (220 if k.target == 3 else 0), k.y, k.pupil) for k in seen]
    made = calibrate(wrong, EYE, SCENE)
    assert [t.used for t in made.quality.targets].count(False) == 1
    assert not made.quality.targets[3].used
    assert np.median([error_deg(made, x, y) for x, y in FIVE]) < 1.0
    assert "1 of 10 targets did not fit" in verdict(made)


def test_single_wrong_pupils_within_a_look_do_no_harm() -> None:
    seen = looks(FIVE)
    seen[3] = Look(0, seen[3].x, seen[3].y, Pupil(20, 20, 30, 20, 0, 0.9))
    seen[20] = Look(2, seen[20].x, seen[20].y, Pupil(150, 120, 30, 20, 0, 0.9))
    assert np.median([error_deg(calibrate(seen, EYE, SCENE), x, y) for x, y in GRID]) < 0.8


def test_doubtful_pupils_are_not_calibrated_with_but_counted() -> None:
    seen = [Look(k.target, k.x, k.y, None if i % 2 else k.pupil) for i, k in enumerate(looks(FIVE))]
    made = calibrate(seen, EYE, SCENE)
    assert made.quality.frames_used == pytest.approx(0.5)
    assert "Only 50 %" in verdict(made)


def test_without_shapes_of_pupils_a_polynomial_is_fitted() -> None:
    round_ = [
        Look(k.target, k.x, k.y, Pupil(k.pupil.cx, k.pupil.cy, 30, 30, 0, 0.9))
        for k in looks(GRID)
        if k.pupil
    ]
    made = calibrate(round_, EYE, SCENE)
    assert made.eyeball is None
    assert made.map.kind == "polynomial"
    assert np.median([error_deg(made, x, y) for x, y in FIVE]) < 1.5


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (looks(FIVE[:2]), "2 targets were looked at"),
        (looks([(0, 0), (5, 0), (10, 0), (15, 0)]), "span 15 by 0 degrees"),
        ([Look(0, 1, 1, None)] * 50, "0 targets"),
        ([], "0 targets"),
    ],
    ids=["two", "a line", "no pupil", "nothing"],
)
def test_too_little_is_refused_with_what_to_do(seen: list[Look], said: str) -> None:
    with pytest.raises(CalibrationError, match=said):
        calibrate(seen, EYE, SCENE)


def test_a_calibration_is_the_same_after_it_was_kept(five: Calibration, tmp_path: Path) -> None:
    save(five, tmp_path / "gaze.json")
    again = load(tmp_path / "gaze.json")
    assert again == five
    assert again.gaze(pupil_at(7, 3)) == five.gaze(pupil_at(7, 3))
    assert [p.name for p in tmp_path.iterdir()] == ["gaze.json"]


def edit(change: Callable[[dict[str, object]], object]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        data = json.loads(text)
        change(data)
        return json.dumps(data)

    return apply


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text[: len(text) // 2], "not JSON"),
        (lambda text: "", "not JSON"),
        (lambda text: "[1, 2]", "not a calibration file"),
        (lambda text: "[" * 100_000, "not JSON"),
        (edit(lambda d: d.update(version=2)), "version 2"),
        (edit(lambda d: d.pop("map")), "map"),
        (edit(lambda d: d["map"].update(radius=-1)), "radius"),  # type: ignore[attr-defined]
        (edit(lambda d: d.update(eyeball=[1, 1, 0])), "eyeball"),
        (edit(lambda d: d.update(shift=[0, "x"])), "shift"),
        (lambda text: re.sub(r'"radius": ?[\d.]+', '"radius": NaN', text), "radius"),
    ],
    ids=["cut", "empty", "a list", "deep", "newer", "no map", "negative", "a point", "a word", "no number"],
)
def test_a_damaged_file_is_refused_in_one_line(
    five: Calibration, tmp_path: Path, spoil: Callable[[str], str], said: str
) -> None:
    path = tmp_path / "gaze.json"
    save(five, path)
    path.write_text(spoil(path.read_text("utf-8")), "utf-8")
    with pytest.raises(CalibrationError, match=said) as refused:
        load(path)
    assert "\n" not in str(refused.value)
    assert "os1 calibrate" in str(refused.value)


def test_a_missing_and_a_binary_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="No such file"):
        load(tmp_path / "none.json")
    (tmp_path / "photo").write_bytes(b"\xff\xd8\xff\x00")
    with pytest.raises(CalibrationError, match="not a calibration"):
        load(tmp_path / "photo")


def test_one_tap_puts_slipped_glasses_right(five: Calibration) -> None:
    eye = RenderedEye().slipped(0.4, 0.9, 0.2)
    before = np.median([error_deg(five, x, y, eye=eye) for x, y in GRID])
    tapped = five.recentred(
        [pupil_at(0, 0, eye=eye, noise=0.1, seed=i) for i in range(12)], *SCENE.pixel(0, 0)
    )
    after = np.median([error_deg(tapped, x, y, eye=eye) for x, y in GRID])
    assert before > 3.5
    assert after < 1.0


def test_a_tap_while_the_eye_moves_or_is_shut_is_refused(five: Calibration) -> None:
    with pytest.raises(CalibrationError, match="tap again"):
        five.recentred([None] * 12, 320, 240)
    with pytest.raises(CalibrationError, match="the eye moved"):
        five.recentred([pupil_at(x, 0) for x in range(-10, 10, 2)], 320, 240)


def test_the_eyeball_is_where_it_was_rendered() -> None:
    eye = RenderedEye()
    ball = fit_eyeball([pupil_at(x, y) for x, y in [*GRID, *FIVE]])
    assert ball
    assert ball[:2] == pytest.approx(eye.project(np.zeros(3)), abs=3.0)


def test_pupils_seen_from_straight_ahead_tell_no_eyeball() -> None:
    eye = RenderedEye(camera=(0.0, 0.0, 40.0))
    assert fit_eyeball([pupil_at(x / 10, y / 10, eye) for x, y in [*GRID, *GRID]]) is None


def test_slipped_glasses_are_noticed_and_most_of_it_is_made_good(five: Calibration) -> None:
    assert five.eyeball
    watch = SlipWatch(*five.eyeball)
    eye = RenderedEye().slipped(0.4, 0.9, 0.2)
    for x, y in GRID * 3:
        watch.step(pupil_at(x, y, eye=eye, noise=0.15, seed=int(10 * x + y) % 97))
    before = np.median([error_deg(five, x, y, eye=eye) for x, y in GRID])
    after = np.median([error_deg(five, x, y, watch.shift, eye=eye) for x, y in GRID])
    assert before > 3.5
    assert after < 1.2


def test_glasses_that_sit_as_calibrated_are_left_alone(five: Calibration) -> None:
    assert five.eyeball
    watch = SlipWatch(*five.eyeball)
    for x, y in FIVE * 7:
        watch.step(pupil_at(x, y))
        assert watch.shift == (0.0, 0.0)  # fewer than 40 votes say nothing
    for x, y in GRID * 10:
        watch.step(pupil_at(x, y, noise=0.15, seed=int(7 * x + y) % 89))
    assert np.hypot(*watch.shift) < 0.6


@pytest.mark.parametrize(
    ("slip", "outside", "seen", "said"),
    [(2.0, 0.1, 300, None), (9.0, 0.0, 5, "slipped"), (1.0, 0.6, 300, "beside"), (1.0, 1.0, 10, None)],
)
def test_drift_is_told_with_its_reason(slip: float, outside: float, seen: int, said: str | None) -> None:
    drift = judge_drift(slip, outside, seen)
    assert (drift is None) if said is None else (drift is not None and said in drift.reason)


def test_the_report_shows_every_target_and_needs_nothing_else(five: Calibration) -> None:
    page = report_html(five)
    assert page.count("<circle") == 5
    assert not re.search(r"<script|https?://|src=", page)
    assert f"{five.quality.median_deg:.1f} degrees" in page
    assert "left out" not in verdict(five)


def test_pixels_and_directions_are_inverse_and_angles_are_right() -> None:
    assert SCENE.direction(*SCENE.pixel(12.5, -7.25)) == pytest.approx((12.5, -7.25))
    pixels = np.asarray([SCENE.pixel(0, 0)]), np.asarray([SCENE.pixel(10, 0)])
    assert SCENE.angles_between(*pixels)[0] == pytest.approx(10.0)
    assert SCENE.pixel(41.0, 0)[0] == pytest.approx(640.0)
