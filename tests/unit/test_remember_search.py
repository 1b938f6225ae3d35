"""Recall out of a real memory file: by words, by meaning, by time, by key, by who spoke."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from os1_edge.remember import derived, search
from os1_edge.remember.associate import COST_S, associated
from os1_edge.remember.forget import carry_out, foresee
from os1_edge.remember.query import read_question
from os1_edge.remember.ranking import Candidate, Weights, rank_candidates, recency
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import StoredEvent, StoredSummary, searched
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.search import Search
from os1_edge.remember.stem import words
from os1_edge.remember.store import Store, Vector

KEY = bytes(range(32))
NOW = datetime(2026, 3, 4, 15, 30)


class Bag:
    """Texts with words in common are alike."""

    def one(self, text: str) -> Vector:
        vector = np.full(DIMENSIONS, 1e-6, np.float32)
        for word in words(text):
            vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


BAG = Bag()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "memory.db", KEY)
    yield store
    store.close()


def say(store: Store, heard: str, days_ago: float = 1, speaker: str = "wearer", session: str = "s",
        location: str = "", vector: bool = True) -> int:  # fmt: skip
    made = BAG.one(searched(speaker, heard)) if vector else None
    time = NOW - timedelta(days=days_ago)
    number = store.rows("SELECT coalesce(max(id), 0) FROM turns")[0][0]
    return store.add_turn(
        f"t{number}", 0, time, heard, "", location, made, speaker=speaker, session_id=session
    )


def recalled(store: Store, question: str, rules: RecallRules | None = None) -> list[str]:
    return [hit.text for hit in Recall(store, BAG, rules).recall(question, NOW)]


def test_an_empty_memory_recalls_nothing(store: Store) -> None:
    assert recalled(store, "Where is my bike?") == []
    assert recalled(store, "") == []


def test_a_memory_without_a_vector_is_a_candidate_by_its_words(store: Store) -> None:
    say(store, "The bike stands behind the shed.", vector=False)
    asked = Recall(store, BAG, RecallRules(min_similarity=-1.0))
    assert [h.text for h in asked.recall("Where are my bikes?", NOW)] == ["The bike stands behind the shed."]


def test_vectors_of_another_embedder_are_never_compared(store: Store) -> None:
    say(store, "The bike stands behind the shed.")
    assert recalled(store, "Where does the bike stand? Behind the shed?")
    store.set_embedder("another")
    found = Search(store).by_meaning(BAG.one("The bike stands behind the shed."))
    assert found == ({}, [])


def test_what_another_said_is_told_as_theirs(store: Store) -> None:
    say(store, "My boat is called Tern.", speaker="other:Anna")
    (hit,) = Recall(store, BAG).recall("What is the boat of Anna called?", NOW)
    assert hit.text == "Anna said: My boat is called Tern."
    assert hit.speaker == "other:Anna"
    assert "said by Anna" in hit.reason


def test_the_person_asked_about_comes_before_another(store: Store) -> None:
    for speaker in ("other:Ben", "other:Anna", "other:Carl"):
        say(store, "I painted a big sunset for the show.", speaker=speaker, session=speaker)
    assert recalled(store, "What did Anna paint for the show?")[0].startswith("Anna said")


def test_yesterday_rules_out_the_other_days(store: Store) -> None:
    say(store, "I had pizza for lunch.", days_ago=1)
    say(store, "I had pizza with fish for lunch.", days_ago=9)
    assert recalled(store, "What pizza did I have for lunch yesterday?") == ["I had pizza for lunch."]
    assert len(recalled(store, "What pizza did I have for lunch?")) == 2


def test_what_happened_yesterday_needs_no_word_in_common(store: Store) -> None:
    say(store, "Tern needs new paint.", days_ago=1)
    say(store, "Bread is expensive now.", days_ago=3)
    assert recalled(store, "What happened yesterday?") == ["Tern needs new paint."]


def test_a_place_that_is_named_comes_first(store: Store) -> None:
    say(store, "I lifted forty kilos today.", location="kitchen", days_ago=1)
    say(store, "I lifted forty kilos.", location="the gym", days_ago=40)
    (first, *_) = Recall(store, BAG).recall("How many kilos were lifted at the gym?", NOW)
    assert first.location == "the gym"
    assert "at the gym" in first.reason


def test_an_answer_is_found_by_the_question_before_it(store: Store) -> None:
    say(store, "What colour is your new bike, Ben?", session="a")
    answer = say(store, "Red, with a white stripe.", session="a")
    say(store, "Blue, with a green dot.", session="b")
    rules = RecallRules(min_similarity=-1.0)
    assert Recall(store, BAG, rules).recall("What colour is the new bike?", NOW)[0].ref_id == answer


def test_another_session_is_no_neighbour(store: Store) -> None:
    say(store, "What colour is your new bike, Ben?", session="a")
    say(store, "Red, with a white stripe.", session="b")
    question = read_question("What colour is the new bike?", NOW)
    found = Search(store).find(question, BAG.one(question.plain))
    assert len(found.candidates) == 2
    assert all(c.before == 0 == c.after for c in found.candidates)


def test_what_was_forgotten_is_not_recalled(store: Store) -> None:
    row = say(store, "The bike stands behind the shed.")
    with store.transaction() as db:
        db.execute("DELETE FROM turns WHERE id = ?", (row,))
    assert recalled(store, "Where is the bike? Behind the shed?") == []


def test_memories_fit_the_prompt(store: Store) -> None:
    for i in range(5):
        say(store, f"The bike number {i} stands behind the shed. " + "It is red. " * 20)
    rules = RecallRules(limit=5, min_similarity=-1.0, tokens=140)
    assert len(recalled(store, "Where does the bike stand?", rules)) == 2


def test_a_word_that_half_the_memory_holds_brings_the_newest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "POSTINGS", 5)
    monkeypatch.setattr(search, "BY_WORDS", 3)
    rows = [say(store, f"The bike is there, look, number {i}.", vector=False) for i in range(9)]
    question = read_question("Where is the bike?", NOW)
    found = Search(store).find(question, BAG.one("nothing alike"))
    beside = rows[-4]  # of the third newest, the one before it
    assert sorted(c.ref_id for c in found.candidates) == [beside, *rows[-3:]]


def test_every_word_of_a_question_may_be_an_operator_of_the_index(store: Store) -> None:
    say(store, "NEAR and far OR not.")
    for question in ('NEAR(a "b" OR', "near* AND far", '"""', "a:b ^c -d", "%_\\'; DROP TABLE turns"):
        recalled(store, question)


