"""Real-time contexts into stored daily events, one context at a time, over restarts.

The open run is the contexts that belong to no event yet, so it lies in the file as they do: reading them anew
gives the same state. Contexts may come a little late (a turn's context comes after its reply, when later
pictures have been seen), so the newest ``LATE_S`` wait before they are compared.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.cluster import LONGEST_GAP_S, THRESHOLD, DailyEvent, EventClusterer, place_key
from os1_edge.remember.importance import importance_by_rule
from os1_edge.remember.rows import StoredContext, StoredEvent
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

LATE_S = 60.0
"""How late a context may come: a turn, its reply and the wait before it. What comes later than that is
another recording, or a clock set back: the events so far end."""

_OPEN_SINCE = "timeline.open_since"
"""Note in the file: the first row of ``contexts`` that may be open. An event that the wearer deleted leaves
contexts without one; they must not come back as another."""

_REOPENED = "timeline.reopened"
"""Note in the file, a JSON list: earlier rows that are open all the same, brought back by an undo."""

OPEN = (
    "event_id IS NULL AND (id >= (SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta "
    f"WHERE key = '{_OPEN_SINCE}') OR id IN (SELECT j.value FROM meta, json_each(meta.value) j "
    f"WHERE meta.key = '{_REOPENED}'))"
)
"""SQL condition: the contexts that belong to no event yet."""


def reopen(store: Store, contexts: list[int]) -> None:
    """These contexts (ids), put back, belong to no event yet. Whoever holds a ``Timeline`` of this memory
    calls ``forget_state``."""
    with store.transaction() as db:
        open_yet = db.execute(
            "SELECT c.id FROM contexts c, meta m, json_each(m.value) j "
            "WHERE m.key = ? AND c.id = j.value AND c.event_id IS NULL",
            (_REOPENED,),
        ).fetchall()
        store.set_meta(_REOPENED, json.dumps(sorted({*contexts, *(row[0] for row in open_yet)})))


class Timeline:
    """The daily events of one memory. Blocking; one thread at a time."""

    def __init__(self, store: Store, embed: Callable[[str], Vector], threshold: float = THRESHOLD) -> None:
        """
        Args:
            store: the memory.
            embed: text -> embedding.
            threshold: see ``cluster.THRESHOLD``.
        """
        self._store = store
        self._embed = embed
        self._threshold = threshold
        self._read = False
        self._reset()

    def _reset(self) -> None:
        self._run = EventClusterer(self._threshold)
        self._waiting: list[StoredContext] = []
        """Contexts of the last ``LATE_S``, by time. Bounded by what a minute brings."""
        self._newest: datetime | None = None

    def forget_state(self) -> None:
        """The file was changed by somebody else: it is read anew when next needed."""
        self._read = False

    def add(self, context: RealtimeContext, time: datetime) -> list[int]:
        """Keeps a context, and the events that it closes; returns their ids."""
        return self._change(lambda: self._add(context, time))

    def close_stale(self, now: datetime) -> list[int]:
        """Ends the open event when nothing has come for so long that nothing can be contiguous with it."""
        self._change(list)
        idle = LONGEST_GAP_S + LATE_S
        if self._newest is None or (now - self._newest).total_seconds() <= idle:
            return []
        return self._change(self._flush)

    def open_events(self) -> list[DailyEvent]:
        """What the contexts without an event would be if nothing more came; nothing is written."""
        self._change(list)
        run, found = deepcopy(self._run), []
        for context in self._waiting:
            found.append(run.add(_context(context), context.time, self._vector(context), context.id))
        return [event for event in [*found, run.close()] if event is not None]

    def _change(self, work: Callable[[], list[int]]) -> list[int]:
        """Does ``work`` in one transaction. When it fails, what was in memory is read anew."""
        try:
            with self._store.transaction():
                if not self._read:
                    read = self._load()
                    return [*read, *work()]
                return work()
        except BaseException:
            self._read = False
            raise

    def _load(self) -> list[int]:
        self._reset()
        self._waiting = self._store.stored_contexts(OPEN)
        self._newest = self._waiting[-1].time if self._waiting else None
        self._read = True
        return self._feed()

    def _add(self, context: RealtimeContext, time: datetime) -> list[int]:
        closed: list[int] = []
        if self._newest is not None and time < self._newest - timedelta(seconds=LATE_S):
            closed = self._flush()
        row = self._store.add_context(context, time)
        kept = StoredContext(
            row, context.at_s, time, context.scene, context.utterance, context.location, context.activity
        )
        insort(self._waiting, kept, key=_order)
        self._newest = max(self._newest or time, time)
        return closed + self._feed()

    def _feed(self) -> list[int]:
        if self._newest is None:
            return []
        until = self._newest - timedelta(seconds=LATE_S)
        ripe = sum(context.time < until for context in self._waiting)
        taken, self._waiting = self._waiting[:ripe], self._waiting[ripe:]
        return self._cluster(taken)

    def _flush(self) -> list[int]:
        taken, self._waiting = self._waiting, []
        closed = self._cluster(taken)
        if (last := self._run.close()) is not None:
            closed += self._keep(last)
        self._newest = None
        return closed

    def _cluster(self, contexts: list[StoredContext]) -> list[int]:
        closed = []
        for context in contexts:
            event = self._run.add(_context(context), context.time, self._vector(context), context.id)
            if event is not None:
                closed += self._keep(event)
        return closed

    def _keep(self, event: DailyEvent) -> list[int]:
        """Writes an event; of what was forgotten meanwhile, nothing."""
        first, last = min(event.members), max(event.members)
        rows = self._store.stored_contexts("event_id IS NULL AND id BETWEEN ? AND ?", first, last)
        members, left = set(event.members), EventClusterer(-1.0)
        there = [context for context in rows if context.id in members]
        if len(there) < len(members):
            for context in there:  # all alike as they are: a threshold of -1 makes one event of them
                left.add(_context(context), context.time, self._vector(context), context.id)
            shorter = left.open_event()
            if shorter is None:
                return []
            event = shorter
        kept = StoredEvent(
            0, event.start, event.end, event.location, event.activity, event.summary, "rule", event.contexts,
            importance_by_rule(" ".join([event.activity, *event.said])),
        )  # fmt: skip
        row = derived.add_event(self._store, kept, event.members, self._embed(event.summary))
        derived.add_job(self._store, "summarise", "event", row)
        self._store.set_meta(_OPEN_SINCE, str(self._first_open(last)))
        return [row]

    def _first_open(self, last: int) -> int:
        """The least id among the contexts that are open still; else the one after ``last``."""
        row = self._store.rows(
            "SELECT min(id) FROM contexts WHERE event_id IS NULL AND id >= ?",
            int(self._store.meta(_OPEN_SINCE) or 0),
        )[0][0]
        return int(row) if row is not None else last + 1

    def _vector(self, context: StoredContext) -> Vector:
        return self._embed(place_key(context.location, context.activity))


def _context(context: StoredContext) -> RealtimeContext:
    return RealtimeContext(context.at_s, context.scene, context.utterance, context.location, context.activity)


def _order(context: StoredContext) -> tuple[datetime, float, bool, int]:
    return context.time, context.at_s, context.utterance != "", context.id
