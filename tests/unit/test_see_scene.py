"""One honest sentence: what the boxes carry is said, what they do not is not."""

import numpy as np
import pytest

from os1_edge.events import Gaze
from os1_edge.see.crop import Crop
from os1_edge.see.faces import Face
from os1_edge.see.objects import DetectedObject
from os1_edge.see.scene import SceneDescriber, describe, setting_of, stands_on, with_faces
from os1_edge.see.text import TextLine

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


def test_light_is_said_of_the_picture() -> None:
    picture, eyes = scene_picture(), SceneDescriber(Fake())
    assert [eyes.look((picture * k).astype(np.uint8)).light for k in (1.0, 0.3, 0.1)] == [
        "bright",
        "dim",
        "dark",
    ]


def looking_at(target: DetectedObject) -> Crop:
    return Crop((0, 0, 300, 300), target, "the cup holds 90 % of the gaze", False)


def test_what_is_looked_at_is_said_apart_from_what_is_merely_in_view() -> None:
    cup, table = thing("coffee cup", (300, 180, 80, 90)), thing("table", TABLE)
    seen = describe([cup, table, thing("person")], "bright", 1, looking_at(cup))
    assert seen.sentence == "Looking at a coffee cup; in view: a person and a table."
    assert seen.looked_at == "coffee cup"
    assert "90 % of the gaze" in seen.reason


def test_a_person_looked_at_is_not_counted_among_the_others() -> None:
    ann, bob = thing("person"), thing("person", TABLE)
    assert (
        describe([ann, bob], "bright", 2, looking_at(ann)).sentence
        == "Looking at a person; in view: a person."
    )
    assert describe([ann], "dim", 1, looking_at(ann)).sentence == "Looking at a person; the light is dim."


def test_words_are_quoted_and_a_page_is_cut_short() -> None:
    assert describe([], "bright", 0, None, ["EXIT"]).sentence == "Nothing I can name. It reads “EXIT”."
    long = describe([], "bright", 0, None, ["a word or two"] * 20)
    assert len(long.sentence) < 110
    assert long.sentence.endswith("…”.")
    assert len(long.text) == 20


def test_a_face_without_a_body_is_a_person_and_one_with_it_is_not_counted_twice() -> None:
    body = thing("person", (100, 100, 200, 300))
    inside, apart = Face(0.9, (180, 120, 40, 50)), Face(0.8, (500, 100, 40, 50))
    found = with_faces([body], [inside, apart])
    assert [(one.score, one.box) for one in found] == [(0.8, apart.box), (0.7, body.box)]


def test_the_setting_is_told_only_where_the_things_tell_it() -> None:
    assert setting_of([thing("desk")]) == "indoors"
    assert setting_of([thing("car")]) == "outdoors"
    assert setting_of([thing("car"), thing("desk")]) == setting_of([thing("table")]) == ""


class Reads:
    """A reader that says how large a picture it was given."""

    def read(self, image: np.ndarray) -> tuple[TextLine, ...]:
        return (TextLine(f"{image.shape[1]}x{image.shape[0]}", 0.9, ()),)


def test_only_the_gaze_crop_is_read_and_only_when_asked() -> None:
    eyes = SceneDescriber(Fake(), None, Reads())
    gaze = Gaze(0.0, 320.0, 240.0, 0.9, 2.0)
    assert eyes.look(scene_picture(), gaze).text == ()
    assert eyes.look(scene_picture(), gaze, read=True).text == ("224x224",)
    assert eyes.look(scene_picture(), None, read=True).text == ("640x480",)


class Faces:
    """A finder that finds one face."""

    def find(self, image: np.ndarray, least: float = 0.5) -> tuple[Face, ...]:
        return (Face(0.9, (10, 10, 30, 40)),)


def test_a_face_makes_a_person_of_the_sentence() -> None:
    seen = SceneDescriber(Fake(), Faces()).look(scene_picture())
    assert (seen.sentence, seen.people) == ("A person.", 1)
