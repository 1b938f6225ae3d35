"""Habits out of daily events: what was done in the same place at the same time of day, day after day
(paper 3.2.4: "summarizing patterns from the historical context"). No language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from os1_edge.events import UNKNOWN_LOCATION
from os1_edge.remember import derived
from os1_edge.remember.keys import day_part, in_place
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

WINDOW_DAYS = 28
"""Days looked back on: four of each weekday, and few enough that a look costs the same in any year."""

LEAST_DAYS = 5
"""Different days of them on which it was done: once a week and once more."""

SUREST = 0.9
"""Nobody said so; it was only seen."""

SEEN = "The wearer is often "
"""How a line begins that nobody said."""

OVER_DAYS = 56
"""Days without it after which a habit is over."""


def habit_of(event: StoredEvent, recent: Sequence[StoredEvent]) -> tuple[str, int] | None:
    """The profile line that ``event`` bears out, with the days it was seen on; ``None``: no habit.

    Args:
        event: the newest.
        recent: events of the last ``WINDOW_DAYS`` days.
    """
    if event.location in ("", UNKNOWN_LOCATION) or event.activity in ("", "unknown"):
        return None
    part = day_part(event.start)
    days = {
        other.start.date()
        for other in (*recent, event)
        if (other.location, other.activity) == (event.location, event.activity)
        and day_part(other.start) == part
    }
    if len(days) < LEAST_DAYS:
        return None
    when = f"at {part}" if part in ("night", "noon") else f"in the {part}"
    return f"{SEEN}{in_place(event.location)} {when}, {event.activity}.", len(days)


def note_habit(store: Store, embed: Callable[[str], Vector], event: StoredEvent) -> None:
    """Enters the habit that ``event`` bears out, or makes it surer. Its evidence is the first event of it and
    the newest: every one of a lifetime would be a row a day."""
    recent = derived.events(
        store,
        "start_time >= ? AND start_time < ?",
        (event.start - timedelta(days=WINDOW_DAYS)).isoformat(),
        event.start.isoformat(),
    )
    found = habit_of(event, recent)
    if found is None:
        return
    text, days = found
    confidence = round(min(SUREST, 0.4 + 0.03 * days), 3)
    source = Source("event", event.id, event.start, event.summary)
    known = next((entry for entry in store.profile() if entry.text == text), None)
    if known is None:
        entry = ProfileEntry(0, "habit", text, confidence, event.end, "", evidence=days)
        store.add_profile(entry, embed(text), sources=[source])
        return
    with store.transaction() as db:
        db.execute(
            "UPDATE profile SET confidence = max(confidence, ?), evidence = max(evidence, ?) WHERE id = ?",
            (confidence, days, known.id),
        )
        db.execute(
            "DELETE FROM profile_sources WHERE profile_id = ?1 AND source_kind = 'event' AND source_id > "
            "(SELECT min(source_id) FROM profile_sources WHERE profile_id = ?1 AND source_kind = 'event')",
            (known.id,),
        )
        db.execute(
            "INSERT OR IGNORE INTO profile_sources VALUES (?,?,?,?,?)",
            (known.id, source.kind, source.id, source.time.isoformat(), source.quote),
        )


def end_stale_habits(store: Store, now: datetime) -> int:
    """Ends the habits that were only seen, and were not seen for ``OVER_DAYS``; returns how many."""
    last = (now - timedelta(days=OVER_DAYS)).isoformat()
    over = store.rows(
        "SELECT p.id, max(s.time) FROM profile p JOIN profile_sources s ON s.profile_id = p.id "
        "WHERE p.kind = 'habit' AND p.superseded_by IS NULL AND p.valid_to IS NULL "
        # first, as what is said every day has thousands of sources
        "AND NOT EXISTS (SELECT 1 FROM profile_sources o WHERE o.profile_id = p.id AND "
        "o.source_kind IN ('summary','turn')) GROUP BY p.id HAVING max(s.time) < ?",
        last,
    )
    for entry, time in over:
        store.end_profile(entry, datetime.fromisoformat(time))
    return len(over)
