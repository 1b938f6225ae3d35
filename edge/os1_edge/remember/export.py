"""A memory as JSON Lines, in plain text: one line a row, read from one state of the memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from os1_edge.remember.lines import VERSION
from os1_edge.remember.rows import now
from os1_edge.remember.store import Store

_QUERIES = {
    "event": """
      SELECT r.id, lower(hex(r.uid)) uid, start_time, end_time, location, activity, summary, summary_by,
             contexts, importance
      FROM events r""",
    "context": """
      SELECT r.id, lower(hex(r.uid)) uid, at_s, time, scene, utterance, r.location, r.activity,
             lower(hex(e.uid)) event
      FROM contexts r LEFT JOIN events e ON e.id = r.event_id""",
    "turn": """
      SELECT r.id, lower(hex(r.uid)) uid, r.origin, r.turn_id, r.revision, r.session_id, r.time, r.speaker,
             r.heard, r.reply, r.location, r.importance, lower(hex(n.uid)) superseded_by
      FROM turns r LEFT JOIN turns n ON n.id = r.superseded_by""",
    "summary": """
      SELECT r.id, lower(hex(r.uid)) uid, session_id, start_time, end_time, text, text_by, turns, importance
      FROM summaries r""",
    "profile": """
      SELECT r.id, lower(hex(r.uid)) uid, r.kind, r.text, r.confidence, r.learned, r.valid_from, r.valid_to,
             r.evidence, r.made_by, r.source_turn, lower(hex(n.uid)) superseded_by
      FROM profile r LEFT JOIN profile n ON n.id = r.superseded_by""",
    "key": """
      SELECT r.id, target_kind, lower(hex(coalesce(t.uid, e.uid, s.uid, p.uid))) target, dimension, r.text
      FROM index_keys r
      LEFT JOIN turns t ON r.target_kind = 'turn' AND t.id = target_id
      LEFT JOIN events e ON r.target_kind = 'event' AND e.id = target_id
      LEFT JOIN summaries s ON r.target_kind = 'summary' AND s.id = target_id
      LEFT JOIN profile p ON r.target_kind = 'profile' AND p.id = target_id""",
    "source": """
      SELECT lower(hex(p.uid)) profile, source_kind, lower(hex(coalesce(t.uid, e.uid, s.uid))) source,
             r.time, quote
      FROM profile_sources r JOIN profile p ON p.id = r.profile_id
      LEFT JOIN turns t ON source_kind = 'turn' AND t.id = source_id
      LEFT JOIN events e ON source_kind = 'event' AND e.id = source_id
      LEFT JOIN summaries s ON source_kind = 'summary' AND s.id = source_id""",
    "forgotten": "SELECT lower(hex(uid)) uid, time FROM forgotten",
}
"""What each kind of line holds (``lines``), in this order, so that a reader knows whom a row names."""

_SEARCHED = ("event", "turn", "summary", "profile", "key")


def export(
    store: Store,
    out: TextIO,
    *,
    vectors: bool = False,
    tell: Callable[[int, int], None] = lambda _a, _b: None,
) -> dict[str, int]:
    """Writes the whole memory to ``out``; returns the number of lines by kind.

    Args:
        store: the memory; its other threads wait, other processes do not.
        out: text, UTF-8.
        vectors: with the embeddings, so that a reader with the same embedder need not make them again.
        tell: called now and then with the rows written and their total.
    """
    store.complete()
    with store.reading() as db:
        db.execute("BEGIN")  # one state of the memory, whoever writes meanwhile
        try:
            return _write(store, db, out, vectors, tell)
        finally:
            db.execute("COMMIT")


def _write(
    store: Store, db: Any, out: TextIO, vectors: bool, tell: Callable[[int, int], None]
) -> dict[str, int]:
    counts = {kind: _count(db, query) for kind, query in _QUERIES.items()}
    header = {
        "os1_memory": VERSION,
        "device": store.meta("device"),
        "exported": now().isoformat(),
        "embedder": store.embedder(),
        "vectors": vectors,
        "rows": counts,
    }
    out.write(json.dumps(header, ensure_ascii=False) + "\n")
    total = sum(counts.values())
    for number, line in enumerate(_lines(db, vectors), 1):
        out.write(json.dumps(line, ensure_ascii=False) + "\n")
        if number % 1000 == 0 or number == total:
            tell(number, total)
    return counts


def _lines(db: Any, vectors: bool) -> Iterator[dict[str, Any]]:
    for kind, query in _QUERIES.items():
        cursor = db.execute(query)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            line = {"row": kind, **dict(zip(names, row, strict=True))}
            row_id = line.pop("id", None)
            for name in ("event", "superseded_by"):
                line[name] = line.get(name) or None
            for name in [n for n, value in line.items() if value is None]:
                del line[name]
            if vectors and kind in _SEARCHED and (vector := _vector(db, kind, row_id)) is not None:
                line["vector"] = base64.b64encode(vector).decode()
            yield line


def _vector(db: Any, kind: str, row: int) -> bytes | None:
    found = db.execute(
        "SELECT v.vector FROM items i JOIN item_vectors v USING (id) WHERE i.kind = ? AND i.ref_id = ? "
        "AND v.embedder = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder')",
        (kind, row),
    ).fetchone()
    return None if found is None else bytes(found[0])


def _count(db: Any, query: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM ({query})").fetchone()[0])
