"""Where the wearer is and what they do: from their words and the things in view, never from nothing."""

import pytest

from os1_edge.see.objects import DetectedObject
from os1_edge.see.place import guess_place
from os1_edge.see.scene import SceneDescription, describe


def view(*labels: str) -> SceneDescription:
    return describe([DetectedObject(label, 0.7, (0, 0, 10, 10)) for label in labels], "bright", 0)


def guess(utterance: str = "", *labels: str) -> tuple[str, str]:
    found = guess_place(view(*labels), utterance)
    assert found.reason
    return found.location, found.activity


def test_without_evidence_nothing_is_invented() -> None:
    assert guess() == ("somewhere", "unknown")
    assert guess("What is the time?", "coffee cup", "table") == ("somewhere", "unknown")
    assert guess_place(view()).reason == "no evidence"


@pytest.mark.parametrize(
    ("utterance", "location"),
    [
        ("Here in the kitchen it smells of bread.", "kitchen"),
        ("I'm at the gym.", "gym"),
        ("I am now in my office.", "office"),
        ("We just arrived at the café.", "cafe"),
        ("I am at work.", "office"),
        ("This is the library.", "library"),
    ],
)
def test_the_wearers_words_name_the_place(utterance: str, location: str) -> None:
    assert guess(utterance)[0] == location


@pytest.mark.parametrize(
    "utterance",
    [
        "I am not in the kitchen.",
        "Tomorrow I am at the gym.",
        "I was in the office yesterday.",
        "I will be at the station.",
        "Is there a kitchen in Rome?",
        "The office wrote to me.",
    ],
)
def test_another_place_or_time_is_not_here(utterance: str) -> None:
    assert guess(utterance)[0] == "somewhere"


def test_what_the_wearer_does_may_name_the_place() -> None:
    assert guess("I'm waiting for the bus.") == ("bus stop", "waiting for the bus")
    assert guess("I am cooking some pasta.") == ("kitchen", "cooking")
    assert guess("I am starting work on the quarterly report now.") == ("somewhere", "working")


@pytest.mark.parametrize(
    "utterance",
    [
        "What was I working on this morning?",
        "Am I working late?",
        "I am not working today.",
        "I stopped reading.",
    ],
)
def test_a_question_or_a_denial_is_no_activity(utterance: str) -> None:
    assert guess(utterance)[1] == "unknown"


def test_two_desk_things_are_an_office_and_one_is_not() -> None:
    assert guess("", "laptop", "desk") == ("office", "working")
    assert guess("", "laptop") == ("somewhere", "unknown")
    assert guess("", "laptop", "laptop") == ("somewhere", "unknown")


def test_cars_and_bicycles_are_a_street() -> None:
    assert guess("", "car", "bicycle") == ("street", "unknown")


def test_words_outweigh_what_is_in_view() -> None:
    assert guess("I am at the gym.", "car") == ("gym", "unknown")
    assert guess("I am in the library.", "laptop", "desk") == ("library", "unknown")


def test_an_unusable_picture_is_no_evidence() -> None:
    blind = SceneDescription("", view("car").objects, 0, "dark", False, "covered")
    assert guess_place(blind).location == "somewhere"


def test_the_reason_names_the_evidence() -> None:
    assert guess_place(view("car")).reason == "in view: car"
    assert guess_place(view("car"), "I'm at the gym.").reason == "the wearer named the gym"
