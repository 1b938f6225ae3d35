"""What is made of memories: daily events, session summaries, index keys, and the work still to do on them.

Plain functions over an open store, each one transaction; they join the caller's where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from os1_edge.remember.rows import Dimension, IndexKey, Job, Kind, StoredEvent, StoredSummary
from os1_edge.remember.schema import TABLE_OF
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector


def add_event(store: Store, event: StoredEvent, contexts: Sequence[int], vector: Vector | None) -> int:
    """Keeps an event (its ``id`` is ignored) made of the contexts with these ids; returns its id.

    Args:
        store: the memory.
        event: what it was.
        contexts: rows of ``contexts``; they point to the event from now on.
        vector: embedding of its summary.
    """
    with store.transaction() as db:
        row = db.execute(
            "INSERT INTO events (uid, start_time, end_time, location, activity, summary, summary_by, "
            "contexts, importance) VALUES (?,?,?,?,?,?,?,?,?)",
            (store.new_uid(), *_event_values(event)),
        ).lastrowid
        db.executemany(
            "UPDATE contexts SET event_id = ? WHERE id = ?", [(row, context) for context in contexts]
        )
        store.add_item("event", row, event.start, event.summary, vector, location=event.location)
    return int(row)


def change_event(store: Store, event: StoredEvent, vector: Vector | None) -> None:
    """Writes all of ``event`` over the row of its id: a better summary, a later end."""
    with store.transaction() as db:
        db.execute(
            "UPDATE events SET start_time = ?, end_time = ?, location = ?, activity = ?, summary = ?, "
            "summary_by = ?, contexts = ?, importance = ? WHERE id = ?",
            (*_event_values(event), event.id),
        )
        store.add_item("event", event.id, event.start, event.summary, vector, location=event.location)


def events(store: Store, where: str = "1", *values: object) -> list[StoredEvent]:
    """The events for which the SQL condition ``where`` holds, by time."""
    return [
        StoredEvent(row[0], datetime.fromisoformat(row[1]), datetime.fromisoformat(row[2]), *row[3:])
        for row in store.rows(
            "SELECT id, start_time, end_time, location, activity, summary, summary_by, contexts, importance "
            f"FROM events WHERE {where} ORDER BY start_time, id",
            *values,
        )
    ]


def put_summary(store: Store, summary: StoredSummary, vector: Vector | None) -> int:
    """Keeps the summary of a session (its ``id`` is ignored), in place of an earlier one of that session."""
    values = (
        store.new_uid(),
        summary.session_id,
        summary.start.isoformat(),
        summary.end.isoformat(),
        summary.text,
        summary.text_by,
        summary.turns,
        summary.importance,
    )
    with store.transaction() as db:
        (row,) = db.execute(
            "INSERT INTO summaries (uid, session_id, start_time, end_time, text, text_by, turns, importance) "
            "VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (session_id) DO UPDATE SET "
            "start_time = excluded.start_time, end_time = excluded.end_time, text = excluded.text, "
            "text_by = excluded.text_by, turns = excluded.turns, "
            "importance = coalesce(excluded.importance, importance) RETURNING id",
            values,
        ).fetchone()
        store.add_item("summary", row, summary.start, summary.text, vector)
    return int(row)


def summaries(store: Store, where: str = "1", *values: object) -> list[StoredSummary]:
    """The summaries for which the SQL condition ``where`` holds, by time."""
    return [
        StoredSummary(
            row[0], row[1], datetime.fromisoformat(row[2]), datetime.fromisoformat(row[3]), *row[4:]
        )
        for row in store.rows(
            "SELECT id, session_id, start_time, end_time, text, text_by, turns, importance "
            f"FROM summaries WHERE {where} ORDER BY start_time, id",
            *values,
        )
    ]


def put_keys(
    store: Store,
    kind: Kind,
    target: int,
    time: datetime,
    keys: Sequence[tuple[Dimension, str, Vector | None]],
    location: str = "",
) -> None:
    """Gives a memory its index keys (dimension, text, embedding), in place of those that it had."""
    with store.transaction() as db:
        db.execute("DELETE FROM index_keys WHERE target_kind = ? AND target_id = ?", (kind, target))
        for dimension, text, vector in keys:
            row = db.execute(
                "INSERT OR IGNORE INTO index_keys (target_kind, target_id, dimension, text) VALUES (?,?,?,?) "
                "RETURNING id",
                (kind, target, dimension, text),
            ).fetchone()
            if row is not None:
                store.add_item("key", row[0], time, text, vector, location=location)


def keys_of(store: Store, kind: Kind, target: int) -> list[IndexKey]:
    """The index keys of one memory."""
    return [
        IndexKey(*row)
        for row in store.rows(
            "SELECT id, target_kind, target_id, dimension, text FROM index_keys "
            "WHERE target_kind = ? AND target_id = ? ORDER BY id",
            kind,
            target,
        )
    ]


def set_importance(store: Store, kind: Kind, row: int, importance: int) -> None:
    """How much the wearer was moved, 1 to 10: of a turn, an event or a summary.

    Raises:
        ValueError: not of that range, or profile entries and keys, which have none.
    """
    if not 1 <= importance <= 10 or kind not in ("turn", "event", "summary"):
        raise ValueError(f"no importance {importance} for a {kind}")
    with store.transaction() as db:
        db.execute(f"UPDATE {TABLE_OF[kind]} SET importance = ? WHERE id = ?", (importance, row))


def add_job(store: Store, kind: str, target_kind: str, target: int) -> None:
    """Asks for work on a row, unless it is asked for already; one that failed before is tried anew."""
    with store.transaction() as db:
        db.execute(
            "INSERT INTO jobs (kind, target_kind, target_id) VALUES (?,?,?) "
            "ON CONFLICT (kind, target_kind, target_id) DO UPDATE SET state = 'waiting', attempts = 0",
            (kind, target_kind, target),
        )


def next_job(store: Store, kinds: Sequence[str] = ()) -> Job | None:
    """The oldest work that waits, of these ``kinds`` (none named: of any). It stays until ``job_done``: work
    that a power loss interrupts is found again."""
    wanted = f"AND kind IN ({','.join('?' * len(kinds))})" if kinds else ""
    rows = store.rows(
        "SELECT id, kind, target_kind, target_id, attempts FROM jobs "
        f"WHERE state = 'waiting' {wanted} ORDER BY attempts, id LIMIT 1",
        *kinds,
    )
    return Job(*rows[0]) if rows else None


def job_done(store: Store, job: int) -> None:
    """The work is done; call it in the transaction that keeps the result."""
    with store.transaction() as db:
        db.execute("DELETE FROM jobs WHERE id = ?", (job,))


def job_failed(store: Store, job: int, attempts: int) -> None:
    """The work failed: it goes behind the others, and is given up after ``attempts`` tries."""
    with store.transaction() as db:
        db.execute(
            "UPDATE jobs SET attempts = attempts + 1, "
            "state = CASE WHEN attempts + 1 >= ? THEN 'failed' ELSE 'waiting' END WHERE id = ?",
            (attempts, job),
        )


def _event_values(event: StoredEvent) -> tuple[Any, ...]:
    return (
        event.start.isoformat(),
        event.end.isoformat(),
        event.location,
        event.activity,
        event.summary,
        event.summary_by,
        event.contexts,
        event.importance,
    )
