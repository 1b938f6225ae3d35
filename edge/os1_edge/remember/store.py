"""The memory file: SQLCipher with sqlite-vec inside. One connection, one thread at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import sqlcipher3
import sqlite_vec
from numpy.typing import NDArray

from os1_edge.events import RealtimeContext
from os1_edge.remember.schema import migrate

Vector = NDArray[np.float32]
"""An embedding, float32, L2 norm 1."""


class BadMemory(Exception):
    """The memory file cannot be opened; nothing was changed. The message says why."""


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """Something that the wearer said, and the reply."""

    id: int
    turn_id: str
    time: datetime
    heard: str
    reply: str
    location: str


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One thing known about the wearer."""

    id: int
    kind: str
    text: str
    confidence: float
    learned: datetime
    source_turn: str


class Store:
    """An open memory. Methods may be called from any thread; a lock lets one in at a time."""

    def __init__(self, path: Path, key: bytes) -> None:
        """Opens ``path``, or makes it.

        Raises:
            BadMemory: wrong key, not a memory file, or written by a newer release.
        """
        self.path = path
        self._lock = RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db: Any = sqlcipher3.connect(str(path), check_same_thread=False, isolation_level=None)
        except sqlcipher3.DatabaseError as e:
            raise BadMemory(f"{path}: {e}") from None
        try:
            self._db.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
            self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self._db.enable_load_extension(True)
            sqlite_vec.load(self._db)
            self._db.enable_load_extension(False)
            for setting in (
                "journal_mode = WAL",
                "synchronous = NORMAL",
                "secure_delete = ON",
                "foreign_keys = ON",
                "busy_timeout = 5000",
            ):
                self._db.execute(f"PRAGMA {setting}")
            migrate(self._db)
        except sqlcipher3.DatabaseError as e:
            self._db.close()
            if "locked" in str(e):
                raise BadMemory(f"{path}: another OS-1 is using it; end that one first") from None
            raise BadMemory(f"{path}: not a memory file, or another key ({e}); nothing was changed") from None
        except ValueError as e:
            self._db.close()
            raise BadMemory(f"{path}: {e}") from None

    def close(self) -> None:
        """Closes the file; the write-ahead log is folded in."""
        with self._lock:
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Everything written inside is kept, or nothing of it. One inside another joins it."""
        with self._lock:
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk ends it by itself in some cases
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return list(self._db.execute(query, values))

    def add_turn(
        self,
        turn_id: str,
        revision: int,
        time: datetime,
        heard: str,
        reply: str,
        location: str,
        vector: Vector,
    ) -> int:
        """Remembers a turn with the embedding of what was heard; returns its id."""
        with self.transaction() as db:
            row = db.execute(
                "INSERT INTO turns (turn_id, revision, time, heard, reply, location) VALUES (?,?,?,?,?,?)",
                (turn_id, revision, time.isoformat(), heard, reply, location),
            ).lastrowid
            db.execute("INSERT INTO turn_vectors (rowid, embedding) VALUES (?,?)", (row, vector.tobytes()))
        return int(row)

    def add_context(self, context: RealtimeContext, time: datetime) -> None:
        """Remembers a real-time context."""
        with self.transaction() as db:
            db.execute(
                "INSERT INTO contexts (at_s, time, scene, utterance, location, activity) "
                "VALUES (?,?,?,?,?,?)",
                (
                    context.at_s,
                    time.isoformat(),
                    context.scene,
                    context.utterance,
                    context.location,
                    context.activity,
                ),
            )

    def add_profile(self, entry: ProfileEntry, vector: Vector, supersedes: Collection[int] = ()) -> int:
        """Adds a profile entry (its ``id`` is ignored); those it supersedes are kept as history."""
        with self.transaction() as db:
            row = db.execute(
                "INSERT INTO profile (kind, text, confidence, learned, source_turn) VALUES (?,?,?,?,?)",
                (entry.kind, entry.text, entry.confidence, entry.learned.isoformat(), entry.source_turn),
            ).lastrowid
            db.execute("INSERT INTO profile_vectors (rowid, embedding) VALUES (?,?)", (row, vector.tobytes()))
            for old in supersedes:
                db.execute("UPDATE profile SET superseded_by = ? WHERE id = ?", (row, old))
                db.execute("DELETE FROM profile_vectors WHERE rowid = ?", (old,))
        return int(row)

    def contexts(self) -> list[tuple[RealtimeContext, datetime]]:
        """All contexts in the order of their times."""
        rows = self._rows(
            "SELECT at_s, scene, utterance, location, activity, time FROM contexts "
            "ORDER BY time, at_s, utterance <> '', id"
        )
        return [
            (RealtimeContext(row[0], row[1], row[2], row[3], row[4]), datetime.fromisoformat(row[5]))
            for row in rows
        ]

    def profile(self) -> list[ProfileEntry]:
        """The profile as it stands now, oldest first."""
        rows = self._rows(
            "SELECT id, kind, text, confidence, learned, source_turn FROM profile "
            "WHERE superseded_by IS NULL ORDER BY id"
        )
        return [_profile_entry(row) for row in rows]

    def nearest_turns(self, vector: Vector, k: int) -> list[tuple[StoredTurn, float]]:
        """The ``k`` turns whose words are nearest to ``vector``, with their cosine similarity."""
        rows = self._rows(
            "SELECT t.id, t.turn_id, t.time, t.heard, t.reply, t.location, 1 - v.distance "
            "FROM turn_vectors v JOIN turns t ON t.id = v.rowid "
            "WHERE v.embedding MATCH ? AND v.k = ? ORDER BY v.distance",
            vector.tobytes(),
            k,
        )
        return [
            (
                StoredTurn(row[0], row[1], datetime.fromisoformat(row[2]), row[3], row[4], row[5]),
                float(row[6]),
            )
            for row in rows
        ]

    def nearest_profile(self, vector: Vector, k: int) -> list[tuple[ProfileEntry, float]]:
        """The ``k`` valid profile entries nearest to ``vector``, with their cosine similarity."""
        rows = self._rows(
            "SELECT p.id, p.kind, p.text, p.confidence, p.learned, p.source_turn, 1 - v.distance "
            "FROM profile_vectors v JOIN profile p ON p.id = v.rowid "
            "WHERE v.embedding MATCH ? AND v.k = ? ORDER BY v.distance",
            vector.tobytes(),
            k,
        )
        return [(_profile_entry(row), float(row[6])) for row in rows]


def _profile_entry(row: tuple[Any, ...]) -> ProfileEntry:
    return ProfileEntry(row[0], row[1], row[2], row[3], datetime.fromisoformat(row[4]), row[5])
