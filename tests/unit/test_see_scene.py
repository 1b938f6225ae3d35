"""One honest sentence: what the boxes carry is said, what they do not is not."""

import numpy as np
import pytest

from os1_edge.see.objects import DetectedObject
from os1_edge.see.scene import SceneDescriber, describe, measure, stands_on, unusable_reason

Box = tuple[int, int, int, int]
TABLE: Box = (0, 200, 640, 280)
FAR: Box = (0, 0, 10, 10)


def thing(label: str, box: Box = FAR) -> DetectedObject:
    return DetectedObject(label, 0.7, box)


def said(*things: DetectedObject, light: str = "bright", people: int = 0) -> str:
    return describe(things, light, people).sentence


def test_one_thing_is_one_short_sentence() -> None:
    assert said(thing("cat")) == "A cat."
    assert said(thing("high heels")) == "High heels."


def test_a_cup_whose_foot_is_inside_the_tables_box_is_on_the_table() -> None:
    assert said(thing("coffee cup", (300, 180, 80, 90)), thing("table", TABLE)) == "A coffee cup on a table."


def test_a_cup_above_or_beside_the_table_is_not_said_to_be_on_it() -> None:
    assert said(thing("coffee cup", (300, 20, 80, 90)), thing("table", TABLE)) == "A coffee cup and a table."
    narrow: Box = (0, 200, 200, 280)
    assert (
        said(thing("coffee cup", (300, 180, 80, 90)), thing("table", narrow)) == "A coffee cup and a table."
    )


def test_a_cup_as_large_as_the_table_stands_before_it() -> None:
    assert not stands_on(thing("coffee cup", (0, 200, 640, 270)), thing("table", TABLE))


def test_a_cat_or_a_chair_is_never_put_on_a_table() -> None:
    for label in ("cat", "chair", "person", "car"):
        assert " on " not in said(thing(label, (300, 180, 80, 90)), thing("table", TABLE))


def test_several_things_on_a_desk_are_one_list() -> None:
    on = [
        thing(label, (100 + 150 * i, 180, 80, 90))
        for i, label in enumerate(("laptop", "computer monitor", "book"))
    ]
    assert said(*on, thing("desk", TABLE)) == "A laptop, a computer monitor and a book on a desk."
    assert (
        said(*on[::2], thing("desk", TABLE), thing("chair")) == "A laptop and a book on a desk, and a chair."
    )


def test_the_same_thing_twice_is_two_and_many_are_several() -> None:
    assert said(thing("chair"), thing("chair")) == "Two chairs."
    assert said(*[thing("computer mouse")] * 3) == "Three computer mice."
    assert said(*[thing("book")] * 7) == "Several books."


def test_people_come_first_and_are_counted() -> None:
    assert said(thing("person"), thing("table"), people=1) == "A person and a table."
    assert said(people=2) == "Two people."
    assert said(people=9) == "Several people."


def test_one_table_found_twice_is_one_table() -> None:
    assert said(thing("table", TABLE), thing("table", (50, 190, 400, 60))) == "A table."
    assert said(thing("table", (0, 0, 100, 50)), thing("table", (200, 0, 100, 50))) == "Two tables."


def test_nothing_named_is_said_so_with_the_light() -> None:
    assert said() == "Nothing I can name."
    assert said(light="dim") == "Nothing I can name; the light is dim."


def test_the_light_is_said_only_when_it_matters() -> None:
    assert said(thing("cat"), light="dim") == "A cat; the light is dim."
    assert said(thing("cat"), light="dark") == "A cat; it is dark."


def test_a_long_list_is_cut() -> None:
    labels = ["bicycle", "boot", "cat", "dog", "book", "car", "box"]
    assert said(*map(thing, labels)) == "A bicycle, a boot, a cat and a dog."


def scene_picture() -> np.ndarray:
    """Blocks of light and dark, as a room has."""
    blocks = np.random.default_rng(3).integers(0, 255, (12, 16, 3), np.uint8)
    return np.repeat(np.repeat(blocks, 40, axis=0), 40, axis=1)


class Fake:
    """A detector that finds the same things in every picture and counts its calls."""

    def __init__(self, *things: DetectedObject) -> None:
        self.things, self.calls = things, 0

    def detect(self, image: np.ndarray) -> tuple[DetectedObject, ...]:
        self.calls += 1
        return self.things


COVERED = {
    "black": np.zeros((480, 640, 3), np.uint8),
    "sensor noise in the dark": np.random.default_rng(1).integers(0, 40, (480, 640, 3), np.uint8),
    "a finger over the lens": np.tile(np.linspace(60, 160, 640).astype(np.uint8)[None, :, None], (480, 1, 3)),
    "a blank wall": np.full((480, 640, 3), 200, np.uint8),
}


@pytest.mark.parametrize("name", COVERED)
def test_a_covered_lens_is_not_described(name: str) -> None:
    fake = Fake(thing("person"))
    seen = SceneDescriber(fake).look(COVERED[name])
    assert not seen.usable
    assert seen.sentence == ""
    assert "covered" in seen.reason
    assert (seen.objects, seen.people, fake.calls) == ((), 0, 0)


def test_a_picture_with_detail_is_described_with_its_people() -> None:
    seen = SceneDescriber(Fake(thing("person"), thing("cat"))).look(scene_picture())
    assert (seen.sentence, seen.people, seen.light, seen.usable) == ("A person and a cat.", 1, "bright", True)


def test_light_is_measured() -> None:
    picture = scene_picture()
    assert [measure((picture * k).astype(np.uint8))[0] for k in (1.0, 0.3, 0.1)] == ["bright", "dim", "dark"]


def test_a_dark_blank_picture_says_dark() -> None:
    assert "black" in unusable_reason("dark", 0.0)
    assert "no detail" in unusable_reason("bright", 0.0)
    assert unusable_reason("dark", 1e6) == ""
