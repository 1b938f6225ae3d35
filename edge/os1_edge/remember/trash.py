"""Forgetting that can be undone for a while: the rows as they were lie apart in the encrypted file, where
nothing finds, recalls or exports them, until their time is over and they are cleared from it for good.

Only the latest forgetting can be undone, then the one before it. One that is for good takes the earlier ones
with it: they may hold the very thing that was forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from os1_edge.remember.erase import clear, has_traces, note_traces
from os1_edge.remember.schema import TABLES
from os1_edge.remember.store import Store
from os1_edge.remember.timeline import OPEN

UNDO_S = 3600.0
"""For how long a spoken "forget that" can be taken back: long enough to notice a misunderstanding, short
enough that it is meant."""

LONGEST_S = 7 * 86_400.0
"""The longest that forgetting may wait to be for good."""

KEPT = 20
"""Forgettings that can be undone; with another one the oldest is for good. Nobody takes back more."""

KINDS = ("event", "context", "turn", "summary", "profile")
"""In the order in which they can be put back: a context names its event."""


@dataclass(frozen=True, slots=True)
class Window:
    """When something is forgotten, and until when that can be undone."""

    now: datetime
    until: datetime

    @staticmethod
    def of(now: datetime, undo_for_s: float) -> Window | None:
        """``None``: for good at once.

        Raises:
            ValueError: not 0 to ``LONGEST_S``.
        """
        if not 0 <= undo_for_s <= LONGEST_S:
            raise ValueError(f"forgetting can be undone for {LONGEST_S / 86_400:.0f} days at most")
        return Window(now, now + timedelta(seconds=undo_for_s)) if undo_for_s else None


@dataclass(frozen=True, slots=True)
class Undoable:
    """A forgetting that can be undone yet."""

    time: datetime
    until: datetime
    gone: dict[str, int]
    """Rows by kind."""


def undoable(store: Store) -> list[Undoable]:
    """What can be undone, the latest first."""
    return [
        Undoable(datetime.fromisoformat(time), datetime.fromisoformat(until), json.loads(gone))
        for time, until, gone in store.rows("SELECT time, until, gone FROM trash_batches ORDER BY id DESC")
    ]


def purge(store: Store) -> str:
    """Makes all forgettings final, now; returns why traces may still be in the file, if so."""
    end_all(store)
    return clear(store)


def end_all(store: Store) -> None:
    """Makes all forgettings final; their traces are in the file yet."""
    with store.transaction() as db:
        empty(db)


def end_due(store: Store, now: datetime) -> bool:
    """Makes those final whose time is over; returns whether there were any. Their traces are in the file yet:
    clearing it takes seconds, for which somebody may not want to wait (``purge_due``)."""
    _set_back(store, now)
    due = store.rows("SELECT max(id) FROM trash_batches WHERE until <= ?", now.isoformat())[0][0]
    if due is not None:
        with store.transaction() as db:
            empty(db, due)
    return due is not None


def _set_back(store: Store, now: datetime) -> None:
    """A clock that was set back since a forgetting does not keep it for longer: its time begins anew."""
    for row, time, until in store.rows(
        "SELECT id, time, until FROM trash_batches WHERE time > ?", now.isoformat()
    ):
        lasts = datetime.fromisoformat(until) - datetime.fromisoformat(time)
        with store.transaction() as db:
            db.execute(
                "UPDATE trash_batches SET time = ?, until = ? WHERE id = ?",
                (now.isoformat(), (now + lasts).isoformat(), row),
            )


def purge_due(store: Store, now: datetime) -> str:
    """Makes those final whose time is over, and clears what an interrupted forgetting left in the file; cheap
    where there is neither. Returns as ``purge``."""
    return clear(store) if end_due(store, now) or to_clear(store) else ""


def to_clear(store: Store) -> bool:
    """Whether traces are in the file that need not stay: while something waits to be final, it is cleared
    with that."""
    return has_traces(store) and not store.rows("SELECT 1 FROM trash_batches LIMIT 1")


def empty(db: Any, newest: int | None = None) -> None:
    """Deletes what can be undone, all of it or up to batch ``newest``; inside the caller's transaction."""
    if db.execute("DELETE FROM trash_batches WHERE id <= coalesce(?, id)", (newest,)).rowcount:
        note_traces(db)


