"""The detector's arithmetic on made-up numbers: anchors, boxes, suppression, thresholds."""

from pathlib import Path

import numpy as np
import pytest

from os1_edge.see import objects
from os1_edge.see.objects import (
    DetectedObject,
    ObjectDetector,
    decode_boxes,
    make_anchors,
    overlap,
    read_labels,
    scores,
    select_objects,
    suppress,
    to_input,
    to_pixels,
)

LABELS = ("???", "mug", "coffee cup", "person", "vehicle")
WHOLE = [0.0, 0.0, 1.0, 1.0]


def select(boxes: list[list[float]], **values: list[float]) -> tuple[DetectedObject, ...]:
    """Pick from `boxes` (left, top, right, bottom) with a list of scores a label, in a 200 x 100 picture."""
    table = np.zeros((len(boxes), len(LABELS)), np.float32)
    for label, column in values.items():
        table[:, LABELS.index(label.replace("_", " "))] = column
    return select_objects(np.array(boxes, np.float32), table, LABELS, 200, 100)


def test_there_are_1917_anchors_and_the_first_layer_is_reduced() -> None:
    anchors = make_anchors()
    assert anchors.shape == (1917, 4)
    assert anchors.dtype == np.float32
    # 19 x 19 cells of three: a small square, then wide and tall of scale 0.2.
    assert anchors[0] == pytest.approx([0.5 / 19, 0.5 / 19, 0.1, 0.1])
    assert anchors[1] == pytest.approx([0.5 / 19, 0.5 / 19, 0.2 / 2**0.5, 0.2 * 2**0.5], rel=1e-5)
    assert anchors[2] == pytest.approx([0.5 / 19, 0.5 / 19, 0.2 * 2**0.5, 0.2 / 2**0.5], rel=1e-5)
    assert anchors[3, 1] == pytest.approx(1.5 / 19)  # x runs fastest


def test_the_last_anchor_is_the_interpolated_square_of_the_single_cell() -> None:
    assert make_anchors()[-1] == pytest.approx([0.5, 0.5, 0.95**0.5, 0.95**0.5], rel=1e-5)


def test_the_second_layer_has_six_anchors_a_cell_of_scale_035() -> None:
    layer = make_anchors()[19 * 19 * 3 :][:6]
    assert np.all(layer[:, :2] == np.float32(0.05))
    assert layer[0, 2:] == pytest.approx([0.35, 0.35])
    assert layer[3, 2:] == pytest.approx([0.35 / 3**0.5, 0.35 * 3**0.5], rel=1e-5)
    assert layer[5, 2:] == pytest.approx([(0.35 * 0.5) ** 0.5] * 2, rel=1e-5)


def test_a_zero_encoding_is_the_anchor_itself() -> None:
    anchors = np.array([[0.5, 0.4, 0.2, 0.6]], np.float32)
    assert decode_boxes(np.zeros((1, 4), np.float32), anchors)[0] == pytest.approx([0.1, 0.4, 0.7, 0.6])


def test_an_encoding_shifts_by_tenths_and_grows_by_exp_fifths() -> None:
    anchors = np.array([[0.5, 0.5, 0.2, 0.2]], np.float32)
    encoded = np.array([[10.0, -5.0, 5.0 * np.log(2.0), 0.0]], np.float32)  # y, x, height, width
    # centre y + 1.0 * 0.2, centre x - 0.5 * 0.2, twice as high, as wide
    assert decode_boxes(encoded, anchors)[0] == pytest.approx([0.3, 0.5, 0.5, 0.9], abs=1e-6)


def test_a_box_never_leaves_the_picture_nor_overflows() -> None:
    anchors = np.array([[0.9, 0.9, 0.5, 0.5]], np.float32)
    encoded = np.array([[0.0, 0.0, 1e6, 1e6]], np.float32)
    with np.errstate(over="raise"):
        assert decode_boxes(encoded, anchors)[0].tolist() == WHOLE


def test_scores_are_sigmoids() -> None:
    values = scores(np.array([0.0, 1e4, -1e4, 2.0], np.float32))
    assert values == pytest.approx([0.5, 1.0, 0.0, 1 / (1 + np.exp(-2.0))], abs=1e-6)


