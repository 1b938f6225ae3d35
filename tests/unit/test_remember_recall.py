"""What comes to mind, what makes one event of the day, and what enters the profile."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.events import RealtimeContext
from os1_edge.remember.cluster import DailyEvent, EventClusterer, place_key
from os1_edge.remember.profile import propose, reinforced
from os1_edge.remember.recall import Hit, RecallRules, rank
from os1_edge.remember.store import ProfileEntry, StoredTurn, Vector

NOW = datetime(2026, 3, 2, 12)
RULES = RecallRules(limit=3, min_similarity=0.3)


def turn(heard: str, turn_id: str = "t1", days_ago: float = 0) -> StoredTurn:
    return StoredTurn(1, turn_id, NOW - timedelta(days=days_ago), heard, "Noted.", "kitchen")


def line(text: str, source: str = "t9") -> ProfileEntry:
    return ProfileEntry(1, "health", text, 0.8, NOW, source)


def recalled(
    turns: list[tuple[StoredTurn, float]],
    profile: list[tuple[ProfileEntry, float]] | None = None,
    in_view: tuple[str, ...] = (),
    rules: RecallRules = RULES,
) -> list[Hit]:
    return rank(turns, profile or [], NOW, in_view, rules)


def test_a_question_asked_before_is_no_memory() -> None:
    hits = recalled([(turn("When is my dentist? "), 0.99), (turn("The dentist is on Thursday.", "t2"), 0.6)])
    assert [h.text for h in hits] == ["The dentist is on Thursday."]


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


# Daily events (paper 3.2.3): contiguous, alike pair by pair, as long as can be.


def compass(degrees: float) -> Vector:
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], np.float32)


def day(*degrees: float, threshold: float = 0.75) -> list[DailyEvent]:
    clusterer = EventClusterer(threshold)
    out = []
    for i, angle in enumerate(degrees):
        context = RealtimeContext(float(i), "", "", f"place {angle}", "")
        out.append(clusterer.add(context, NOW + timedelta(minutes=i), compass(angle)))
    return [e for e in [*out, clusterer.close()] if e is not None]


def lengths(events: list[DailyEvent]) -> list[int]:
    return [e.contexts for e in events]


def test_staying_in_one_place_is_one_event() -> None:
    (event,) = day(0, 0, 10, 0)
    assert (event.contexts, event.location) == (4, "place 0")
    assert (event.start, event.end) == (NOW, NOW + timedelta(minutes=3))


def test_coming_back_later_is_a_new_event() -> None:
    assert lengths(day(0, 0, 90, 0, 0)) == [2, 1, 2]


def test_a_slow_drift_is_cut_where_the_first_and_the_last_differ() -> None:
    """Every two contexts of an event must be alike, not only neighbours: cos 41 degrees = 0.755."""
    assert lengths(day(0, 20, 40, 60, 80)) == [3, 2]


def test_nothing_seen_is_no_event() -> None:
    assert day() == []
    assert EventClusterer().close() is None


@given(st.lists(st.integers(0, 360), max_size=40), st.floats(-0.5, 1.0))
def test_events_keep_the_three_conditions_of_the_paper(angles: list[int], threshold: float) -> None:
    sizes = lengths(day(*angles, threshold=threshold))
    assert sum(sizes) == len(angles)  # contiguous, nothing lost, nothing double
    vectors = [compass(a) for a in angles]
    at = 0
    for size in sizes:
        run = angles[at : at + size]
        kinds = {a: compass(a) for a in run}
        alike = [float(u @ v) >= threshold for a, u in kinds.items() for b, v in kinds.items() if a != b]
        assert all(alike)  # alike pair by pair
        if at + size < len(angles):  # as long as can be: the next context would not have fitted
            assert any(float(vectors[at + size] @ v) < threshold for v in vectors[at : at + size])
        at += size


@given(st.lists(st.integers(0, 360), max_size=30))
def test_a_day_lived_context_by_context_has_the_same_events_as_looked_back_on(angles: list[int]) -> None:
    """Batch, by the definition: extend while every pair stays alike."""
    batch: list[list[int]] = []
    for angle in angles:
        fits = batch and all(float(compass(angle) @ compass(other)) >= 0.75 for other in batch[-1])
        if fits:
            batch[-1].append(angle)
        else:
            batch.append([angle])
    assert lengths(day(*angles)) == [len(run) for run in batch]


def test_an_event_is_named_after_its_commonest_place_and_quotes_the_wearer() -> None:
    clusterer = EventClusterer()
    for i, (place, words) in enumerate((("hall", ""), ("office", "I start now."), ("office", ""))):
        clusterer.add(RealtimeContext(i, "", words, place, "working"), NOW + timedelta(minutes=i), compass(0))
    event = clusterer.close()
    assert event is not None
    assert event.summary == '12:00-12:02 office, working; you said: "I start now."'


def test_a_talkative_event_keeps_only_a_few_quotes() -> None:
    clusterer = EventClusterer()
    for i in range(50):
        clusterer.add(RealtimeContext(i, "", f"word {i}", "office", ""), NOW, compass(0))
    event = clusterer.close()
    assert event is not None
    assert event.said == tuple(f"word {i}" for i in range(5))
    assert place_key("office", "") == "office"
    assert place_key("office", "working") == "office, working"


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ("Please remember that I am allergic to peanuts.", "health", "The wearer is allergic to peanuts."),
        ("I'm badly allergic to bee stings!", "health", "The wearer is allergic to bee stings."),
        ("Well, I am vegetarian.", "health", "The wearer is vegetarian."),
        ("I like green tea more than coffee.", "preference", "The wearer likes green tea more than coffee."),
        ("I really don't like mushrooms, you know", "preference", "The wearer does not like mushrooms."),
        ("I can't stand loud music", "preference", "The wearer does not like loud music."),
        ("My name is Ada.", "social background", "The wearer is called Ada."),
        ("I work at the harbour.", "social background", "The wearer works at the harbour."),
        ("I live in Oslo; it is cold.", "social background", "The wearer lives in Oslo."),
    ],
)
def test_what_the_wearer_states_of_themselves_enters_the_profile(said: str, kind: str, text: str) -> None:
    assert [(p.kind, p.text) for p in propose(said)] == [(kind, text)]


@pytest.mark.parametrize(
    "said",
    [
        "What food am I allergic to?",
        "Do you think I like tea?",
        "I like tea?",
        "I like tea, do I not?",
        "You are allergic to nuts.",
        "My sister is allergic to nuts.",
        "I like.",
        "Good morning.",
        "",
        "...",
    ],
)
def test_a_question_or_somebody_elses_matter_does_not(said: str) -> None:
    assert propose(said) == []


def test_two_statements_in_one_breath_are_two_lines_and_the_question_is_none() -> None:
    found = propose("I live in Oslo. Do I like snow? I love skiing! I hate rain.")
    assert [p.text for p in found] == [
        "The wearer lives in Oslo.",
        "The wearer likes skiing.",
        "The wearer does not like rain.",
    ]


@given(st.text(max_size=200))
def test_no_words_can_break_the_profile(said: str) -> None:
    for proposal in propose(said):
        assert proposal.text.startswith("The wearer ")
        assert proposal.text.endswith(".")


def test_saying_it_again_makes_it_surer_but_never_certain() -> None:
    confidence = 0.8
    for _ in range(5):
        confidence, before = reinforced(confidence), confidence
        assert before < confidence <= 1


def test_a_place_that_is_not_known_is_not_one_event_across_a_gap() -> None:
    clusterer = EventClusterer()
    vector = np.ones(384, np.float32) / np.sqrt(np.float32(384))
    morning = datetime(2026, 3, 2, 8)
    context = RealtimeContext(0.0, "", "", "somewhere", "unknown")
    assert clusterer.add(context, morning, vector) is None
    assert clusterer.add(context, morning + timedelta(minutes=4), vector) is None
    closed = clusterer.add(context, morning + timedelta(minutes=14), vector)
    assert closed is not None
    assert closed.end == morning + timedelta(minutes=4)