def event(store: Store, summary: str, *keys: str) -> int:
    row = derived.add_event(store, StoredEvent(0, NOW, NOW, "", "", summary, "rule", 1), [], BAG.one(summary))
    derived.put_keys(store, "event", row, NOW, [("semantic", key, BAG.one(key)) for key in keys])
    return row


def test_a_memory_is_found_by_its_key(store: Store) -> None:
    event(store, "08:00 harbour, walking", "sailing boat")
    (hit,) = Recall(store, BAG).recall("Was there a sailing boat?", NOW)
    assert (hit.kind, hit.text) == ("event", "08:00 harbour, walking")
    assert 'key "sailing boat"' in hit.reason


def test_one_memory_leads_to_another_that_shares_a_key(store: Store) -> None:
    first = event(store, "08:00 harbour, walking", "sailing boat")
    second = event(store, "12:00 library, reading", "sailing boat")
    event(store, "15:00 kitchen, cooking", "soup")
    linked = associated(store, [("event", first)], 5)
    assert [(link.memory.ref_id, link.key, link.to) for link in linked] == [
        (second, "sailing boat", ("event", first))
    ]


@pytest.mark.parametrize(
    ("budget_s", "begun"), [(None, True), (COST_S, True), (COST_S / 2, False), (0.0, False)]
)
def test_without_time_nothing_is_associated(store: Store, budget_s: float | None, begun: bool) -> None:
    first = event(store, "08:00 harbour, walking", "sailing boat")
    event(store, "12:00 library, reading", "sailing boat")
    assert bool(associated(store, [("event", first)], 5, budget_s)) is begun