def put_aside(db: Any, window: Window, gone: dict[str, int]) -> None:
    """Keeps everything that ``forget.carry_out`` is about to delete or change, as it is. The temporary tables
    ``going`` and ``remade`` (kind, id) say what that is."""
    batch = db.execute(
        "INSERT INTO trash_batches (time, until, gone) VALUES (?,?,?)",
        (window.now.isoformat(), window.until.isoformat(), json.dumps(gone)),
    ).lastrowid
    for kind, query in _touched():
        cursor = db.execute(query)
        names = [column[0] for column in cursor.description]
        db.executemany(
            "INSERT INTO trash (batch, kind, row) VALUES (?,?,?)",
            ((batch, kind, _written(names, row)) for row in cursor),
        )
    oldest = db.execute("SELECT id FROM trash_batches ORDER BY id DESC LIMIT 1 OFFSET ?", (KEPT,)).fetchone()
    if oldest is not None:
        empty(db, oldest[0])


def _either(kind: str) -> str:
    return f"SELECT id FROM going WHERE kind = '{kind}' UNION SELECT id FROM remade WHERE kind = '{kind}'"


def _touched() -> Iterator[tuple[str, str]]:
    """What a forgetting deletes or changes, by the name under which it is put aside."""
    for kind in KINDS:
        noted = "EXISTS (SELECT 1 FROM forgotten f WHERE f.uid = r.uid) AS noted"
        which = f"r.id IN ({_either(kind)})"
        if kind == "profile":  # lines that a forgotten one had ended are true again meanwhile
            which += " OR r.superseded_by IN (SELECT id FROM going WHERE kind = 'profile')"
        yield kind, f"SELECT r.*, {noted}{_EXTRA.get(kind, '')} FROM {TABLES[kind]} r WHERE {which}"
    marked = "EXISTS (SELECT 1 FROM {} m WHERE m.kind = r.target_kind AND m.id = r.target_id)"
    target = f"({marked.format('going')} OR {marked.format('remade')})"
    place = "(SELECT location FROM items i WHERE i.kind = 'key' AND i.ref_id = r.id) AS location"
    keys = f"SELECT target_kind, target_id, dimension, text, {place} FROM index_keys r"
    yield "key", f"{keys} WHERE {target} ORDER BY id"
    yield "job", f"SELECT kind, target_kind, target_id FROM jobs r WHERE {target}"
    source = "EXISTS (SELECT 1 FROM going g WHERE g.kind = r.source_kind AND g.id = r.source_id)"
    yield "source", f"SELECT * FROM profile_sources r WHERE profile_id IN ({_either('profile')}) OR {source}"
    turn = "EXISTS (SELECT 1 FROM going g WHERE g.kind = 'turn' AND g.id = r.turn)"
    used = marked.replace("target_kind", "kind").replace("target_id", "ref_id")
    yield (
        "used",
        f"SELECT * FROM turn_used r WHERE {turn} OR {used.format('going')} OR {used.format('remade')}",
    )
    events = "SELECT id FROM going WHERE kind = 'event'"
    yield "member", f"SELECT id, event_id FROM contexts WHERE event_id IN ({events})"
    yield (
        "open",
        f"SELECT id FROM contexts WHERE {OPEN} AND id IN (SELECT id FROM going WHERE kind = 'context')",
    )


_EXTRA = {
    "summary": ", (SELECT count(*) FROM turns t WHERE t.session_id = r.session_id "
    "AND t.superseded_by IS NULL) AS said"
}
"""How much of the session there was: one that has gone on since is summarised anew."""


def _written(names: list[str], row: tuple[Any, ...]) -> str:
    values = zip(names, row, strict=True)
    return json.dumps({name: value.hex() if isinstance(value, bytes) else value for name, value in values})
