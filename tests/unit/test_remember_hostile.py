"""Text that nobody says, a clock that is wrong, another's words: all is kept, found and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from memories import at, meaning, new, say, see, texts

from os1_edge.events import RealtimeContext
from os1_edge.remember import forget
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.memory import Memory
from os1_edge.remember.mend import compare
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import readable
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window, purge_due, undoable


class Apart:
    """An embedder to which no two texts are alike; like a real one it takes no half of a letter."""

    one = staticmethod(meaning)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = new(tmp_path)
    store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
    yield store
    with store.reading() as db:
        assert not compare(db)
    store.close()


@pytest.mark.parametrize(
    "said",
    ["the code \0 is Rosebud", "\0Rosebud", "שלום Rosebud \u202e", "👩‍👩‍👧‍👦 Rosebud", "Rosebud " * 100_000],
)
def test_whatever_stands_around_a_word_it_is_found_and_forgotten(said: str, store: Store) -> None:
    say(store, "t1", said, reply=f"You said {said}")
    say(store, "t2", "Something else.", 1)
    see(store, "kitchen", 0, said)
    recall = Recall(store, Apart(), RecallRules(min_similarity=-1.0, limit=1))
    assert [hit.ref_id for hit in recall.recall("rosebud", at(5))] == [1]
    with store.reading() as db:
        assert not compare(db)
    found = about(store, "Rosebud")
    assert [mention.row for mention in found] == [("context", 1), ("turn", 1)]
    forget.carry_out(store, foresee_about(store, "Rosebud", found))
    assert texts(store) == ["Something else."]


def test_words_behind_a_nul_in_an_older_file_are_forgotten_too(store: Store) -> None:
    row = say(store, "t1", "nothing yet")
    store.rows("UPDATE turns SET heard = 'the code' || char(0) || ' is Rosebud' WHERE id = ?", row)
    found = about(store, "Rosebud")
    assert [mention.row for mention in found] == [("turn", row)]
    forget.carry_out(store, foresee_about(store, "Rosebud", found))


def test_half_a_letter_costs_no_turn(tmp_path: Path) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]

    async def live() -> None:
        await memory.keep_turn("t1", 0, at(0), "I like tea \ud800 very much", "\udfff", "kitchen")
        await memory.keep_context(RealtimeContext(0, "\ud800", "tea \ud800", "\ud800", "\ud800"), at(0))
        await memory.recall("tea \ud800", at(1), ())

    asyncio.run(live())
    assert memory.store.turns()[0].heard == "I like tea ? very much"
    memory.close()


def test_plain_text_stays_as_it_is() -> None:
    text = "שלום 👩‍👩‍👧‍👦 naïve \u202e\ufeff\r\n\ud7ff\U0010ffff"
    assert readable(text) == text


@pytest.mark.parametrize(
    "query", ["NEAR(", '"', "*", "", "  ", "a AND", "OR NOT", "{a}:b", "^x", "-", "'", "\0"]
)
def test_a_question_in_the_words_of_the_search_engine_is_a_question(query: str, store: Store) -> None:
    say(store, "t1", "I parked near the station, and not at home.")
    Recall(store, Apart()).recall(query, at(5))


@pytest.mark.parametrize("what", ["José", "Jose", "jose\u0301", "JOSÉ"])
def test_a_name_is_forgotten_with_its_accents_or_without(what: str, store: Store) -> None:
    say(store, "t1", "I met José today.")
    say(store, "t2", "Jose\u0301's brother was there, too.", 1)
    say(store, "t3", "Josephine was not.", 2)
    assert [mention.id for mention in about(store, what)] == [1, 2]


@pytest.mark.parametrize("named", [True, False])
def test_an_event_never_says_that_the_wearer_said_what_another_did(named: bool, tmp_path: Path) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]
    words = "My passport is in the blue bag."

    async def live() -> str:
        if not named:
            await memory.keep_turn("t1", 0, at(0), words, "", "kitchen", speaker="other:Anna")
        await memory.keep_context(
            RealtimeContext(0, "A kitchen.", words, "kitchen", "cooking"),
            at(0.5),
            "other:Anna" if named else "wearer",
        )
        await memory.keep_context(
            RealtimeContext(60, "A kitchen.", "I lost my keys today.", "kitchen", "cooking"), at(1)
        )
        return (await memory.events())[0].summary

    told = asyncio.run(live())
    assert 'you said: "I lost my keys today."' in told
    assert "passport" not in told
    memory.close()


def test_what_another_said_too_is_the_wearers_all_the_same(tmp_path: Path) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]
    words = "We have lost our keys."

    async def live() -> str:
        await memory.keep_turn("t1", 0, at(0), words, "", "kitchen", speaker="other:Anna")
        await memory.keep_turn("t2", 0, at(0.2), words, "Oh.", "kitchen")
        await memory.keep_context(RealtimeContext(0, "A kitchen.", words, "kitchen", "cooking"), at(0.5))
        return (await memory.events())[0].summary

    assert words in asyncio.run(live())
    memory.close()


def test_a_clock_set_back_keeps_nothing_that_was_forgotten_for_longer(store: Store) -> None:
    row = say(store, "t1", "My secret.")
    forget.carry_out(store, forget.foresee(store, [("turn", row)]), undo=Window(at(600), at(660)))
    a_year_ago = at(600) - timedelta(days=365)
    purge_due(store, a_year_ago)
    assert [u.until for u in undoable(store)] == [a_year_ago + timedelta(hours=1)]
    purge_due(store, a_year_ago + timedelta(minutes=59))
    assert undoable(store)
    purge_due(store, a_year_ago + timedelta(minutes=60))
    assert not undoable(store)