def test_the_input_is_rgb_between_minus_one_and_one() -> None:
    blue = np.zeros((10, 20, 3), np.uint8)
    blue[:, :, 0] = 255  # BGR
    fed = to_input(blue)
    assert fed.shape == (1, 300, 300, 3)
    assert fed.dtype == np.float32
    assert fed[0, 150, 150].tolist() == [-1.0, -1.0, 1.0]


def test_overlap_is_shared_over_joint_area() -> None:
    box = np.array([0.0, 0.0, 0.5, 1.0], np.float32)
    others = np.array([WHOLE, [0.5, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 1.0]], np.float32)
    assert overlap(box, others) == pytest.approx([0.5, 0.0, 1.0])


def test_two_boxes_round_one_cup_are_one_cup() -> None:
    found = select([[0.1, 0.1, 0.5, 0.5], [0.12, 0.1, 0.52, 0.5]], mug=[0.6, 0.8])
    assert [(thing.label, round(thing.score, 1)) for thing in found] == [("mug", 0.8)]


def test_a_mug_and_a_coffee_cup_in_one_place_are_the_better_of_the_two() -> None:
    found = select([[0.1, 0.1, 0.5, 0.5], [0.1, 0.1, 0.51, 0.5]], mug=[0.6, 0.0], coffee_cup=[0.55, 0.7])
    assert [thing.label for thing in found] == ["coffee cup"]


def test_a_person_behind_a_cup_is_kept() -> None:
    found = select([[0.4, 0.4, 0.5, 0.6], [0.1, 0.0, 0.9, 0.9]], mug=[0.6, 0.0], person=[0.0, 0.5])
    assert [thing.label for thing in found] == ["mug", "person"]


def test_two_cups_side_by_side_are_two() -> None:
    found = select([[0.0, 0.1, 0.4, 0.5], [0.5, 0.1, 0.9, 0.5]], mug=[0.6, 0.7])
    assert [thing.box[0] for thing in found] == [100, 0]  # best first


def test_suppression_keeps_the_best_first() -> None:
    boxes = np.array([WHOLE, WHOLE, [0.0, 0.0, 0.1, 0.1]], np.float32)
    assert suppress(boxes, np.array([0.5, 0.9, 0.7], np.float32), np.array([1, 2, 1])) == [1, 2]


def test_an_unsure_name_is_not_said() -> None:
    assert select([[0.1, 0.1, 0.5, 0.5]], mug=[0.47]) == ()
    assert select([[0.1, 0.1, 0.5, 0.5]], mug=[0.49])


def test_people_are_believed_sooner_and_vehicles_later() -> None:
    box = [[0.1, 0.1, 0.5, 0.5]]
    assert select(box, person=[0.41])
    assert not select(box, vehicle=[0.58])


def test_a_box_round_the_whole_picture_must_be_surer() -> None:
    assert not select([WHOLE], mug=[0.52])
    assert select([WHOLE], mug=[0.56])


def test_the_background_is_never_an_object() -> None:
    assert (
        select_objects(np.array([WHOLE], np.float32), np.array([[1.0, 0, 0, 0, 0]], np.float32), LABELS, 9, 9)
        == ()
    )


def test_a_crowd_is_bounded() -> None:
    boxes = [[i / 20, 0.0, i / 20 + 0.04, 0.1] for i in range(20)]
    assert len(select(boxes, mug=[0.9] * 20)) == objects.MAX_OBJECTS


def test_boxes_are_pixels_of_the_picture_given() -> None:
    assert to_pixels(np.array([0.25, 0.5, 0.75, 1.0], np.float32), 200, 100) == (50, 50, 100, 50)
    assert to_pixels(np.array([1.0, 1.0, 1.0, 1.0], np.float32), 200, 100) == (199, 99, 1, 1)


def test_labels_are_lower_case_and_background_first() -> None:
    assert read_labels("???\nCoffee cup\n\nCar\n") == ("???", "coffee cup", "car")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.tflite"):
        ObjectDetector(tmp_path / "gone.tflite", tmp_path / "labels.txt")
