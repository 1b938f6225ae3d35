"""Weeks of a life on the virtual clock: what is kept of them, and that nothing is in the wearer's way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from companion import KEY, Bag

from os1_edge import clock
from os1_edge.clock import Calendar, Clock
from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.consolidate import Consolidator, Quiet
from os1_edge.remember.memory import Memory
from os1_edge.remember.store import Store

MONDAY = datetime(2026, 3, 2)
DAYS = 21

PLAN = (
    # (hour, place, activity, what is said)
    (7, "kitchen", "eating", ("Good morning.", "I drink coffee every morning.")),
    (9, "office", "working", ("I am writing the report on river birds.",)),
    (13, "cafe", "having a drink", ("What is on the menu?",)),
    (18, "gym", "exercising", ("I am training for the marathon in May.", "My trainer is called Eva.")),
    (22, "home", "reading", ()),
)

NEWS = {
    3: "I live in Oslo.",
    5: "I am allergic to peanuts.",
    8: "My sister is allergic to shellfish.",
    12: "I moved to Bergen.",
    14: "I no longer drink coffee.",
    15: "I am terrified, my father is in hospital!",
}
"""What is said in the office on that day."""


@dataclass
class Life:
    """A memory lived on the virtual clock, with its night shift running all the while."""

    file: Path
    restart_on: frozenset[int] = frozenset()

    async def _days(self, days: range) -> None:
        memory = Memory(Store(self.file, KEY), Bag())  # type: ignore[arg-type]
        memory.store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
        ticking, calendar = Clock(), Calendar(MONDAY + timedelta(days=days[0]))
        quiet = Quiet()
        shift = asyncio.create_task(Consolidator(memory).run(quiet, lambda: calendar.at(ticking.now())))
        for day in days:
            since = (day - days[0]) * 86_400.0
            for hour, place, activity, said in PLAN:
                if place == "gym" and day % 7 not in (0, 2, 4):
                    continue
                coffee_is_over = day >= 14 and hour == 7
                news = (NEWS[day],) if place == "office" and day in NEWS else ()
                await ticking.sleep_until(since + hour * 3600.0)
                for i in range(4):
                    now = calendar.at(ticking.now())
                    quiet.clear()
                    spoken = (*(said[:1] if coffee_is_over else said), *news)
                    heard = spoken[i] if i < len(spoken) else ""
                    if heard:
                        turn = f"d{day}h{hour}n{i}"
                        await memory.keep_turn(turn, 0, now, heard, "All right.", place)
                    seen = f"A view of the {place}."
                    context = RealtimeContext(ticking.now(), seen, heard, place, activity)
                    await memory.keep_context(context, now)
                    quiet.set()
                    await asyncio.sleep(120.0)
        await ticking.sleep_until((days[-1] + 1 - days[0]) * 86_400.0)
        shift.cancel()
        with suppress(asyncio.CancelledError):
            await shift
        memory.close()

    def live(self) -> None:
        cuts = sorted({0, *self.restart_on, DAYS})
        for begin, end in pairwise(cuts):
            clock.run(self._days(range(begin, end)), virtual=True)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Three weeks, with a restart after one and after two."""
    file = tmp_path_factory.mktemp("life") / "memory.db"
    Life(file, frozenset({7, 14})).live()
    store = Store(file, KEY)
    yield store
    store.close()


def test_each_stay_in_a_place_is_one_event_of_its_day(lived: Store) -> None:
    events = derived.events(lived)
    gym_days = sum(day % 7 in (0, 2, 4) for day in range(DAYS))
    assert len(events) == 4 * DAYS + gym_days
    assert all(event.contexts == 4 and event.start.date() == event.end.date() for event in events)
    assert lived.rows("SELECT count(*) FROM contexts WHERE event_id IS NULL") == [(0,)]


def test_no_work_is_left_and_nothing_was_given_up(lived: Store) -> None:
    assert lived.rows("SELECT * FROM jobs") == []


def test_each_conversation_that_told_something_has_one_summary(lived: Store) -> None:
    sessions = lived.rows("SELECT session_id, group_concat(heard) FROM turns GROUP BY session_id")
    told = [session for session, heard in sessions if heard != "Good morning."]
    assert sorted(s.session_id for s in derived.summaries(lived)) == sorted(told)


