"""The real networks on labelled photos of real glasses: the main thing, faces gone, words read."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from os1_edge.events import Gaze
from os1_edge.see.faces import SURE, FaceFinder, blur_faces
from os1_edge.see.frames import look_of, same_view
from os1_edge.see.image import load_image
from os1_edge.see.objects import ObjectDetector
from os1_edge.see.quality import judge_picture
from os1_edge.see.scene import SceneDescriber
from os1_edge.see.text import TextReader

pytestmark = [pytest.mark.models, pytest.mark.shared_data]

Pulled = Callable[..., Path]
PEOPLE = ("man at a table", "face of a man", "hall with arch, board and people")


@pytest.fixture(scope="module")
def detector(pulled: Pulled) -> ObjectDetector:
    return ObjectDetector(pulled("objects-ssd"), pulled("objects-ssd", "labels.txt"))


@pytest.fixture(scope="module")
def finder(pulled: Pulled) -> FaceFinder:
    return FaceFinder(pulled("centerface"))


@pytest.fixture(scope="module")
def reader(pulled: Pulled) -> TextReader:
    return TextReader(pulled("ppocr", "PP-OCRv6_det_small.onnx"), pulled("ppocr"))


@pytest.fixture
def photos(shared_data: Path) -> Path:
    return shared_data / "scene"


def labelled(photos: Path, every: int = 1) -> Iterator[tuple[dict[str, str], np.ndarray]]:
    with (photos / "openglass" / "content.csv").open(newline="") as table:
        for row in list(csv.DictReader(table))[::every]:
            yield row, load_image(photos / "openglass" / row["file"])


def test_a_covered_or_smeared_lens_is_told_from_a_clear_one(photos: Path) -> None:
    judged = [(row, judge_picture(image)) for row, image in labelled(photos)]
    assert [row["file"] for row, quality in judged if quality.usable != (row["usable"] == "1")] == []
    covered = [quality for row, quality in judged if "covered" in row["state"]]
    assert len(covered) == 13
    assert all("covered" in quality.reason for quality in covered)


def test_the_person_before_the_glasses_is_named_upside_down_or_not(
    detector: ObjectDetector, finder: FaceFinder, photos: Path
) -> None:
    eyes = SceneDescriber(detector, finder)
    right = shown = 0
    for row, image in labelled(photos, every=2):
        if row["content"].startswith(PEOPLE):
            seen = eyes.look(image)
            shown += 1
            right += seen.people > 0
            assert {thing.label for thing in seen.objects} <= {"person"}, row["file"]
    assert shown >= 15
    assert right >= 0.8 * shown


def test_things_without_faces_are_no_people(
    detector: ObjectDetector, finder: FaceFinder, photos: Path
) -> None:
    eyes = SceneDescriber(detector, finder)
    for name in ("brick.png", "coins.png", "grass.png", "chelsea.png"):
        assert eyes.look(load_image(photos / "scikit-image" / name)).people == 0, name


def test_no_face_is_found_again_after_the_blur(finder: FaceFinder, photos: Path) -> None:
    faces = 0
    names = ["egoblur/test_face_image.jpg", "scikit-image/astronaut.png"]
    names += [f"openglass/series_1/img_{number}.jpeg" for number in (1, 38, 45)]
    for name in names:
        image = load_image(photos / name)
        clean = blur_faces(image, finder)
        faces += len(clean.faces)
        # Framed, the picture is seen at another scale: not the very cells that were looked at before.
        framed = cv2.copyMakeBorder(clean.image, 80, 80, 60, 60, cv2.BORDER_CONSTANT)
        assert finder.find(np.asarray(framed, np.uint8), SURE) == (), name
    assert faces >= 8


def test_a_printed_page_is_read_line_by_line(reader: TextReader, photos: Path) -> None:
    lines = [line.text for line in reader.read(load_image(photos / "scikit-image" / "page.png"))]
    assert lines[0] == "Region-based segmentation"
    assert lines[1].startswith("Let us first determine markers of the coins")


def test_a_wall_has_nothing_to_read(reader: TextReader, photos: Path) -> None:
    for name in ("brick.png", "coins.png"):
        assert reader.read(load_image(photos / "scikit-image" / name)) == (), name


def test_looking_at_the_cup_says_so(detector: ObjectDetector, photos: Path) -> None:
    seen = SceneDescriber(detector).look(
        load_image(photos / "scikit-image" / "coffee.png"), Gaze(0.0, 290, 110, 0.9, 2.0)
    )
    assert seen.sentence == "Looking at a coffee cup."
    assert seen.looked_at == "coffee cup"


def test_photos_of_one_view_are_near_identical_and_others_are_not(photos: Path) -> None:
    looks = {row["file"]: look_of(image) for row, image in labelled(photos)}

    def alike(one: int, other: int) -> bool:
        return same_view(looks[f"series_1/img_{one}.jpeg"], looks[f"series_1/img_{other}.jpeg"])

    assert all(alike(*pair) for pair in ((4, 5), (5, 6), (43, 44), (44, 45)))
    assert not any(alike(*pair) for pair in ((2, 3), (33, 34), (41, 42), (45, 46), (49, 52)))
