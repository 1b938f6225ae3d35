"""Forgetting that can be undone for a while: nothing finds it meanwhile; all of it comes back, or nothing."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from memories import KEY, MONDAY, at, event, know, meaning, new, say, see, summary, texts

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived, forget, trash
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.consolidate import Consolidator
from os1_edge.remember.edit import edit
from os1_edge.remember.erase import has_traces
from os1_edge.remember.export import export
from os1_edge.remember.memory import Memory
from os1_edge.remember.mend import compare
from os1_edge.remember.store import Store
from os1_edge.remember.timeline import Timeline
from os1_edge.remember.trash import KEPT, LONGEST_S, Window, purge, purge_due, undoable
from os1_edge.remember.undo import undo


class Apart:
    """An embedder to which no two texts are alike."""

    one = staticmethod(meaning)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = new(tmp_path)
    store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
    yield store
    with store.reading() as db:
        assert not compare(db)
    assert store.rows("PRAGMA foreign_key_check") == []
    store.close()


HOUR = Window(at(600), at(660))


def forgotten(store: Store, *rows: forget.Row, window: Window | None = HOUR) -> forget.Receipt:
    return forget.carry_out(store, forget.foresee(store, rows), undo=window)


STATE = (
    "SELECT * FROM turns ORDER BY id",
    "SELECT * FROM contexts ORDER BY id",
    "SELECT * FROM events ORDER BY id",
    "SELECT * FROM summaries ORDER BY id",
    "SELECT * FROM profile ORDER BY id",
    "SELECT * FROM profile_sources ORDER BY 1, 2, 3",
    "SELECT target_kind, target_id, dimension, text FROM index_keys ORDER BY 1, 2, 3, 4",
    "SELECT kind, time, speaker, location, text FROM items ORDER BY 1, 5, 2",
    "SELECT uid FROM forgotten ORDER BY 1",
)


def state(store: Store) -> list[list[tuple[object, ...]]]:
    """All that is remembered, whatever it is numbered in the index."""
    return [store.rows(query) for query in STATE]


def lived(store: Store, chance: random.Random) -> list[forget.Row]:
    """Some sessions with events, summaries, profile lines that end each other, corrections and history."""
    lines: list[int] = []
    for number in range(12):
        session = f"s{number // 3}"
        heard = f"word{number} is what I like."
        row = say(store, f"t{number}", heard, 10 * number, session)
        if chance.random() < 0.3:
            row = store.add_turn(
                f"t{number}",
                1,
                at(10 * number),
                f"{heard} Really.",
                "",
                "gym",
                meaning(heard),
                session_id=session,
            )
        seen = [see(store, "gym", 10 * number, heard), see(store, "gym", 10 * number + 1)]
        if chance.random() < 0.8:
            event(store, seen, f"event {number}", 10 * number)
        if number % 3 == 2:
            summary(store, session, f"about {number}", 3, 10 * number)
        over = (lines[-1],) if lines and chance.random() < 0.4 else ()
        lines.append(
            know(store, f"The wearer likes word{number}.", [row, max(1, row - 1)], 10 * number, over)
        )
    kinds = {
        "turn": "turns",
        "context": "contexts",
        "event": "events",
        "profile": "profile",
        "summary": "summaries",
    }
    return [(kind, row[0]) for kind, table in kinds.items() for row in store.rows(f"SELECT id FROM {table}")]


@pytest.mark.parametrize("seed", range(16))
def test_whatever_was_forgotten_all_is_as_before_when_it_is_undone(seed: int, store: Store) -> None:
    chance = random.Random(seed)
    rows = lived(store, chance)
    before = state(store)
    chosen = chance.sample(rows, chance.randint(1, len(rows) // 2))
    receipt = forgotten(store, *chosen)
    assert state(store) != before
    restored = undo(store)
    assert restored is not None
    assert (restored.back, restored.forgotten) == (receipt.gone, HOUR.now)
    assert state(store) == before
    assert undo(store) is None


@pytest.mark.parametrize("seed", range(3))
def test_two_forgettings_are_undone_the_latest_first(seed: int, store: Store) -> None:
    chance = random.Random(seed)
    rows = lived(store, chance)
    before = state(store)
    forgotten(store, *chance.sample(rows, 4))
    between = state(store)
    forgotten(store, *chance.sample(rows, 4), window=Window(at(620), at(680)))
    undo(store)
    assert state(store) == between
    undo(store)
    assert state(store) == before


def test_what_waits_to_be_final_is_found_nowhere(store: Store, tmp_path: Path) -> None:
    row = say(store, "t1", "Jack broke his arm.")
    event(store, [see(store, "gym", 0, "Jack!")], "With Jack.", 0)
    receipt = forget.carry_out(store, foresee_about(store, "Jack", about(store, "Jack")), undo=HOUR)
    assert (receipt.undo_until, receipt.left) == (HOUR.until, "")
    assert (about(store, "Jack"), texts(store), store.turns("t.id = ?", row)) == ([], [], [])
    out = io.StringIO()
    export(store, out)
    assert "Jack" not in out.getvalue()
    backup(store, tmp_path / "copy.db", Lock(KEY))
    copy = Store(tmp_path / "copy.db", KEY)
    assert (copy.rows("SELECT * FROM trash"), undoable(copy)) == ([], [])
    copy.close()
    assert [(u.time, u.until, u.gone["turn"]) for u in undoable(store)] == [(at(600), at(660), 1)]


def test_when_its_time_is_over_nothing_can_be_undone(store: Store) -> None:
    forgotten(store, ("turn", say(store, "t1", "Secret.")))
    assert purge_due(store, at(659)) == ""
    assert len(undoable(store)) == 1
    purge_due(store, at(660))
    assert (undoable(store), undo(store), store.rows("SELECT * FROM trash")) == ([], None, [])


def test_a_forgetting_for_good_takes_what_could_be_undone_with_it(store: Store) -> None:
    first, second = say(store, "t1", "Jack is ill."), say(store, "t2", "Jack is well.", 1)
    forgotten(store, ("turn", first))
    forgotten(store, ("turn", second), window=None)
    assert undo(store) is None
    assert store.rows("SELECT * FROM trash") == []


def test_forgetting_nothing_is_nothing_to_undo(store: Store) -> None:
    assert forgotten(store, ("turn", 99)).undo_until is None
    assert undoable(store) == []


def test_only_so_many_can_be_undone_and_the_oldest_are_for_good(store: Store) -> None:
    for number in range(KEPT + 3):
        forgotten(store, ("turn", say(store, f"t{number}", f"Secret {number}.", number)))
    assert len(undoable(store)) == KEPT
    for _ in range(KEPT):
        undo(store)
    assert [turn.heard for turn in store.turns()] == [f"Secret {n}." for n in range(3, KEPT + 3)]


def test_forgetting_waits_for_a_week_at_most() -> None:
    assert Window.of(MONDAY, 0) is None
    assert Window.of(MONDAY, 60) == Window(MONDAY, MONDAY + timedelta(minutes=1))
    for wrong in (-1.0, LONGEST_S + 1, float("nan")):
        with pytest.raises(ValueError, match="days at most"):
            Window.of(MONDAY, wrong)


# What has happened since ------------------------------------------------------------------------------------


def test_words_that_the_wearer_wrote_since_stay(store: Store) -> None:
    contexts = [see(store, "gym", 5, "Jack!"), see(store, "gym", 65)]
    row = event(store, contexts, "Trained with Jack.", 5)
    forgotten(store, ("context", contexts[0]))
    edit(store, ("event", row), "My own words.", at(610), meaning)
    undo(store)
    assert [(e.summary, e.summary_by) for e in derived.events(store)] == [("My own words.", "wearer")]
    assert len(store.stored_contexts("event_id = ?", row)) == 2


def test_a_session_that_went_on_is_summarised_anew_and_with_all_of_it(store: Store) -> None:
    rows = [say(store, "t1", "I bake bread."), say(store, "t2", "I paint the door.", 1)]
    summary(store, "s1", "Bread and a door.", 2)
    forgotten(store, ("turn", rows[0]))
    last = say(store, "t3", "I plant a tree.", 20)
    with store.transaction() as db:
        db.execute("DELETE FROM jobs")
    undo(store)
    assert [t.heard for t in store.turns()] == ["I bake bread.", "I paint the door.", "I plant a tree."]
    assert store.rows("SELECT kind, target_kind, target_id FROM jobs") == [("summarise", "turn", last)]
    (told,) = derived.summaries(store)
    assert "Bread and a door" not in told.text


def test_of_a_turn_that_went_on_meanwhile_the_later_revision_counts(store: Store) -> None:
    forgotten(store, ("turn", say(store, "t1", "I like")))
    store.add_turn("t1", 1, at(1), "I like tea.", "", "", meaning("x"), session_id="s1")
    undo(store)
    assert [t.heard for t in store.turns()] == ["I like tea."]
    assert texts(store) == ["I like tea."]
    assert store.rows("SELECT count(*) FROM turns") == [(2,)]


def test_what_was_learned_since_is_not_contradicted_by_what_comes_back(store: Store) -> None:
    oslo = know(store, "The wearer lives in Oslo.", [say(store, "t1", "I live in Oslo.")])
    forgotten(store, ("profile", oslo))
    bergen = know(store, "The wearer lives in Bergen.", [say(store, "t2", "I live in Bergen.", 605)], 605)
    undo(store)
    assert [e.id for e in store.profile()] == [bergen]
    assert [(e.id, e.valid_to) for e in store.profile_history()] == [(oslo, at(605)), (bergen, None)]


def test_a_line_said_again_since_is_no_less_sure(store: Store) -> None:
    rows = [say(store, f"t{n}", "I like tea.", n) for n in range(3)]
    line = know(store, "The wearer likes tea.", rows)
    forgotten(store, ("turn", rows[0]))
    with store.transaction() as db:
        db.execute("UPDATE profile SET confidence = 0.99, evidence = 7 WHERE id = ?", (line,))
    undo(store)
    assert [(e.confidence, e.evidence) for e in store.profile()] == [(0.99, 7)]
    assert len(store.sources(line)) == 3


def test_a_note_of_an_earlier_forgetting_stays(store: Store) -> None:
    """An export made before it must still not bring the old words of a remade event back."""
    contexts = [see(store, "gym", 5, "Jack!"), see(store, "gym", 15, "Eva!"), see(store, "gym", 65)]
    event(store, contexts, "With Jack and Eva.", 5)
    forgotten(store, ("context", contexts[0]), window=None)
    notes = store.rows("SELECT uid FROM forgotten ORDER BY 1")
    assert len(notes) == 2
    forgotten(store, ("context", contexts[1]))
    undo(store)
    assert store.rows("SELECT uid FROM forgotten ORDER BY 1") == notes


def test_work_that_had_waited_waits_again(store: Store) -> None:
    row = say(store, "t1", "I bake bread.")
    derived.add_job(store, "summarise", "turn", row)
    forgotten(store, ("turn", row))
    assert store.rows("SELECT * FROM jobs") == []
    undo(store)
    assert store.rows("SELECT kind, target_kind, target_id FROM jobs") == [("summarise", "turn", row)]


def test_what_fails_on_the_way_back_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten(store, ("turn", say(store, "t1", "Secret.")))
    with monkeypatch.context() as broken:
        broken.setattr("os1_edge.remember.undo.reconcile", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            undo(store)
    assert (store.turns(), len(undoable(store))) == ([], 1)
    undo(store)
    assert [t.heard for t in store.turns()] == ["Secret."]


def test_what_an_interrupted_forgetting_left_is_cleared_when_the_file_is_next_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = say(store, "t1", "Secret.")
    with monkeypatch.context() as killed:
        killed.setattr(forget, "clear", lambda _: "killed")
        forgotten(store, ("turn", row), window=None)
    cleared: list[Store] = []

    def clear(store: Store) -> str:
        cleared.append(store)
        return ""

    monkeypatch.setattr(trash, "clear", clear)
    purge_due(store, at(0))
    assert cleared == [store]
    monkeypatch.undo()
    purge(store)
    monkeypatch.setattr(trash, "clear", lambda _: 1 / 0)
    purge_due(store, at(0))


def test_what_is_put_aside_is_plain_json_of_the_rows(store: Store) -> None:
    """So that a later schema, which may have other columns, can read it."""
    forgotten(store, ("turn", say(store, "t1", "Secret ümlaut \N{PILE OF POO}.")))
    ((kind, row),) = store.rows("SELECT kind, row FROM trash")
    assert (kind, json.loads(row)["heard"]) == ("turn", "Secret ümlaut \N{PILE OF POO}.")
    undo(store)
    assert [t.heard for t in store.turns()] == ["Secret ümlaut \N{PILE OF POO}."]


# The day that goes on ---------------------------------------------------------------------------------------


def seen(timeline: Timeline, place: str, minutes: float) -> None:
    timeline.add(RealtimeContext(60 * minutes, f"A {place}.", "", place, "busy"), at(minutes))


def stays(store: Store, timeline: Timeline) -> list[tuple[datetime, str, int]]:
    kept = [(e.start, e.location, e.contexts) for e in derived.events(store)]
    return sorted(kept + [(e.start, e.location, e.contexts) for e in timeline.open_events()])


@pytest.mark.parametrize("restarted", [False, True])
def test_the_open_hour_is_the_same_day_after_an_undo(restarted: bool, store: Store) -> None:
    """It had belonged to no event yet, and other events have ended since."""
    timeline = Timeline(store, meaning)
    for minutes, place in ((0, "office"), (5, "office"), (20, "cafe"), (25, "cafe")):
        seen(timeline, place, minutes)
    forget.carry_out(store, forget.foresee(store, forget.within(store, at(15), None)), undo=HOUR)
    timeline.forget_state()
    for minutes, place in ((40, "gym"), (45, "gym"), (60, "home"), (65, "home")):
        seen(timeline, place, minutes)
    undo(store)
    timeline.forget_state()
    timeline = Timeline(store, meaning) if restarted else timeline
    seen(timeline, "home", 70)
    expected = [(at(0), "office", 2), (at(20), "cafe", 2), (at(40), "gym", 2), (at(60), "home", 3)]
    assert stays(store, timeline) == expected
    timeline.close_stale(at(600))
    assert stays(store, timeline) == expected
    assert store.rows("SELECT count(*) FROM contexts WHERE event_id IS NULL") == [(0,)]


def test_a_spoken_forgetting_can_be_taken_back_until_its_time_is_over(tmp_path: Path) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]

    async def talk() -> None:
        await memory.keep_turn("t1", 0, at(0), "I live in Oslo.", "Noted.", "home")
        await memory.keep_turn("t2", 0, at(50), "I live in Bergen.", "Noted.", "home")
        assert (await memory.would_forget_span(at(30))).gone == {"profile": 1, "turn": 1}
        receipt = await memory.forget_span(at(30), now=at(60), undo_for_s=600)
        assert receipt.undo_until == at(70)
        assert [e.text for e in await memory.profile()] == ["The wearer lives in Oslo."]
        assert (await memory.would_forget_about("Oslo")).gone == {"profile": 1, "turn": 1}
        await memory.forget_about("Oslo", now=at(61), undo_for_s=600)
        assert len(await memory.undoable()) == 2
        for _ in range(2):
            assert await memory.undo_forget(at(62)) is not None
        assert await memory.undo_forget(at(62)) is None
        assert [e.text for e in await memory.profile()] == ["The wearer lives in Bergen."]
        (turn,) = memory.store.turns("heard LIKE '%Oslo%'")
        await memory.forget_rows([("turn", turn.id)], now=at(63), undo_for_s=60)
        assert await memory.undo_forget(at(64)) is None  # a minute has passed
        assert [t.heard for t in memory.store.turns()] == ["I live in Bergen."]
        await memory.forget_about("Bergen", now=at(65))
        await memory.purge()
        assert await memory.undo_forget() is None

    asyncio.run(talk())
    assert memory.store.rows("SELECT count(*) FROM turns") == [(0,)]
    memory.close()


def test_the_night_shift_makes_final_what_is_over(tmp_path: Path) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]

    async def night() -> None:
        await memory.keep_turn("t1", 0, at(0), "I live in Oslo.", "Noted.", "home")
        await memory.forget_about("Oslo", now=at(1), undo_for_s=600)
        await Consolidator(memory).finish(at(10))
        assert len(await memory.undoable()) == 1
        await memory.keep_turn("t2", 0, at(12), "It rains.", "Noted.", "home")
        await Consolidator(memory).finish(at(12))
        assert await memory.undoable() == []
        assert has_traces(memory.store)  # somebody speaks: the file is not written anew now
        await Consolidator(memory).finish(at(20))
        assert not has_traces(memory.store)

    asyncio.run(night())
    memory.close()
