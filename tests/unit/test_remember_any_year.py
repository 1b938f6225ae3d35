"""A day costs what it cost ten years before: nothing that it does looks through all there is."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from memories import at, meaning, new

from os1_edge.events import RealtimeContext
from os1_edge.remember.consolidate import Consolidator
from os1_edge.remember.memory import Memory

THROUGH_ALL = ("SCAN ", "(kind=?)", "(session_id>?)", "(session_id<?)")
"""How SQLite tells a plan that grows with the memory. It has no statistics, so that the plan does not depend
on how much there is."""

SMALL = ("jobs", "trash_batches", "VIRTUAL TABLE", "profile", "SCAN p", "CONSTANT ROW", "SCAN meta")
"""An index of its own, what is always few, and the wearer's profile."""


class Apart:
    """An embedder to which no two texts are alike."""

    one = staticmethod(meaning)


def test_a_day_a_night_and_a_question_look_through_nothing_whole(tmp_path: Path) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]
    asked: set[str] = set()

    async def day(number: int) -> None:
        for hour in range(12):
            time = at(0) + timedelta(days=number, hours=hour)
            place = ("gym", "office")[hour // 6]
            context = RealtimeContext(3600.0 * hour, f"A {place}.", "", place, "busy")
            await memory.keep_context(context, time)
            said = ("I like tea.", f"I met Anna at the {place}.")[hour % 2]
            await memory.keep_turn(f"d{number}t{hour}", 0, time, said, "Yes.", place)
        await Consolidator(memory).finish(at(0) + timedelta(days=number, hours=20))
        await memory.recall("Did I meet Anna at the gym yesterday?", at(0) + timedelta(days=number + 1), ())

    asyncio.run(day(0))
    with memory.store.reading() as db:
        db.set_trace_callback(asked.add)
    asyncio.run(day(1))
    with memory.store.reading() as db:
        db.set_trace_callback(None)
        found = {
            (query, plan[3])
            for query in asked
            if query.lstrip().startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))
            for plan in db.execute(f"EXPLAIN QUERY PLAN {query}")
        }
    assert any("item_vectors" in query for query in asked)
    assert any("summaries" in query for query in asked)
    whole = [f for f in found if "IN ()" not in f[0] and any(w in f[1] for w in THROUGH_ALL)]
    assert [f for f in whole if not any(small in f[1] for small in SMALL)] == []
    memory.close()
