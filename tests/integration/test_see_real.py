"""The real detector on real photos: names what is there, and nothing else with confidence."""

import csv
import os
from pathlib import Path

import pytest

from os1_edge.see.image import load_image
from os1_edge.see.objects import ObjectDetector
from os1_edge.see.scene import SceneDescriber

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("OS1_SHARED_DATA", ROOT.parent / "shared" / "data"))
DEMO = ROOT / "edge" / "os1_edge" / "demo" / "morning" / "scene"


@pytest.fixture(scope="module")
def detector() -> ObjectDetector:
    os1_models = pytest.importorskip("os1_models")
    try:
        model, labels = os1_models.path("objects-ssd"), os1_models.path("objects-ssd", "labels.txt")
    except Exception as error:
        pytest.skip(f"the object detector is not pulled: {error}")
    return ObjectDetector(Path(model), Path(labels))


@pytest.fixture
def photos() -> Path:
    folder = DATA / "scene"
    if not folder.is_dir():
        pytest.skip(f"no labelled photos at {folder} (set OS1_SHARED_DATA)")
    return folder


@pytest.mark.models
@pytest.mark.shared_data
def test_a_photo_of_a_cat_is_a_cat(detector: ObjectDetector, photos: Path) -> None:
    picture = load_image(photos / "scikit-image" / "chelsea.png")
    best = detector.detect(picture)[0]
    assert best.label == "cat"
    assert best.score > 0.7
    x, y, width, height = best.box
    assert width * height > 0.6 * picture.shape[0] * picture.shape[1]
    assert x + width <= picture.shape[1]
    assert y + height <= picture.shape[0]


@pytest.mark.models
@pytest.mark.shared_data
def test_an_espresso_is_a_coffee_cup_where_it_stands(detector: ObjectDetector, photos: Path) -> None:
    (cup,) = detector.detect(load_image(photos / "scikit-image" / "coffee.png"))
    assert cup.label == "coffee cup"
    x, y, width, height = cup.box
    assert x < 290 < x + width  # the middle of the cup's mouth, read off the photo
    assert y < 110 < y + height


@pytest.mark.models
@pytest.mark.shared_data
def test_textures_and_other_things_get_no_name(detector: ObjectDetector, photos: Path) -> None:
    for name in ("brick.png", "grass.png", "coins.png", "text.png", "rocket.jpg"):
        assert detector.detect(load_image(photos / "scikit-image" / name)) == (), name


@pytest.mark.models
@pytest.mark.shared_data
def test_a_hand_over_the_lens_is_never_described_and_the_station_hall_holds_only_people(
    detector: ObjectDetector, photos: Path
) -> None:
    describer = SceneDescriber(detector)
    covered = missed = 0
    with (photos / "openglass" / "content.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        seen = describer.look(load_image(photos / "openglass" / row["file"]))
        if row["state"] == "covered":
            covered += 1
            assert not seen.usable, row["file"]
        elif row["usable"] == "1":
            missed += not seen.usable
            assert {thing.label for thing in seen.objects} <= {"person"}, row["file"]
    assert covered == 12
    assert missed == 0


WANTED = {
    "cafe-2.jpg": {"coffee cup", "table"},
    "kitchen-2.jpg": {"coffee cup", "table"},
    "kitchen-5.jpg": {"cat"},
    "office-2.jpg": {"laptop", "computer monitor", "desk"},
    "street-1.jpg": {"car", "bicycle"},
}


@pytest.mark.models
@pytest.mark.parametrize("name", WANTED)
def test_the_demo_mornings_pictures_show_what_its_questions_ask(detector: ObjectDetector, name: str) -> None:
    found = {thing.label for thing in detector.detect(load_image(DEMO / name))}
    assert found >= WANTED[name]
