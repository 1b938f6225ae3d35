"""Takes the latest forgetting back (``trash``): what it deleted is there again, what it changed is as before,
and what has happened since stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from os1_edge.remember import derived
from os1_edge.remember.erase import note_traces
from os1_edge.remember.reconcile import reconcile
from os1_edge.remember.rows import moment, searched
from os1_edge.remember.schema import TABLES
from os1_edge.remember.shorten import keep_again
from os1_edge.remember.store import Store
from os1_edge.remember.timeline import reopen
from os1_edge.remember.trash import KINDS


@dataclass(frozen=True, slots=True)
class Restored:
    """What an undo brought back."""

    forgotten: datetime
    """When it had been forgotten."""
    back: dict[str, int]
    """Rows by kind."""


def undo(store: Store) -> Restored | None:
    """Takes the latest forgetting back, in one transaction; ``None``: nothing can be undone.

    Vectors are made again by and by (``Store.without_vector``).
    """
    with store.transaction() as db:
        latest = db.execute("SELECT id, time, gone FROM trash_batches ORDER BY id DESC LIMIT 1").fetchone()
        if latest is None:
            return None
        _Undo(store, db, latest[0]).put_back()
        keep_again(store, latest[1])
        db.execute("DELETE FROM trash_batches WHERE id = ?", (latest[0],))
        note_traces(db)
    return Restored(datetime.fromisoformat(latest[1]), json.loads(latest[2]))


_WORDS = {"event": ("summary", "summary_by"), "summary": ("text", "text_by")}
"""Where the words of what is made again stand, and who wrote them."""

_INDEXED = {
    "turn": "SELECT time, heard, speaker, location, superseded_by IS NOT NULL FROM turns",
    "event": "SELECT start_time, summary, '', location, 0 FROM events",
    "summary": "SELECT start_time, text, '', '', 0 FROM summaries",
    "profile": "SELECT learned, text, '', '', superseded_by IS NOT NULL OR valid_to IS NOT NULL FROM profile",
}
"""What is searched, by kind: time, text, speaker, place, and whether it is history."""


class _Undo:
    """One batch on its way back."""

    def __init__(self, store: Store, db: Any, batch: int) -> None:
        self._store, self._db, self._batch = store, db, batch
        self._as_it_was: set[tuple[str, int]] = set()

    def put_back(self) -> None:
        """Rows first, then what leads from one to another, then what is searched."""
        self._db.execute("PRAGMA defer_foreign_keys = ON")  # a row may come before the one that it names
        for kind in KINDS:
            for row in self._rows(kind):
                self._put(kind, row)
        self._link()
        for kind in _INDEXED:
            for row in self._rows(kind):
                self._enter(kind, row["id"])
        self._keys()
        self._jobs()
        reopen(self._store, [row["id"] for row in self._rows("open")])
        reconcile(self._store, [row["id"] for row in self._rows("profile")])

    def _rows(self, kind: str) -> Iterator[dict[str, Any]]:
        """One at a time: all that was said in years may have been forgotten at once."""
        query = "SELECT row FROM trash WHERE batch = ? AND kind = ? ORDER BY id"
        for (row,) in self._db.execute(query, (self._batch, kind)):
            yield json.loads(row)

    def _is_there(self, kind: str, row: int) -> bool:
        query = f"SELECT 1 FROM {TABLES[kind]} WHERE id = ?"
        return self._db.execute(query, (row,)).fetchone() is not None

    def _put(self, kind: str, row: dict[str, Any]) -> None:
        """A row that was deleted, or what one that was made again had said."""
        values = {name: value for name, value in row.items() if name not in ("noted", "said")}
        values["uid"] = bytes.fromhex(row["uid"])
        if kind == "context" and not self._is_there("event", row["event_id"] or 0):
            values["event_id"] = None
        if not row["noted"]:
            self._db.execute("DELETE FROM forgotten WHERE uid = ?", (values["uid"],))
        table, names = TABLES[kind], ",".join(values)
        marks = ",".join("?" * len(values))
        if not self._is_there(kind, row["id"]):
            # of one session there is one summary: one made since stays, and is made again below
            self._db.execute(
                f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", tuple(values.values())
            )
        elif kind in _WORDS and self._may_say_again(kind, row):
            self._db.execute(
                f"UPDATE {table} SET ({names}) = ({marks}) WHERE id = ?", (*values.values(), row["id"])
            )
        else:
            if kind == "profile":
                self._surer(row)
            return
        if kind in _INDEXED:
            self._as_it_was.add((kind, row["id"]))

    def _may_say_again(self, kind: str, row: dict[str, Any]) -> bool:
        """Whether the words from before may stand: the wearer has not written others since, nor has the
        session gone on, whose summary would miss the rest."""
        text, by = _WORDS[kind]
        query = f"SELECT {text}, {by} FROM {TABLES[kind]} WHERE id = ?"
        now = self._db.execute(query, (row["id"],)).fetchone()
        kept = now[1] != "wearer" or now == (row[text], row[by])
        return kept and not (kind == "summary" and self._gone_on(row))

    def _gone_on(self, summary: dict[str, Any]) -> bool:
        query = "SELECT count(*) FROM turns WHERE session_id = ? AND superseded_by IS NULL"
        return bool(self._db.execute(query, (summary["session_id"],)).fetchone()[0] > summary["said"])

    def _surer(self, row: dict[str, Any]) -> None:
        """A line that had lost some of what spoke for it has it again; it may have been said anew since."""
        self._db.execute(
            "UPDATE profile SET confidence = max(confidence, ?), evidence = max(evidence, ?) WHERE id = ?",
            (row["confidence"], row["evidence"], row["id"]),
        )

    def _link(self) -> None:
        db = self._db
        db.executemany(
            "UPDATE contexts SET event_id = :event_id WHERE id = :id AND event_id IS NULL "
            "AND EXISTS (SELECT 1 FROM events WHERE id = :event_id)",
            self._rows("member"),
        )
        db.executemany(  # lines that count again since, and had ended before
            "UPDATE profile SET superseded_by = :superseded_by, valid_to = :valid_to WHERE id = :id",
            (row for row in self._rows("profile") if row["superseded_by"] or row["valid_to"]),
        )
        db.executemany(  # the wearer spoke on meanwhile: the later revision counts
            "UPDATE turns SET superseded_by = (SELECT max(n.id) FROM turns n WHERE n.origin = turns.origin "
            "AND n.turn_id = turns.turn_id AND n.revision > turns.revision) "
            "WHERE id = ? AND superseded_by IS NULL",
            ((row["id"],) for row in self._rows("turn")),
        )
        for table in ("turns", "profile"):
            db.execute(
                f"UPDATE {table} SET superseded_by = NULL WHERE superseded_by NOT IN (SELECT id FROM {table})"
            )
        db.executemany(
            "INSERT OR IGNORE INTO profile_sources (profile_id, source_kind, source_id, time, quote) "
            "SELECT :profile_id, :source_kind, :source_id, :time, :quote "
            "WHERE EXISTS (SELECT 1 FROM profile WHERE id = :profile_id)",
            self._rows("source"),
        )
        db.executemany(
            "INSERT OR IGNORE INTO turn_used (turn, kind, ref_id, reason) "
            "SELECT :turn, :kind, :ref_id, :reason WHERE EXISTS (SELECT 1 FROM turns WHERE id = :turn)",
            (row for row in self._rows("used") if self._is_there(row["kind"], row["ref_id"])),
        )

    def _enter(self, kind: str, row: int) -> None:
        """Into the index, where it says what counts now; out of it, where it is history."""
        found = self._db.execute(f"{_INDEXED[kind]} WHERE id = ?", (row,)).fetchone()
        if found is None:
            return
        time, heard, speaker, location, over = found
        text = searched(speaker, heard)
        entered = self._db.execute(
            "SELECT text FROM items WHERE kind = ? AND ref_id = ?", (kind, row)
        ).fetchone()
        if over:
            self._db.execute("DELETE FROM items WHERE kind = ? AND ref_id = ?", (kind, row))
        elif entered != (text,):
            when = datetime.fromisoformat(time)
            self._store.add_item(kind, row, when, text, None, speaker=speaker, location=location)  # type: ignore[arg-type]

    def _keys(self) -> None:
        """Those of what says again what it said; what says something new gets new ones from its job."""
        keys: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for key in self._rows("key"):
            keys.setdefault((key["target_kind"], key["target_id"]), []).append(key)
        for (kind, target), found in keys.items():
            item = self._db.execute(
                "SELECT time FROM items WHERE kind = ? AND ref_id = ?", (kind, target)
            ).fetchone()
            if item is not None and (kind, target) in self._as_it_was:
                phrases = [(key["dimension"], key["text"], None) for key in found]
                place = found[0]["location"] or ""
                derived.put_keys(self._store, kind, target, moment(item[0]), phrases, place)  # type: ignore[arg-type]

    def _jobs(self) -> None:
        """The work that had waited; and of a session that has gone on, a summary of all of it."""
        for job in self._rows("job"):
            if self._is_there(job["target_kind"], job["target_id"]):
                derived.add_job(self._store, job["kind"], job["target_kind"], job["target_id"])
        for summary in self._rows("summary"):
            if self._gone_on(summary):
                query = "SELECT max(id) FROM turns WHERE session_id = ? AND superseded_by IS NULL"
                (last,) = self._db.execute(query, (summary["session_id"],)).fetchone()
                derived.add_job(self._store, "summarise", "turn", last)