def talk_of_boats(store: Store) -> list[int]:
    """Two conversations, each summed up under the key "sailing boat"; and one of something else."""
    said = ["Anna has a sailing boat now.", "A sailing boat passed the pier.", "Soup is on the stove."]
    rows = [say(store, heard, days_ago=3 * i, session=f"s{i}") for i, heard in enumerate(said)]
    for i, key in enumerate(("sailing boat", "sailing boat", "soup")):
        row = derived.put_summary(store, StoredSummary(0, f"s{i}", NOW, NOW, said[i], "rule", 1), None)
        derived.put_keys(store, "summary", row, NOW, [("semantic", key, BAG.one(key))])
    return rows


LINKING = RecallRules(limit=1, associated=2, fitting=False, derived=False)


def test_a_turn_leads_to_another_days_turn_by_a_key_of_its_conversation(store: Store) -> None:
    rows = talk_of_boats(store)
    first, linked = Recall(store, BAG, LINKING).recall("What does Anna have now?", NOW)
    assert (first.ref_id, linked.ref_id, linked.kind) == (rows[0], rows[1], "turn")
    assert linked.reason == f'linked by "sailing boat" to turn:{rows[0]}'


@pytest.mark.parametrize(
    ("rules", "budget_s"),
    [(LINKING, 0.0), (replace(LINKING, associated=0), None), (replace(LINKING, tokens=10), None)],
    ids=["no time", "switched off", "no room"],
)
def test_without_time_room_or_wish_nothing_is_linked(
    store: Store, rules: RecallRules, budget_s: float | None
) -> None:
    talk_of_boats(store)
    hits = Recall(store, BAG, rules).recall("What does Anna have now?", NOW, budget_s=budget_s)
    assert len(hits) == 1


def test_a_reply_is_given_a_link_only_where_it_fits_the_question_too(store: Store) -> None:
    rows = talk_of_boats(store)
    rules = replace(LINKING, fitting=True)
    assert [h.ref_id for h in Recall(store, BAG, rules).recall("What does Anna have now?", NOW)] == rows[:1]
    first, linked = Recall(store, BAG, rules).recall("Has Anna passed the pier?", NOW)
    assert {first.ref_id, linked.ref_id} == set(rows[:2])
    assert "linked by" in linked.reason


def test_what_is_linked_never_takes_the_place_of_what_fits_better(store: Store) -> None:
    talk_of_boats(store)
    say(store, "Anna has a red bicycle now.", session="s9")
    for limit, tokens in ((1, 240), (2, 240), (2, 12), (3, 240)):
        alone = RecallRules(limit=limit, tokens=tokens, associated=0)
        direct = Recall(store, BAG, alone).recall("What does Anna have now?", NOW)
        for fitting in (True, False):
            rules = replace(alone, associated=3, fitting=fitting)
            hits = Recall(store, BAG, rules).recall("What does Anna have now?", NOW)
            assert hits[: len(direct)] == direct
            assert sum(len(hit.text) for hit in hits[1:]) <= 4 * tokens


def test_what_the_prompt_holds_already_is_not_linked(store: Store) -> None:
    rows = talk_of_boats(store)
    seen = ["A sailing boat passed the pier."]
    hits = Recall(store, BAG, LINKING).recall("What does Anna have now?", NOW, seen)
    assert [h.ref_id for h in hits] == [rows[0]]


def test_recall_goes_on_after_something_was_forgotten_for_good(store: Store) -> None:
    row = say(store, "the red bicycle")
    say(store, "a green lamp")
    found = Search(store)
    assert found.find(read_question("red bicycle", NOW), BAG.one("red bicycle")).candidates
    carry_out(store, foresee(store, [("turn", row)]))
    say(store, "the blue boat")
    heard = [c.text for c in found.find(read_question("boat", NOW), BAG.one("the blue boat")).candidates]
    assert "the blue boat" in heard
    assert "the red bicycle" not in heard
    assert store.nearest_signs("turn", BAG.one("the blue boat"), 5)[0] == max(
        item for (item,) in store.rows("SELECT id FROM items")
    )


