"""The pupil is found in rendered eyes: past glints, lashes, lids, noise; and not where there is none."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from os1_edge.bench.rendered_eye import RenderedEye, gaze_direction
from os1_edge.see.gaze.pupil import Pupil, find_pupil

AHEAD = gaze_direction(0, 0)


def eye(
    right: float = 0.0, down: float = 0.0, **about: float
) -> tuple[NDArray[np.uint8], tuple[float, float]]:
    """An eye picture, and the pixel of the pupil's middle in it."""
    rendered = RenderedEye(**about)  # type: ignore[arg-type]
    gaze = gaze_direction(right, down)
    frame = rendered.picture(gaze, np.random.default_rng(7))
    return frame, rendered.project(gaze * np.sqrt(144.0 - rendered.pupil_mm**2))


def away(pupil: Pupil | None, x: float, y: float) -> float:
    return float("inf") if pupil is None else float(np.hypot(pupil.cx - x, pupil.cy - y))


@pytest.mark.parametrize(("right", "down"), [(0, 0), (-15, -10), (15, -10), (-15, 10), (15, 10)])
def test_the_pupil_is_found_wherever_the_eye_looks(right: float, down: float) -> None:
    frame, middle = eye(right, down)
    pupil = find_pupil(frame)
    assert away(pupil, *middle) < 1.5
    assert pupil
    assert pupil.confidence > 0.9


@pytest.mark.parametrize(
    "about", [{"pupil_mm": 1.3}, {"pupil_mm": 3.2}, {"noise": 9.0}, {"iris_level": 60.0}]
)
def test_small_wide_noisy_and_dark_eyes_are_found(about: dict[str, float]) -> None:
    frame, middle = eye(**about)
    assert away(find_pupil(frame), *middle) < 1.5


@pytest.mark.parametrize("gain", [0.03, 0.3, 1.4])
def test_a_weak_and_a_strong_lamp_change_nothing(gain: float) -> None:
    frame, middle = eye(noise=1.0)
    pupil = find_pupil(np.clip(frame * gain, 0, 255).astype(np.uint8))
    assert away(pupil, *middle) < 1.5
    assert pupil
    assert pupil.confidence > 0.8


@pytest.mark.parametrize("zoom", [0.6, 2.0, 5.0, 14.0])
def test_any_size_of_frame_gives_the_ellipse_in_its_own_pixels(zoom: float) -> None:
    frame, (x, y) = eye()
    small = find_pupil(frame)
    pupil = find_pupil(
        cv2.resize(frame, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA).astype(np.uint8)
    )
    assert away(pupil, (x + 0.5) * zoom - 0.5, (y + 0.5) * zoom - 0.5) < 1.5 * zoom
    assert small
    assert pupil
    assert pupil.major == pytest.approx(small.major * zoom, rel=0.06)
    assert pupil.minor == pytest.approx(small.minor * zoom, rel=0.06)


def test_a_turned_and_a_coloured_frame_are_the_same_eye() -> None:
    frame, (x, y) = eye(10, 5)
    turned = np.ascontiguousarray(np.rot90(frame))
    assert away(find_pupil(turned), y, frame.shape[1] - 1 - x) < 1.5
    assert away(find_pupil(cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR).astype(np.uint8)), x, y) < 1.5


def test_the_axes_are_full_lengths_and_the_angle_is_of_the_longer_one() -> None:
    page = np.full((240, 320), 150, np.uint8)
    cv2.ellipse(page, (150, 110), (40, 28), 30, 0, 360, 20, -1, cv2.LINE_AA)
    pupil = find_pupil(cv2.GaussianBlur(page, (0, 0), 1.0).astype(np.uint8))
    assert pupil
    assert (pupil.cx, pupil.cy) == pytest.approx((150, 110), abs=0.5)
    assert (pupil.major, pupil.minor) == pytest.approx((80, 56), abs=2)
    assert pupil.angle_deg == pytest.approx(30, abs=3)


def test_a_lid_over_a_third_of_the_pupil_does_not_move_its_middle() -> None:
    frame, (x, y) = eye()
    whole = find_pupil(frame)
    assert whole
    lid = int(y - whole.minor / 2 + whole.minor * 0.3)
    frame[:lid] = 160
    assert away(find_pupil(frame), x, y) < 0.15 * whole.major


def test_a_large_glint_on_the_rim_does_not_move_it() -> None:
    frame, (x, y) = eye(pupil_mm=2.6)
    whole = find_pupil(frame)
    assert whole
    cv2.circle(frame, (int(whole.cx + whole.minor / 2), int(whole.cy)), 6, 255, -1)
    assert away(find_pupil(frame), x, y) < 1.5


@pytest.mark.parametrize("seed", range(6))
def test_a_closed_eye_has_no_confident_pupil(seed: int) -> None:
    closed = RenderedEye(lid_open=-0.45, skin_level=110.0 + 15 * seed)
    pupil = find_pupil(closed.picture(AHEAD, np.random.default_rng(seed)))
    assert pupil is None or pupil.confidence < 0.35


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((192, 192), np.uint8),
        np.full((192, 192), 255, np.uint8),
        np.random.default_rng(0).integers(0, 255, (192, 192)).astype(np.uint8),
        np.tile(np.linspace(0, 255, 192).astype(np.uint8), (192, 1)),
        np.zeros((3, 9), np.uint8),
        np.zeros((600, 50), np.uint8),
        np.zeros((1, 900), np.uint8),
        np.full((1, 1, 3), 9, np.uint8),
        np.zeros((0, 0), np.uint8),
    ],
    ids=["black", "white", "noise", "slope", "tiny", "narrow", "a line", "one pixel", "nothing"],
)
def test_frames_without_an_eye_have_no_confident_pupil(frame: NDArray[np.uint8]) -> None:
    pupil = find_pupil(frame)
    assert pupil is None or pupil.confidence < 0.35


def test_a_wrong_pupil_of_the_frame_before_does_not_stay() -> None:
    frame, middle = eye()
    wrong = Pupil(30.0, 120.0, 40.0, 40.0, 0.0, 1.0)
    assert away(find_pupil(frame, wrong), *middle) < 1.5


def test_a_frame_that_is_not_eight_bits_is_refused() -> None:
    with pytest.raises(TypeError, match="uint8"):
        find_pupil(np.zeros((100, 100), np.uint16))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [(40, 40), (250, 40), (160, 200), (300, 230)])
def test_a_pupil_wrongly_found_in_the_last_frame_does_not_stay(place: tuple[float, float]) -> None:
    frame, middle = eye(8, -6)
    wrong = Pupil(*place, major=40.0, minor=34.0, angle_deg=10.0, confidence=0.99)
    assert away(find_pupil(frame, wrong), *middle) < 1.5


def test_a_pupil_found_again_is_where_a_search_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = find_pupil(eye(8, -6)[0])
    frame, middle = eye(9, -5)
    searched = find_pupil(frame)
    monkeypatch.setattr("os1_edge.see.gaze.pupil.dark_blobs", lambda _work: pytest.fail("it searched"))
    found = find_pupil(frame, before)
    assert found
    assert searched
    assert away(found, *middle) < 1.5
    assert away(found, searched.cx, searched.cy) < 0.3
    assert found.major == pytest.approx(searched.major, rel=0.03)
