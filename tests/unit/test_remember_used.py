"""Which memories a reply rested on is kept with its turn, and goes with either of the two."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from memories import KEY, MONDAY, at, event, know, meaning, new, say, see

import os1_edge.remember.migrate as migrating
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.edit import edit
from os1_edge.remember.export import export
from os1_edge.remember.forget import carry_out, foresee
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit
from os1_edge.remember.schema import STEPS
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo
from os1_edge.remember.used import keep_used, used_of
from os1_edge.review import reading

HOUR = Window(MONDAY, MONDAY + timedelta(hours=1))


def hit(kind: Any, row: int, reason: str = "similarity 0.80") -> Hit:
    return Hit(kind, "as it was then", MONDAY, "", 0.8, reason, row)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = new(tmp_path)
    yield store
    store.close()


@pytest.fixture
def asked(store: Store) -> int:
    """A turn whose reply rested on what was said before, on a profile line and on an event."""
    told = say(store, "t1", "I am allergic to peanuts.")
    line = know(store, "is allergic to peanuts", [told])
    trained = event(store, [see(store, "gym", 10)], "Trained at the gym.", 10)
    row = say(store, "t2", "What may I eat after the gym?", 30, reply="No peanuts.")
    keep_used(store, row, [hit("turn", told), hit("profile", line), hit("event", trained, "words gym")])
    return row


def used(store: Store, turn: int) -> list[tuple[str, str]]:
    return [(u.kind, u.text) for u in used_of(store, turn)]


ALL = [
    ("event", "Trained at the gym."),
    ("profile", "is allergic to peanuts"),
    ("turn", "I am allergic to peanuts."),
]


def test_the_page_shows_what_a_reply_rested_on_and_why(store: Store, asked: int) -> None:
    (talk,) = reading.day(store, date(2026, 3, 2))["conversations"]
    first, second = talk["turns"]
    assert first["used"] == []
    assert second["id"] == f"turn:{asked}"
    assert second["used"][0] == {"id": "event:1", "text": "Trained at the gym.", "reason": "words gym"}
    assert len(second["used"]) == 3


def test_a_forgotten_memory_is_shown_no_more_until_it_is_taken_back(store: Store, asked: int) -> None:
    carry_out(store, foresee(store, [("turn", 1)]), undo=HOUR)  # and with it the profile line
    assert used(store, asked) == ALL[:1]
    assert store.rows("SELECT count(*) FROM turn_used") == [(1,)]
    undo(store)
    assert used(store, asked) == ALL


def test_a_forgotten_turn_leaves_no_note_of_what_it_used(store: Store, asked: int) -> None:
    carry_out(store, foresee(store, [("turn", asked)]), undo=HOUR)
    assert store.rows("SELECT count(*) FROM turn_used") == [(0,)]
    undo(store)
    assert used(store, asked) == ALL


def test_what_is_forgotten_for_good_stays_away(store: Store, asked: int) -> None:
    carry_out(store, foresee(store, [("turn", 1)]))
    assert undo(store) is None
    assert used(store, asked) == ALL[:1]


def test_an_event_made_again_is_not_named_by_the_words_it_lost(store: Store, asked: int) -> None:
    store.add_context(store.contexts()[0][0], at(11))
    store.rows("UPDATE contexts SET event_id = 1")
    carry_out(store, foresee_about(store, "gym", about(store, "gym")), undo=HOUR)
    assert "gym" not in str(store.rows("SELECT reason FROM turn_used"))


def test_a_corrected_turn_keeps_what_its_reply_rested_on(store: Store, asked: int) -> None:
    _, row = edit(store, ("turn", asked), "What may I drink after the gym?", at(40), meaning)
    assert used(store, row) == ALL


def test_a_memory_forgotten_between_recall_and_reply_is_not_noted(store: Store, asked: int) -> None:
    keep_used(store, 1, [hit("turn", 99), hit("summary", 7)])
    assert used(store, 1) == []


def test_an_export_holds_none_of_it(store: Store, asked: int) -> None:
    out = io.StringIO()
    export(store, out)
    assert "words gym" not in out.getvalue()


class _Meanings:
    name = "fake"

    def one(self, text: str) -> Any:
        return meaning(text)


def test_a_kept_turn_notes_what_it_used_once(tmp_path: Path) -> None:
    async def live() -> list[tuple[str, str]]:
        embedder: Any = _Meanings()
        memory = Memory(Store(tmp_path / "memory.db", KEY), embedder)
        try:
            await memory.keep_turn("t1", 0, at(0), "The key is under the mat.", "All right.", "home")
            for _ in range(2):
                await memory.keep_turn(
                    "t2", 0, at(5), "Where is the key?", "Under the mat.", "home", used=[hit("turn", 1)] * 2
                )
            return await memory.run(used, memory.store, 2)
        finally:
            memory.close()

    assert asyncio.run(live()) == [("turn", "The key is under the mat.")]


def test_a_memory_of_the_release_before_can_note_it_too(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with pytest.MonkeyPatch.context() as older:
        older.setattr(migrating, "STEPS", STEPS[:3])
        store = Store(path, KEY)
    told = say(store, "t1", "I am allergic to peanuts.")
    store.close()
    store = Store(path, KEY)
    assert (tmp_path / "memory.db.v3.bak").exists()
    row = say(store, "t2", "What may I eat?", 5)
    keep_used(store, row, [hit("turn", told)])
    assert used(store, row) == ALL[2:]
    store.close()
