"""From probabilities to lines of text: outlines, reading order, spelling."""

import cv2
import numpy as np
import pytest

from os1_edge.see.text import MAX_LINES, believable, ordered, outlines, spell, straighten

LETTERS = ("", "a", "b", " ")


def chances(*letters: str) -> np.ndarray:
    table = np.full((len(letters), len(LETTERS)), 0.02, np.float32)
    for step, letter in enumerate(letters):
        table[step, LETTERS.index(letter)] = 0.94
    return table


def test_a_repeated_letter_is_one_unless_a_blank_parts_them() -> None:
    assert spell(chances("", "a", "a", "", "a", "b", " ", "b"), LETTERS)[0] == "aab b"
    assert spell(chances("", ""), LETTERS) == ("", 0.0)
    assert spell(chances("a", "", "b"), LETTERS)[1] == pytest.approx(0.94)


def test_a_line_is_found_where_the_ink_is_and_widened() -> None:
    ink = np.zeros((100, 200), np.float32)
    ink[40:50, 50:150] = 0.9
    (corners,) = outlines(ink, (2.0, 1.0))
    left, top, right, bottom = *corners.min(axis=0), *corners.max(axis=0)
    assert left < 100
    assert right > 298
    assert 25 < top < 40
    assert 50 < bottom < 65


def test_specks_and_faint_patches_are_no_lines_and_a_page_is_bounded() -> None:
    ink = np.zeros((400, 200), np.float32)
    ink[5:7, 5:7] = 0.9
    ink[50:60, 20:120] = 0.35
    assert outlines(ink, (1.0, 1.0)) == []
    for row in range(100, 400, 12):
        ink[row : row + 6, 20:180] = 0.9
    assert len(outlines(ink, (1.0, 1.0))) == MAX_LINES


def test_corners_start_at_the_upper_left() -> None:
    box = np.array([[10, 30], [10, 10], [60, 10], [60, 30]], np.float32)
    for turn in range(4):
        assert ordered(np.roll(box, turn, axis=0)).tolist() == [[10, 10], [60, 10], [60, 30], [10, 30]]


def test_a_slanting_line_is_cut_out_level() -> None:
    picture = np.zeros((200, 300, 3), np.uint8)
    corners = cv2.boxPoints(((150.0, 100.0), (160.0, 24.0), 20.0))
    cv2.fillPoly(picture, [corners.astype(np.int32)], (255, 255, 255))
    line = straighten(picture, ordered(corners))
    assert line.shape[0] == 48
    assert line.shape[1] == pytest.approx(320, abs=4)
    assert line.mean() > 235


def test_a_lone_character_must_be_sure() -> None:
    assert believable("Exit", 0.85)
    assert not believable("5", 0.93)
    assert not believable("  ", 1.0)
    assert not believable("Exit", 0.7)
