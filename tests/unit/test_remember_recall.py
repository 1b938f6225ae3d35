"""What comes to mind."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from os1_edge.config import RecallWeights, Remember
from os1_edge.remember.query import read_question
from os1_edge.remember.ranking import Candidate, Weights
from os1_edge.remember.recall import Hit, RecallRules, rank, rules_of

NOW = datetime(2026, 3, 2, 12)
RULES = RecallRules(limit=3, min_similarity=0.3)


def turn(heard: str, turn_id: str = "t1", days_ago: float = 0) -> Candidate:
    return Candidate("turn", 1, NOW - timedelta(days=days_ago), heard, location="kitchen", turn_id=turn_id)


def line(text: str, source: str = "t9") -> Candidate:
    return Candidate("profile", 1, NOW, text, source_turn=source)


def recalled(
    turns: list[tuple[Candidate, float]],
    profile: list[tuple[Candidate, float]] | None = None,
    in_view: tuple[str, ...] = (),
    rules: RecallRules = RULES,
    asked: str = "What about it?",
) -> list[Hit]:
    candidates = [replace(memory, meaning=similarity) for memory, similarity in [*turns, *(profile or [])]]
    return rank(candidates, read_question(asked, NOW), NOW, in_view, rules)


def test_a_question_asked_before_is_no_memory() -> None:
    hits = recalled([(turn("When is my dentist? "), 0.99), (turn("The dentist is on Thursday.", "t2"), 0.6)])
    assert [h.text for h in hits] == ["The dentist is on Thursday."]


def test_what_is_told_beside_a_question_is_remembered() -> None:
    told = "Hi! I bought a red bike. Do you like it?"
    assert [h.text for h in recalled([(turn(told), 0.9), (turn("Oh wow! Is it red?", "t2"), 0.8)])] == [told]


def test_what_the_prompt_holds_already_is_not_given_twice() -> None:
    hits = recalled([(turn("I like tea."), 0.9), (turn("I like jam.", "t2"), 0.5)], in_view=("i LIKE tea.",))
    assert [h.text for h in hits] == ["I like jam."]


def test_a_profile_line_beside_the_turn_that_it_came_from_is_left_out() -> None:
    allergy = line("The wearer is allergic to peanuts.", "t1")
    assert [h.kind for h in recalled([(turn("I am allergic to peanuts."), 0.8)], [(allergy, 0.9)])] == [
        "turn"
    ]
    assert [h.kind for h in recalled([], [(allergy, 0.9)])] == ["profile"]
    assert [h.kind for h in recalled([(turn("I am allergic to peanuts."), 0.1)], [(allergy, 0.9)])] == [
        "profile"
    ]


@pytest.mark.parametrize("similarity", [0.8, 0.1])
def test_a_profile_line_whose_turn_the_prompt_holds_is_left_out(similarity: float) -> None:
    """Whatever its words: a distilled line need not be what the rules make of the turn."""
    source, distilled = turn("Peanuts make me ill."), line("The wearer avoids peanuts.", "t1")
    assert recalled([(source, similarity)], [(distilled, 0.9)], in_view=("Peanuts make me ill.",)) == []


def test_what_has_nothing_to_do_with_it_stays_forgotten() -> None:
    assert recalled([(turn("I like tea."), 0.29)], [(line("x"), 0.29)]) == []
    assert len(recalled([(turn("I like tea."), 0.3)])) == 1


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_no_more_memories_than_asked_for_and_the_best_first(limit: int) -> None:
    turns = [(turn(f"Fact {i}.", f"t{i}"), 0.4 + i / 20) for i in range(8)]
    hits = recalled(turns, rules=RecallRules(limit=limit, min_similarity=0.3))
    assert [h.text for h in hits] == [f"Fact {7 - i}." for i in range(limit)]


def test_an_old_memory_that_fits_beats_a_new_one_that_does_not() -> None:
    hits = recalled([(turn("New.", "t1", 0), 0.5), (turn("Old.", "t2", 400), 0.6)])
    assert [h.text for h in hits] == ["Old.", "New."]


def test_of_two_that_fit_alike_the_newer_comes_first() -> None:
    hits = recalled([(turn("Old.", "t2", 90), 0.6), (turn("New.", "t1", 0), 0.6)])
    assert [h.text for h in hits] == ["New.", "Old."]


def test_the_same_words_said_twice_are_one_memory() -> None:
    hits = recalled([(turn("I like tea.", "t1", 9), 0.6), (turn("i like tea.", "t2"), 0.6)])
    assert len(hits) == 1
    assert hits[0].time == NOW


def test_each_memory_says_why_it_came() -> None:
    (hit,) = recalled([(turn("I like tea.", days_ago=2), 0.61)])
    assert hit.reason == "similarity 0.61, 2 days old"
    assert hit.location == "kitchen"


def test_a_memory_from_the_future_does_not_outshine_everything() -> None:
    (hit,) = recalled([(turn("I like tea.", days_ago=-1000), 0.5)])
    assert hit.score <= 0.55


def test_a_weight_set_otherwise_changes_what_comes_first() -> None:
    said, near = turn("The bike was blue then.", "a"), turn("It is red now.", "b")
    memories = [(replace(said, before=0.1), 0.6), (replace(near, before=0.9), 0.5)]
    settings = [Remember(), Remember(weights=RecallWeights(before=0.0))]
    first, other = (recalled(memories, rules=rules_of(s))[0].text for s in settings)
    assert (first, other) == (near.text, said.text)


@pytest.mark.parametrize(("setting", "weight"), [("recency_weight", 0.5), ("importance_weight", 0.5)])
def test_importance_and_recency_count_as_much_as_is_set(setting: str, weight: float) -> None:
    old, new = turn("The bike is red.", "a", 90), turn("The bike is blue.", "b")
    memories = [(old, 0.6), (replace(new, importance=9), 0.5)]
    first = recalled(memories, rules=rules_of(Remember()))[0].text
    other = recalled(memories, rules=rules_of(Remember(**{setting: weight})))[0].text
    assert (first, other) == (old.text, new.text)


def test_the_settings_are_the_measured_weights_where_nothing_is_set() -> None:
    assert rules_of(Remember()) == RecallRules(derived=False)
    assert RecallWeights().model_dump() == Weights()._asdict()
