"""The memory as the page shows it. Functions of the open store, for its thread; all of them bounded."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.forget import Row
from os1_edge.remember.recall import Recall
from os1_edge.remember.schema import TABLES
from os1_edge.remember.store import Store
from os1_edge.remember.used import used_of

DAYS = 14
"""Days told at once."""

TURNS = 500
"""Turns of a day told at once; a day with more says so."""

LINES = 500
"""Profile lines told at once."""

FOUND = 50

_ROW = re.compile(r"(turn|event|summary|profile|context):([1-9]\d{0,17})")


def row_named(name: object) -> Row:
    """The row that "turn:12" names.

    Raises:
        ValueError: it names none.
    """
    match = _ROW.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise ValueError("a row is named like turn:12")
    return match[1], int(match[2])


def days(store: Store, before: date | None) -> dict[str, Any]:
    """The newest ``DAYS`` days before ``before`` on which something was said or seen."""
    limit = before.isoformat() if before is not None else "9999"
    found = store.rows(
        "SELECT day FROM (SELECT DISTINCT substr(time, 1, 10) day FROM turns WHERE time < ? UNION "
        "SELECT DISTINCT substr(start_time, 1, 10) FROM events WHERE start_time < ?) "
        "ORDER BY day DESC LIMIT ?",
        limit,
        limit,
        DAYS + 1,
    )
    shown = [day for (day,) in found[:DAYS]]
    return {"days": [_day_line(store, day) for day in shown], "more": len(found) > DAYS}


def _day_line(store: Store, day: str) -> dict[str, Any]:
    first, last = _bounds(date.fromisoformat(day))
    (turns,) = store.rows(
        "SELECT count(*) FROM turns WHERE time >= ? AND time < ? AND superseded_by IS NULL", first, last
    )[0]
    return {"date": day, "turns": turns, "events": _events(store, first, last)}


def _events(store: Store, first: str, last: str) -> list[dict[str, Any]]:
    rows = store.rows(
        "SELECT id, start_time, end_time, location, activity, summary, contexts FROM events "
        "WHERE start_time >= ? AND start_time < ? ORDER BY start_time, id LIMIT ?",
        first,
        last,
        TURNS,
    )
    names = ("id", "start", "end", "location", "activity", "summary", "contexts")
    return [{**dict(zip(names, row, strict=True)), "id": f"event:{row[0]}"} for row in rows]


def day(store: Store, which: date) -> dict[str, Any]:
    """Events and conversations of a day, each turn with what was in view and the memories its reply used."""
    first, last = _bounds(which)
    rows = store.rows(
        "SELECT id, session_id, time, speaker, heard, reply, location FROM turns "
        "WHERE time >= ? AND time < ? AND superseded_by IS NULL ORDER BY time, id LIMIT ?",
        first,
        last,
        TURNS + 1,
    )
    scenes = dict(
        store.rows(
            "SELECT utterance || '|' || substr(time, 1, 19), scene FROM contexts "
            "WHERE time >= ? AND time < ? AND utterance != '' AND scene != '' LIMIT ?",
            first,
            last,
            4 * TURNS,
        )
    )
    conversations: dict[str, dict[str, Any]] = {}
    for number, session, time, speaker, heard, reply, location in rows[:TURNS]:
        talk = conversations.setdefault(session, {"session": session, "summary": None, "turns": []})
        turn = {"id": f"turn:{number}", "time": time, "speaker": speaker, "heard": heard, "reply": reply}
        scene = scenes.get(f"{heard}|{time[:19]}", "")
        used = [
            {"id": f"{u.kind}:{u.id}", "text": u.text, "reason": u.reason} for u in used_of(store, number)
        ]
        talk["turns"].append({**turn, "location": location, "scene": scene, "used": used})
    for session, talk in conversations.items():
        for number, text in store.rows("SELECT id, text FROM summaries WHERE session_id = ?", session):
            talk["summary"] = {"id": f"summary:{number}", "text": text}
    return {
        "date": which.isoformat(),
        "events": _events(store, first, last),
        "conversations": list(conversations.values()),
        "more": len(rows) > TURNS,
    }


def profile(store: Store) -> dict[str, Any]:
    """The profile as it stands, and what each line rests on."""
    entries = []
    for entry in store.profile()[:LINES]:
        sources = [
            {"id": f"{s.kind}:{s.id}", "time": s.time.isoformat(), "quote": s.quote}
            for s in store.sources(entry.id)[:20]
        ]
        before = store.rows(
            "WITH RECURSIVE chain(id) AS (SELECT id FROM profile WHERE superseded_by = ? UNION "
            "SELECT p.id FROM profile p JOIN chain c ON p.superseded_by = c.id) "
            "SELECT text, valid_to FROM profile WHERE id IN (SELECT id FROM chain) ORDER BY id DESC LIMIT 20",
            entry.id,
        )
        entries.append(
            {
                "id": f"profile:{entry.id}",
                "kind": entry.kind,
                "text": entry.text,
                "confidence": round(entry.confidence, 2),
                "since": entry.valid_from.isoformat() if entry.valid_from else None,
                "evidence": entry.evidence,
                "made_by": entry.made_by,
                "sources": sources,
                "before": [{"text": text, "until": until} for text, until in before],
            }
        )
    return {"entries": entries}


def search(store: Store, recall: Recall, query: str, now: datetime) -> dict[str, Any]:
    """What is remembered of ``query``, the best first."""
    hits = recall.recall(query, now)
    return {
        "found": [
            {
                "id": f"{hit.kind}:{hit.ref_id}",
                "kind": hit.kind,
                "text": hit.text,
                "time": hit.time.isoformat(),
                "location": hit.location,
                "reason": hit.reason,
            }
            for hit in hits[:FOUND]
        ]
    }


def must_exist(store: Store, row: Row) -> None:
    """Raises ``BadMemory`` where there is no such row."""
    kind, number = row
    if not store.rows(f"SELECT 1 FROM {TABLES[kind]} WHERE id = ?", number):
        raise BadMemory("that is not in the memory any more")


def _bounds(which: date) -> tuple[str, str]:
    return which.isoformat(), (which + timedelta(days=1)).isoformat()
