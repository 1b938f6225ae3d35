"""What is looked at: as sure as gaze is, and nothing where it is not."""

import pytest

from os1_edge.events import Gaze
from os1_edge.see.crop import choose_crop, held_by
from os1_edge.see.objects import DetectedObject


def thing(label: str, *box: int) -> DetectedObject:
    return DetectedObject(label, 0.7, (box[0], box[1], box[2], box[3]))


CUP = thing("mug", 280, 220, 60, 60)
TABLE = thing("table", 0, 200, 640, 280)
PERSON = thing("person", 200, 20, 240, 460)


def gaze(x: float, y: float, error_deg: float = 2.0, confidence: float = 0.9) -> Gaze:
    return Gaze(0.0, x, y, confidence, error_deg)


def test_without_gaze_the_whole_picture_is_shown() -> None:
    for look in (None, gaze(310, 250, confidence=0.2), gaze(-20, 250)):
        crop = choose_crop(look, [CUP], 640, 480)
        assert crop.whole
        assert crop.box == (0, 0, 640, 480)
        assert crop.looked_at is None
        assert crop.reason


def test_the_cup_is_looked_at_not_the_table_under_it_nor_the_person_behind() -> None:
    crop = choose_crop(gaze(310, 250), [PERSON, TABLE, CUP], 640, 480)
    assert crop.looked_at is CUP
    x, y, wide, high = crop.box
    assert x <= 280
    assert x + wide >= 340
    assert y <= 220
    assert y + high >= 280
    assert wide < 320


def test_a_table_alone_is_looked_at_when_nothing_stands_there() -> None:
    assert choose_crop(gaze(600, 440), [TABLE, CUP], 640, 480).looked_at is TABLE


def test_an_unsure_gaze_at_the_cup_is_still_not_one_at_the_table() -> None:
    assert choose_crop(gaze(310, 250, error_deg=6.0), [TABLE, CUP], 640, 480).looked_at is CUP


def test_between_two_cups_nothing_is_claimed() -> None:
    other = thing("bottle", 345, 220, 60, 60)
    crop = choose_crop(gaze(342, 250, error_deg=4.0), [CUP, other], 640, 480)
    assert crop.looked_at is None
    assert "between" in crop.reason
    assert choose_crop(gaze(305, 250, error_deg=1.0), [CUP, other], 640, 480).looked_at is CUP


def test_gaze_on_nothing_known_names_nothing_but_shows_the_place() -> None:
    crop = choose_crop(gaze(100, 100), [CUP], 640, 480)
    assert crop.looked_at is None
    assert not crop.whole
    assert crop.box == (-12 + 12, 0, 224, 224)


def test_the_crop_grows_with_the_uncertainty() -> None:
    sure, unsure = (choose_crop(gaze(320, 240, error_deg=e), [], 640, 480).box for e in (1.0, 10.0))
    assert sure == (208, 128, 224, 224)
    assert unsure[2] == pytest.approx(2 * 2 * 10 * 640 / 82, abs=1)


@pytest.mark.parametrize("x", [0, 1, 320, 639])
@pytest.mark.parametrize("y", [0, 240, 479])
def test_the_crop_never_leaves_the_picture_nor_loses_the_gaze(x: int, y: int) -> None:
    for objects in ([], [CUP, TABLE, PERSON]):
        left, top, wide, high = choose_crop(gaze(x, y, error_deg=5), objects, 640, 480).box
        assert 0 <= left <= x <= left + wide <= 640
        assert 0 <= top <= y <= top + high <= 480


def test_half_of_the_looks_are_within_the_median_error() -> None:
    """A box as wide as the circle of the median error holds a little more than its half."""
    assert held_by((-10, -10, 20, 20), 0, 0, 10) == pytest.approx(0.578, abs=0.01)
    assert held_by((-1000, -1000, 2000, 2000), 0, 0, 10) == pytest.approx(1.0)
