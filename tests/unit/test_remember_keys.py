"""Index keys in three dimensions, and how much a memory moves."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.remember.importance import importance_by_rule
from os1_edge.remember.keys import LONGEST, MOST, Keys, grounded, keys_by_rule, merged

MORNING = datetime(2026, 3, 2, 9)


def test_the_papers_picnic_is_found_by_when_where_and_what() -> None:
    keys = keys_by_rule("I plan to have a picnic in the park this weekend.", MORNING)
    assert "this weekend" in keys.temporal
    assert keys.spatial == ("in the park",)
    assert keys.semantic == ("have a picnic",)


def test_an_event_is_found_by_its_day_its_place_and_what_was_done() -> None:
    text = '09:00-09:40 gym, exercising; you said: "I am training for the marathon."'
    keys = keys_by_rule(text, MORNING, "gym", "exercising")
    assert keys.temporal[:2] == ("Monday morning", "2 March 2026")
    assert keys.spatial[0] == "at the gym"
    assert "exercising" in keys.semantic
    assert any("marathon" in key for key in (*keys.spatial, *keys.semantic))


def test_an_appointment_is_found_by_its_hour() -> None:
    keys = keys_by_rule("I have a dentist appointment on Thursday at three o'clock.", MORNING)
    assert {"on Thursday", "at three o'clock"} <= set(keys.temporal)
    assert "have a dentist appointment" in keys.semantic


def test_nobody_looks_for_somewhere() -> None:
    assert keys_by_rule("Hello there.", MORNING, "somewhere", "unknown").spatial == ()


@given(st.text(max_size=400), st.sampled_from(["", "gym", "somewhere"]))
def test_keys_are_few_short_and_none_twice(text: str, location: str) -> None:
    keys = keys_by_rule(text, MORNING, location)
    for dimension in (keys.temporal, keys.spatial, keys.semantic):
        assert len(dimension) <= MOST
        assert len({key.casefold() for key in dimension}) == len(dimension)
        assert all(0 < len(key) <= LONGEST for key in dimension)


def test_a_models_keys_are_kept_only_in_the_memorys_words_and_their_own_dimension() -> None:
    text = "I plan to have a picnic in the park this weekend."
    model = Keys(
        temporal=("this weekend", "in the park", "next Christmas"),
        spatial=("in the park", "this weekend", "at the beach"),
        semantic=("have a picnic", "eat sandwiches"),
    )
    assert grounded(model, text, MORNING, "") == Keys(("this weekend",), ("in the park",), ("have a picnic",))


def test_a_models_keys_come_before_the_rules() -> None:
    both = merged(Keys(semantic=("picnic plan",)), Keys(semantic=("have a picnic", "Picnic plan")))
    assert both.semantic == ("picnic plan", "have a picnic")


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("My father died last night.", "I missed the bus."),
        ("We are getting married!", "I am cooking dinner."),
        ("I am terrified.", "I am tired."),
        ("I had a car accident.", "I had a meeting."),
        ("I am so happy!", "I am happy."),
        ("I am worried.", "I am a bit worried."),
        ("I am afraid of the surgery.", "Where is my cup?"),
        ("I am angry.", "I am not angry."),
        ("Hello.", ""),
    ],
)
def test_what_moves_more_is_more_important(more: str, less: str) -> None:
    assert importance_by_rule(more) > importance_by_rule(less)


@given(st.text(max_size=200))
def test_importance_is_between_one_and_ten_whatever_was_said(text: str) -> None:
    assert 1 <= importance_by_rule(text) <= 10


def test_good_and_bad_count_alike() -> None:
    assert importance_by_rule("My son was born today!") == importance_by_rule("My uncle died today!")
