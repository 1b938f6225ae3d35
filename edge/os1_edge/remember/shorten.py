"""The wearer wants memories kept for less long: what goes by that is told before, lies apart for a while like
what was forgotten (``trash``), and an undo brings back how long it was kept as well. Else the next sweep
would take for good what was just taken back."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

from os1_edge.remember import forget
from os1_edge.remember.choices import Choices, load_choices, save_choices
from os1_edge.remember.forget import Row
from os1_edge.remember.retention import Retention, expired
from os1_edge.remember.store import Store
from os1_edge.remember.trash import KEPT, Window

BEFORE = "choices_before"
"""Under which the memory keeps, by the time of a forgetting, the days that were chosen before it."""

_RULES = {
    "keep_turns_days": "turn_days",
    "keep_contexts_days": "context_days",
    "keep_events_days": "event_days",
    "keep_summaries_days": "summary_days",
}


def days_of(choices: Choices) -> dict[str, int | None]:
    """The choices' days, by the names that ``Retention`` has for them."""
    return {rule: getattr(choices, name) for name, rule in _RULES.items()}


def goes(store: Store, before: Choices, wanted: Choices, now: datetime) -> frozenset[Row]:
    """What would go at ``now`` because ``wanted`` keeps it for less long than ``before``; nothing is
    changed."""
    less = {
        _RULES[name]: getattr(wanted, name)
        for name in _RULES
        if _longer(getattr(before, name), getattr(wanted, name)) != getattr(wanted, name)
    }
    return frozenset().union(*(e.rows for e in expired(store, Retention(**less), now)))


def counted(rows: frozenset[Row]) -> dict[str, int]:
    """How many of each kind."""
    return dict(sorted(Counter(kind for kind, _ in rows).items()))


def choose(store: Store, before: Choices, wanted: Choices, undo: Window) -> dict[str, int]:
    """Keeps ``wanted`` in place of ``before``, and lets go what goes by that, all or nothing; until ``undo``
    ends it can be undone. Returns how many rows went, by kind."""
    with store.transaction():
        rows = goes(store, before, wanted, undo.now)
        gone = forget.expire(store, rows, clear_file=False, undo=undo) if rows else {}
        if gone:
            days = {name: getattr(before, name) for name in _RULES}
            kept = [*_kept(store), [undo.now.isoformat(), days]]
            store.set_meta(BEFORE, json.dumps(kept[-KEPT:]))
        save_choices(store, wanted)
    return gone


def keep_again(store: Store, forgotten: str) -> None:
    """To be called as the forgetting of the time ``forgotten`` is undone: where it came from a choice, all is
    kept for as long as before it, or for as long as was chosen since, whichever is longer."""
    kept, now = _kept(store), load_choices(store)
    days = next((days for time, days in reversed(kept) if time == forgotten), None)
    if days is None or now is None:
        return
    longer = {name: _longer(days[name], getattr(now, name)) for name in _RULES}
    save_choices(store, now.model_copy(update=longer))
    store.set_meta(BEFORE, json.dumps([entry for entry in kept if entry[0] != forgotten]))


def _kept(store: Store) -> list[tuple[str, dict[str, int | None]]]:
    return json.loads(store.meta(BEFORE) or "[]")  # type: ignore[no-any-return]


def _longer(some: int | None, others: int | None) -> int | None:
    return None if some is None or others is None else max(some, others)
