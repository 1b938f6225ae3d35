"""What can be used is described; covered, black, blown out, blank and blurred pictures say what is wrong."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from os1_edge.see.quality import Measures, judge, judge_picture

RANDOM = np.random.default_rng(7)


def room() -> np.ndarray:
    """Blocks of light and dark with sharp edges."""
    blocks = np.random.default_rng(3).integers(0, 255, (12, 16, 3), np.uint8)
    return np.repeat(np.repeat(blocks, 40, axis=0), 40, axis=1)


def finger(share: float) -> np.ndarray:
    """A room with the right `share` of the lens under a finger that light falls on from one side."""
    picture, edge = room(), round(640 * (1 - share))
    skin = np.tile(np.linspace(30, 200, 640).astype(np.uint8)[None, :, None], (480, 1, 3))
    picture[:, edge:] = skin[:, edge:]
    return picture


def noisy(mean: float, level: float) -> np.ndarray:
    shade = np.linspace(0.5, 1.5, 640)[None, :, None] * mean
    return np.clip(RANDOM.normal(0, level, (480, 640, 3)) + shade, 0, 255).astype(np.uint8)


USABLE = {
    "a room": room(),
    "a dim room": (room() * 0.25).astype(np.uint8),
    "a dark room with sensor noise": np.clip(room() * 0.12 + RANDOM.normal(0, 4, (480, 640, 3)), 0, 255),
    "a strip of finger": finger(0.2),
}


@pytest.mark.parametrize("name", USABLE)
def test_what_can_be_seen_is_usable(name: str) -> None:
    judged = judge_picture(USABLE[name].astype(np.uint8))
    assert judged.usable, judged.reason
    assert judged.sharpness > 0


BAD = {
    "black": (np.zeros((480, 640, 3), np.uint8), "black"),
    "sensor noise in a black frame": (noisy(8, 6), "black"),
    "sensor noise under a finger": (noisy(30, 12), "noise"),
    "a finger over all of it": (finger(1.0), "covered"),
    "a finger over most of it": (finger(0.75), "covered"),
    "a blank wall": (np.full((480, 640, 3), 180, np.uint8), "no detail"),
    "blown out": (np.clip(room().astype(int) * 3 + 200, 0, 255).astype(np.uint8), "over-exposed"),
    "out of focus": (cv2.GaussianBlur(room(), (0, 0), 8), "blurred"),
    "smeared": (cv2.addWeighted(cv2.GaussianBlur(room(), (0, 0), 14), 0.92, room(), 0.08, 0), "blurred"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_seen_says_why(name: str) -> None:
    picture, word = BAD[name]
    judged = judge_picture(picture)
    assert not judged.usable
    assert word in judged.reason
    assert judged.sharpness == 0


def test_blur_lowers_sharpness_before_it_makes_a_frame_useless() -> None:
    sharp, soft = judge_picture(room()), judge_picture(cv2.GaussianBlur(room(), (0, 0), 2))
    assert soft.usable
    assert soft.sharpness < 0.7 * sharp.sharpness


@pytest.mark.parametrize("shape", [(1, 1), (3, 2000), (2000, 3), (17, 16)])
def test_a_picture_of_any_shape_is_judged(shape: tuple[int, int]) -> None:
    assert judge_picture(np.zeros((*shape, 3), np.uint8)).usable is False


def test_wide_edges_alone_are_blur_however_strong_they_are() -> None:
    sharp = Measures(120, 200, 0.2, 9.0, 3.5, 0.1, 30, 0.01)
    assert judge(sharp).usable
    assert "blurred" in judge(replace(sharp, edge_width=6.5)).reason
