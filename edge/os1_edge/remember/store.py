"""The memory file: SQLCipher with sqlite-vec inside. One connection, one thread at a time.

This is the lowest layer: opening, transactions, and the rows that the runtime writes as it goes. What is
searched is entered in one index (``add_item``) in the same transaction as the row.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any

from os1_edge.events import RealtimeContext
from os1_edge.remember.connection import BadMemory, connect, unlock
from os1_edge.remember.rows import (
    WEARER,
    Kind,
    ProfileEntry,
    Source,
    StoredContext,
    StoredTurn,
    searched,
    seconds,
)
from os1_edge.remember.scan import Signs
from os1_edge.remember.vectors import Vector, bits, bits_of, pack, unpack

__all__ = ["BadMemory", "ProfileEntry", "Store", "StoredTurn", "Vector"]


class Store:
    """An open memory. Methods may be called from any thread; a lock lets one in at a time."""

    def __init__(self, path: Path, key: bytes, *, embedder: str | None = None) -> None:
        """Opens ``path``, or makes it.

        Args:
            path: the file.
            key: 32 bytes.
            embedder: name of what makes the vectors; ``None``: as before.

        Raises:
            BadMemory: the file cannot be opened; nothing was changed.
        """
        self.path, self._key = path, key
        self._lock = RLock()
        self._db = connect(path, key)
        self._signs = Signs(self._db)
        self.origin = uuid.uuid4().hex[:12]
        """Names this run in the turns it writes: every run numbers its turns anew."""
        if embedder is not None:
            self.set_embedder(embedder)

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
                self._signs.forget()
                raise

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The connection to read from, or to copy; the other threads wait."""
        with self._lock:
            yield self._db

    @contextmanager
    def beside(self) -> Iterator[Any]:
        """A second connection, for what would disturb the first: a change of ``temp_store`` drops a
        connection's temporary tables and triggers, which recall lives on. The other threads wait."""
        with self._lock:
            db = unlock(self.path, self._key)
            try:
                db.execute("PRAGMA secure_delete = ON")
                yield db
            finally:
                db.close()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock:
            return list(self._db.execute(query, values))

    _rows = rows

    # What is searched ---------------------------------------------------------------------------------------

    def add_item(
        self,
        kind: Kind,
        ref_id: int,
        time: datetime,
        text: str,
        vector: Vector | None,
        *,
        speaker: str = "",
        location: str = "",
    ) -> int:
        """Enters row ``ref_id`` of a kind into the index, in place of what stood there for it; returns the
        item's id. Without a ``vector`` it is found by its words until ``set_vector`` brings one."""
        with self.transaction() as db:
            db.execute("DELETE FROM items WHERE kind = ? AND ref_id = ?", (kind, ref_id))
            item = db.execute(
                "INSERT INTO items (kind, ref_id, time, speaker, location, text) VALUES (?,?,?,?,?,?)",
                (kind, ref_id, seconds(time), speaker, location, text),
            ).lastrowid
            if vector is not None:
                self.set_vector(item, vector)
        return int(item)

    def set_vector(self, item: int, vector: Vector) -> None:
        """Gives an item the vector that the current embedder made of its text."""
        self._set_vector(item, pack(vector), bits(vector))

    def set_packed(self, item: int, vector: bytes) -> None:
        """The same with a vector as ``vectors.pack`` made it, of another memory of the same embedder."""
        self._set_vector(item, vector, bits_of(vector))

    def _set_vector(self, item: int, packed: bytes, signs: bytes) -> None:
        with self.transaction() as db:
            db.execute("DELETE FROM item_bits WHERE rowid = ?", (item,))
            db.execute(
                "INSERT OR REPLACE INTO item_vectors (id, embedder, vector) "
                "VALUES (?, (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder'), ?)",
                (item, packed),
            )
            db.execute(
                "INSERT INTO item_bits (rowid, kind, bits) "
                "SELECT id, kind, vec_bit(?) FROM items WHERE id = ?",
                (signs, item),
            )

    def without_vector(self, limit: int, below: int = 2**62) -> list[tuple[int, str]]:
        """Items that the current embedder has not seen: (id, text), newest first, at most ``limit``, of those
        whose id is less than ``below``."""
        query = (
            "SELECT i.id, i.text FROM items i LEFT JOIN item_vectors v ON v.id = i.id WHERE i.id < ? "
            "AND v.embedder IS NOT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder') "
            "ORDER BY i.id DESC LIMIT ?"
        )
        return [(row[0], row[1]) for row in self.rows(query, below, limit)]

    def embedder(self) -> str:
        """The name of what makes the vectors now."""
        query = "SELECT e.name FROM meta m JOIN embedders e ON e.id = CAST(m.value AS INTEGER)"
        return str(self.rows(f"{query} WHERE m.key = 'embedder'")[0][0])

    def set_embedder(self, name: str) -> None:
        """From now on vectors come from ``name``; those of another are made again (``without_vector``)."""
        with self.transaction() as db:
            db.execute("INSERT OR IGNORE INTO embedders (name) VALUES (?)", (name,))
            db.execute(
                "UPDATE meta SET value = (SELECT CAST(id AS TEXT) FROM embedders WHERE name = ?) "
                "WHERE key = 'embedder'",
                (name,),
            )

    def meta(self, key: str) -> str | None:
        """A note of the program's own in the file."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", key)
        return str(found[0][0]) if found else None

    def set_meta(self, key: str, value: str) -> None:
        """Sets a note of the program's own."""
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, value))

    # What happened ------------------------------------------------------------------------------------------

    def add_turn(
        self,
        turn_id: str,
        revision: int,
        time: datetime,
        heard: str,
        reply: str,
        location: str,
        vector: Vector | None,
        *,
        speaker: str = WEARER,
        session_id: str = "",
        origin: str | None = None,
        uid: bytes | None = None,
    ) -> int:
        """Remembers a turn with the embedding of what was heard (``rows.searched``); returns its id.

        A later revision takes the place of an earlier one, which stays as history; the same or an earlier
        one changes nothing, and the id is that of the turn as it stands.
        """
        origin = origin or self.origin
        with self.transaction() as db:
            before = db.execute(
                "SELECT id, revision FROM turns WHERE origin = ? AND turn_id = ? "
                "ORDER BY revision DESC LIMIT 1",
                (origin, turn_id),
            ).fetchone()
            if before is not None and before[1] >= revision:
                return int(before[0])
            row = db.execute(
                "INSERT INTO turns (uid, origin, turn_id, revision, session_id, time, speaker, heard, reply, "
                "location) VALUES (coalesce(?, randomblob(16)),?,?,?,?,?,?,?,?,?)",
                (
                    uid,
                    origin,
                    turn_id,
                    revision,
                    session_id,
                    time.isoformat(),
                    speaker,
                    heard,
                    reply,
                    location,
                ),
            ).lastrowid
            if before is not None:
                db.execute("UPDATE turns SET superseded_by = ? WHERE id = ?", (row, before[0]))
                db.execute("DELETE FROM items WHERE kind = 'turn' AND ref_id = ?", (before[0],))
            text = searched(speaker, heard)
            self.add_item("turn", row, time, text, vector, speaker=speaker, location=location)
        return int(row)

    def turns(self, where: str = "1", *values: object) -> list[StoredTurn]:
        """The turns as they stand for which the SQL condition ``where`` holds, by time."""
        query = f"SELECT {_TURN} FROM turns t WHERE superseded_by IS NULL AND ({where}) ORDER BY time, id"
        return [_turn(row) for row in self.rows(query, *values)]

    def add_context(self, context: RealtimeContext, time: datetime) -> int:
        """Remembers a real-time context; returns its id."""
        with self.transaction() as db:
            row = db.execute(
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
            ).lastrowid
        return int(row)

    def contexts(self) -> list[tuple[RealtimeContext, datetime]]:
        """All contexts in the order of their times."""
        return [
            (RealtimeContext(c.at_s, c.scene, c.utterance, c.location, c.activity), c.time)
            for c in self.stored_contexts()
        ]

    def stored_contexts(self, where: str = "1", *values: object) -> list[StoredContext]:
        """The contexts for which the SQL condition ``where`` holds, in the order of the wearer's day."""
        query = (
            "SELECT id, at_s, time, scene, utterance, location, activity, event_id FROM contexts "
            f"WHERE {where} ORDER BY time, at_s, utterance <> '', id"
        )
        return [
            StoredContext(row[0], row[1], datetime.fromisoformat(row[2]), *row[3:])
            for row in self.rows(query, *values)
        ]

    # What is known of the wearer ----------------------------------------------------------------------------

    def add_profile(
        self,
        entry: ProfileEntry,
        vector: Vector | None,
        supersedes: Collection[int] = (),
        sources: Sequence[Source] = (),
    ) -> int:
        """Adds a profile entry (its ``id`` is ignored) with the words it rests on; those it supersedes are
        kept as history and stop being true when the new one begins."""
        since = (entry.valid_from or entry.learned).isoformat()
        until = entry.valid_to.isoformat() if entry.valid_to else None
        with self.transaction() as db:
            row = db.execute(
                "INSERT INTO profile (kind, text, confidence, learned, valid_from, valid_to, evidence, "
                "made_by, source_turn) VALUES (?,?,?,?,?,?,?,?,?)",
                (
                    entry.kind,
                    entry.text,
                    entry.confidence,
                    entry.learned.isoformat(),
                    since,
                    until,
                    entry.evidence,
                    entry.made_by,
                    entry.source_turn,
                ),
            ).lastrowid
            self.add_item("profile", row, entry.learned, entry.text, vector)
            db.executemany(
                "INSERT OR IGNORE INTO profile_sources VALUES (?,?,?,?,?)",
                [(row, s.kind, s.id, s.time.isoformat(), s.quote) for s in sources],
            )
            for old in supersedes:
                self.end_profile(old, entry.valid_from or entry.learned, row)
        return int(row)

    def end_profile(self, old: int, when: datetime, successor: int | None = None) -> None:
        """An entry is true no longer, from ``when`` on; it is kept as history, and no longer recalled."""
        with self.transaction() as db:
            db.execute(
                "UPDATE profile SET superseded_by = ?, valid_to = coalesce(valid_to, ?) WHERE id = ?",
                (successor, when.isoformat(), old),
            )
            db.execute("DELETE FROM items WHERE kind = 'profile' AND ref_id = ?", (old,))

    def profile(self) -> list[ProfileEntry]:
        """The profile as it stands now, oldest first."""
        query = (
            f"SELECT {_PROFILE} FROM profile p WHERE superseded_by IS NULL AND valid_to IS NULL ORDER BY id"
        )
        return [_profile_entry(row) for row in self.rows(query)]

    def profile_history(self) -> list[ProfileEntry]:
        """Every entry there ever was, oldest first."""
        return [_profile_entry(row) for row in self.rows(f"SELECT {_PROFILE} FROM profile p ORDER BY id")]

    def sources(self, profile_id: int) -> list[Source]:
        """The words that an entry rests on, oldest first."""
        return [
            Source(row[0], row[1], datetime.fromisoformat(row[2]), row[3])
            for row in self.rows(
                "SELECT source_kind, source_id, time, quote FROM profile_sources WHERE profile_id = ? "
                "ORDER BY time, source_kind, source_id",
                profile_id,
            )
        ]

    # Nearest by meaning -------------------------------------------------------------------------------------

    def nearest_turns(self, vector: Vector, k: int) -> list[tuple[StoredTurn, float]]:
        """The ``k`` turns whose words are nearest to ``vector``, with their cosine similarity."""
        found = self._nearest("turn", vector, k)
        turns = {turn.id: turn for turn in self.turns(_among([ref for ref, _ in found]))}
        return [(turns[ref], similarity) for ref, similarity in found]

    def nearest_profile(self, vector: Vector, k: int) -> list[tuple[ProfileEntry, float]]:
        """The ``k`` valid profile entries nearest to ``vector``, with their cosine similarity."""
        found = self._nearest("profile", vector, k)
        query = f"SELECT {_PROFILE} FROM profile p WHERE {_among([ref for ref, _ in found])}"
        entries = {row[0]: _profile_entry(row) for row in self.rows(query)}
        return [(entries[ref], similarity) for ref, similarity in found]

    def nearest_signs(self, kind: Kind, vector: Vector, k: int) -> list[int]:
        """Ids of the ``k`` items of a kind that are nearest to ``vector`` as far as signs tell."""
        with self._lock:
            return self._signs.nearest(kind, vector, k)

    def _nearest(self, kind: Kind, vector: Vector, k: int) -> list[tuple[int, float]]:
        """Rows of one kind by cosine similarity: the signs are scanned, the best hundreds scored."""
        rows = self.rows(
            "SELECT i.ref_id, v.vector FROM item_vectors v JOIN items i ON i.id = v.id WHERE "
            "v.embedder = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder') "
            f"AND v.{_among(self.nearest_signs(kind, vector, max(4 * k, 200)))}"
        )
        similar: list[float] = (unpack([row[1] for row in rows]) @ vector).tolist() if rows else []
        found = sorted(zip((row[0] for row in rows), similar, strict=True), key=lambda p: -p[1])
        return found[:k]


_TURN = "t.id, turn_id, time, heard, reply, location, revision, speaker, session_id, importance"
_PROFILE = (
    "p.id, kind, text, confidence, learned, source_turn, valid_from, valid_to, evidence, made_by, "
    "superseded_by"
)


def _among(ids: Sequence[int]) -> str:
    return f"id IN ({','.join(map(str, ids))})"


def _turn(row: tuple[Any, ...]) -> StoredTurn:
    return StoredTurn(row[0], row[1], datetime.fromisoformat(row[2]), *row[3:])


def _profile_entry(row: tuple[Any, ...]) -> ProfileEntry:
    return ProfileEntry(
        id=row[0],
        kind=row[1],
        text=row[2],
        confidence=row[3],
        learned=datetime.fromisoformat(row[4]),
        source_turn=row[5],
        valid_from=datetime.fromisoformat(row[6]),
        valid_to=datetime.fromisoformat(row[7]) if row[7] else None,
        evidence=row[8],
        made_by=row[9],
        superseded_by=row[10],
    )