def test_a_word_that_all_say_does_not_crowd_out_the_one_that_tells(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "POSTINGS", 5)
    monkeypatch.setattr(search, "BY_WORDS", 3)
    say(store, "Rosebud drank tea.", 9, vector=False)
    for n in range(20):
        say(store, f"Tea again, number {n}.", 1 - n / 100, session=f"s{n}", vector=False)
    question = read_question("Did Rosebud like tea?", NOW, ())
    found = Search(store).find(question, BAG.one("nothing of it"))
    assert "Rosebud drank tea." in [candidate.text for candidate in found.candidates]


def test_the_companions_own_words_are_no_memory(store: Store) -> None:
    say(store, "The bike stands behind the shed.", speaker="os1")
    assert recalled(store, "Where is the bike?", RecallRules(min_similarity=-1.0)) == []


def test_a_question_asked_forty_times_does_not_hide_what_answers_it(store: Store) -> None:
    asked = "Where does the wearer keep bikes?"
    for n in range(search.BY_MEANING + 1):
        say(store, asked, 1 + n, session=f"s{n}", vector=True)
    event = StoredEvent(0, NOW, NOW, "shed", "", "Velos stay in sheds of the wearer.", "rule", 1)
    row = derived.add_event(store, event, [], BAG.one(event.summary))
    found = Search(store).find(read_question(asked, NOW, ()), BAG.one(asked))
    assert ("event", row) in [(candidate.kind, candidate.ref_id) for candidate in found.candidates]


@pytest.mark.parametrize(("minutes", "beside"), [(29, True), (31, False)])
def test_of_turns_without_a_session_only_what_was_said_soon_before_is_beside(
    minutes: int, beside: bool, store: Store
) -> None:
    say(store, "The bike?", 1 + minutes / 1440, session="")
    say(store, "Behind the shed.", 1, session="")
    found = Search(store).find(read_question("Where is the bike?", NOW, ()), BAG.one("bike"))
    (told,) = (candidate for candidate in found.candidates if candidate.text == "Behind the shed.")
    assert (told.before > 0.1) is beside
    assert ("bike" in told.near) is beside


def test_where_two_are_asked_about_it_does_not_matter_which_of_them_spoke(store: Store) -> None:
    say(store, "The bike is blue.", speaker="other:Anna")
    say(store, "The bike is blue, too.", speaker="other:Tom", session="t")
    say(store, "The bike is blue, yes.", session="u")
    recall = Search(store)
    question = read_question("What did Anna and Tom say of the bike?", NOW, recall.people())
    assert question.people == {"anna", "tom"}
    found = recall.find(question, BAG.one("bike"))
    ranked = rank_candidates(found.candidates, question, found.rarity, NOW, Weights(), 0, 0)
    assert {r.features.speaker for r in ranked} == {0.5}


def test_what_has_no_neighbours_is_not_ranked_below_what_has(store: Store) -> None:
    line = Candidate("profile", 1, NOW, "The wearer has a bike.", meaning=0.8)
    turn = Candidate("turn", 2, NOW, "I have a bike.", meaning=0.8, before=0.1, after=0.3)
    question = read_question("Do I have a bike?", NOW, ())
    ranked = {
        r.candidate.kind: r.features
        for r in rank_candidates([line, turn], question, {}, NOW, Weights(), 0, 0)
    }
    assert (ranked["profile"].before, ranked["profile"].after) == (0.4, 0.4)
    assert (ranked["turn"].before, ranked["turn"].after) == (0.1, 0.3)


def test_a_memory_from_before_the_clock_was_set_back_is_as_one_of_now() -> None:
    assert recency(NOW + timedelta(days=365), NOW) == 1
    assert recency(NOW - timedelta(days=30), NOW) == 0.5