def test_every_event_and_summary_can_be_found_by_when_where_and_what(lived: Store) -> None:
    for kind, rows in (("event", derived.events(lived)), ("summary", derived.summaries(lived))):
        for row in rows:
            keys = derived.keys_of(lived, kind, row.id)  # type: ignore[arg-type]
            assert {key.dimension for key in keys} == {"temporal", "spatial", "semantic"}
            assert row.importance is not None


def test_the_day_that_moved_most_is_the_most_important(lived: Store) -> None:
    summaries = derived.summaries(lived)
    top = max(summaries, key=lambda summary: summary.importance or 0)
    assert "hospital" in top.text


def profile(store: Store) -> set[str]:
    return {e.text.removeprefix("The wearer ").removesuffix(".") for e in store.profile()}


def test_the_profile_holds_what_is_true_at_the_end(lived: Store) -> None:
    stated = {line for line in profile(lived) if not line.startswith("is often")}
    assert stated == {
        "lives in Bergen", "is allergic to peanuts", "has a sister who is allergic to shellfish",
        "does not drink coffee",
    }  # fmt: skip


def test_what_was_true_before_is_history_with_its_dates(lived: Store) -> None:
    over = {e.text: e for e in lived.profile_history() if e.valid_to is not None}
    oslo = over["The wearer lives in Oslo."]
    assert oslo.valid_from is not None
    assert oslo.valid_to is not None
    assert (oslo.valid_from.day, oslo.valid_to.day) == (2 + 3, 2 + 12)
    coffee = over["The wearer drinks coffee every morning."]
    assert coffee.evidence == 14
    assert len(lived.sources(coffee.id)) == 14


def test_habits_are_seen_in_the_days_though_nobody_spoke_of_them(lived: Store) -> None:
    habits = {e.text: e for e in lived.profile() if e.kind == "habit"}
    gym = habits["The wearer is often at the gym in the evening, exercising."]
    office = habits["The wearer is often at the office in the morning, working."]
    assert gym.confidence < office.confidence <= 0.9
    assert gym.evidence == 9
    assert len(lived.sources(office.id)) == 2  # the first event and the newest


def test_a_life_with_restarts_is_the_same_as_one_without(lived: Store, tmp_path: Path) -> None:
    Life(tmp_path / "memory.db").live()
    other = Store(tmp_path / "memory.db", KEY)
    for query in (
        "SELECT start_time, end_time, location, summary, contexts, importance FROM events ORDER BY 1",
        "SELECT start_time, text, turns, importance FROM summaries ORDER BY 1",
        "SELECT kind, text, confidence, evidence, valid_from, valid_to FROM profile ORDER BY 2, 5",
        "SELECT DISTINCT dimension, text FROM index_keys ORDER BY 1, 2",
    ):
        assert lived.rows(query) == other.rows(query), query
    other.close()


def test_forgetting_a_person_leaves_nothing_of_them_in_what_was_made_of_the_days(
    lived: Store, tmp_path: Path
) -> None:
    file = tmp_path / "memory.db"
    with lived.reading() as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.write_bytes(lived.path.read_bytes())
    memory = Memory(Store(file, KEY), Bag())  # type: ignore[arg-type]

    async def forget() -> None:
        receipt = await memory.forget_about("Eva")
        assert receipt.gone["turn"] == 9
        await Consolidator(memory).finish(MONDAY + timedelta(days=DAYS))

    clock.run(forget(), virtual=True)
    for table, column in (
        ("turns", "heard"), ("contexts", "utterance"), ("events", "summary"), ("summaries", "text"),
        ("profile", "text"), ("profile_sources", "quote"), ("index_keys", "text"), ("items", "text"),
    ):  # fmt: skip
        left = [row[0] for row in memory.store.rows(f"SELECT {column} FROM {table}")]
        assert not [text for text in left if re.search(r"\bEva\b", text)], table
    assert memory.store.rows("SELECT * FROM jobs") == []
    assert memory.store.without_vector(1) == []
    memory.close()
