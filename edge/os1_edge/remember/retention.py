"""How long memories are kept: by age for each kind, and by the size of the file.

What was made of a memory outlives it: an event its contexts, a summary its turns. Turns that a profile line
rests on stay, however old: nothing is known of the wearer without the words it came from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from os1_edge.remember import forget
from os1_edge.remember.forget import Row
from os1_edge.remember.store import Store

STEP_DAYS = 7
"""When the file is too big, whole weeks go, oldest first."""

_TIMES = {
    "turn": ("turns", "time"),
    "context": ("contexts", "time"),
    "event": ("events", "end_time"),
    "summary": ("summaries", "end_time"),
}
_UNNEEDED = {
    "turn": "AND id NOT IN (SELECT source_id FROM profile_sources WHERE source_kind = 'turn')",
    "context": "",
    "event": "",
    "summary": "",
}


@dataclass(frozen=True, slots=True)
class Retention:
    """Days that each kind is kept, and the most bytes of the file; ``None``: for ever, or no bound."""

    turn_days: int | None = None
    context_days: int | None = None
    event_days: int | None = None
    summary_days: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Expired:
    """Rows whose time is over, and why."""

    rows: frozenset[Row]
    why: str


def expired(store: Store, rules: Retention, now: datetime) -> list[Expired]:
    """What the rules let go at ``now``; nothing is changed. Contexts age apart from their events, so that an
    event outlives the pictures it was made of."""
    days = {
        "turn": rules.turn_days,
        "context": rules.context_days,
        "event": rules.event_days,
        "summary": rules.summary_days,
    }
    found = [
        Expired(
            frozenset(_older(store, kind, now - timedelta(days=count))), f"{kind}s older than {count} days"
        )
        for kind, count in days.items()
        if count is not None
    ]
    if rules.max_bytes is not None and (size := _used(store)) > rules.max_bytes:
        rows = _oldest(store, 1 - rules.max_bytes / size)
        found.append(Expired(frozenset(rows), f"the file holds {size} bytes, more than {rules.max_bytes}"))
    return [e for e in found if e.rows]


def expire(store: Store, rules: Retention, now: datetime, *, clear_file: bool = True) -> dict[str, int]:
    """Lets go what the rules let go; returns how many rows, by kind. ``clear_file`` as for
    ``forget.carry_out``."""
    rows = frozenset().union(*(e.rows for e in expired(store, rules, now)))
    return forget.expire(store, rows, clear_file=clear_file) if rows else {}


def _older(store: Store, kind: str, than: datetime) -> Iterable[Row]:
    table, time = _TIMES[kind]
    query = f"SELECT id FROM {table} r WHERE {time} < ? {_UNNEEDED[kind]}"
    return ((kind, row[0]) for row in store.rows(query, than.isoformat()))


def _oldest(store: Store, share: float) -> Iterable[Row]:
    """The oldest ``share`` of turns and contexts, in whole weeks."""
    span = store.rows(
        "SELECT min(time), max(time) FROM (SELECT time FROM turns UNION ALL SELECT time FROM contexts)"
    )
    if span[0][0] is None:
        return []
    first, last = (datetime.fromisoformat(t) for t in span[0])
    total = _rows_before(store, last + timedelta(days=1))
    until = first
    while until < last and _rows_before(store, until) < share * total:
        until += timedelta(days=STEP_DAYS)
    return [row for kind in ("turn", "context") for row in _older(store, kind, min(until, last))]


def _rows_before(store: Store, until: datetime) -> int:
    counts = (
        store.rows(f"SELECT count(*) FROM {table} WHERE time < ?", until.isoformat())[0][0]
        for table in ("turns", "contexts")
    )
    return int(sum(counts))


def _used(store: Store) -> int:
    pages, free, size = (
        int(store.rows(f"PRAGMA {what}")[0][0]) for what in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
