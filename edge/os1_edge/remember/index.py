"""An open memory file and the one index over all that can be searched in it.

This is the lowest layer: opening, transactions, and entering what is searched (``add_item``) in the same
transaction as its row. The rows themselves are the ``Store``'s.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event, RLock
from typing import Any

from os1_edge.remember.connection import connect, opening, unlock
from os1_edge.remember.rows import Kind, seconds
from os1_edge.remember.scan import Signs
from os1_edge.remember.vectors import Vector, bits_of, pack, unpack

SCORED, LEAST_SCORED, MORE_FROM = 10, 75, 1000
"""How many times as many as are wanted are scored, and how many at least: so many, and one more for each
thousand memories. Each is read out of an encrypted page. 100 hold 99.9 % of the nearest 10 of 50,000 made-up
memories, and 83 % of 200,000; 275 hold 99 % of these."""


ADOPT_S = 1.0
"""How long to wait for who reads, to spare the next one reading all signs anew. Not for ever: a reader that
goes on to write would wait for the end of ``beside``."""

_OTHERS_COMMITS = "PRAGMA data_version"

UIDS_ALIKE = 1024
"""Rows made one after the other whose uids begin alike: so their entries in the index over uids lie in a few
pages. Scattered over all of it, a day's are in more pages the bigger the memory is, each read and written."""


class Index:
    """An open memory file. Methods may be called from any thread; a lock lets one in at a time."""

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
        self._calm = Event()
        """Nothing writes the file anew (``beside``)."""
        self._calm.set()
        self._db = connect(path, key)
        self._signs = Signs(self._db)
        self.origin = uuid.uuid4().hex[:12]
        """Names this run in the turns it writes: every run numbers its turns anew."""
        self._uids, self._begin = 0, b""
        if embedder is not None:
            with opening(self._db, path):
                self.set_embedder(embedder)

    def close(self) -> None:
        """Closes the file; the write-ahead log is folded in."""
        with self._lock:
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Everything written inside is kept, or nothing of it. One inside another joins it."""
        with self._undisturbed():
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
        """A second connection, to write the file anew and change no row of it, which may take seconds: those
        who read go on meanwhile, those who write wait. A change of ``temp_store`` would drop the temporary
        tables and triggers of the first, which recall lives on."""
        with self._undisturbed():
            self._calm.clear()
        try:
            db = unlock(self.path, self._key)
            try:
                db.execute("PRAGMA secure_delete = ON")
                before = db.execute(_OTHERS_COMMITS).fetchone()
                yield db
                if self._lock.acquire(timeout=ADOPT_S):
                    try:
                        self._signs.still_true(lambda: db.execute(_OTHERS_COMMITS).fetchone() == before)
                    finally:
                        self._lock.release()
            finally:
                db.close()
        finally:
            self._calm.set()

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """The lock, while nothing writes the file anew."""
        while True:
            self._calm.wait()
            with self._lock:
                if self._calm.is_set():  # else that began just now
                    yield
                    return

    def new_uid(self) -> bytes:
        """A uid for a row, 16 random bytes; those of ``UIDS_ALIKE`` rows begin alike."""
        with self._lock:
            if self._uids % UIDS_ALIKE == 0:
                self._begin = os.urandom(4)
            self._uids += 1
            return self._begin + os.urandom(12)

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
            if vector is not None:  # nothing is known by this id yet that would have to go
                self._enter_vector(item, pack(vector))
        return int(item)

    def set_vector(self, item: int, vector: Vector) -> None:
        """Gives an item the vector that the current embedder made of its text."""
        self.set_packed(item, pack(vector))

    def set_packed(self, item: int, vector: bytes) -> None:
        """The same with a vector as ``vectors.pack`` made it, of another memory of the same embedder."""
        with self.transaction() as db:
            db.execute("DELETE FROM item_bits WHERE rowid = ?", (item,))
            self._enter_vector(item, vector)

    def _enter_vector(self, item: int, packed: bytes) -> None:
        """The signs are those of the packed vector, as in every place that makes them anew."""
        with self.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO item_vectors (id, embedder, vector) "
                "VALUES (?, (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder'), ?)",
                (item, packed),
            )
            db.execute(
                "INSERT INTO item_bits (rowid, kind, bits) "
                "SELECT id, kind, vec_bit(?) FROM items WHERE id = ?",
                (bits_of(packed), item),
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

    @property
    def hosted(self) -> bool:
        """Whether rows of it may lie on a server only (``hosted``)."""
        return self.meta("hosted") is not None

    def complete(self, since: datetime | None = None, rows: Iterable[tuple[str, int]] = ()) -> None:
        """Brings home what lies on a server only, for work that needs all of the memory. Elsewhere there is
        nothing to do.

        Args:
            since: only what did not end before is needed.
            rows: only what may be connected with these (kind, id) is needed.

        Raises:
            BadMemory: the server does not give it now; nothing was changed.
        """
        if self.hosted:
            from os1_edge.remember.hosted.open import complete

            complete(self, since, rows)

    def nearest_signs(self, kind: Kind, vector: Vector, k: int) -> list[int]:
        """Ids of the ``k`` items of a kind that are nearest to ``vector`` as far as signs tell."""
        with self._lock:
            return self._signs.nearest(kind, vector, k)

    def _nearest(self, kind: Kind, vector: Vector, k: int) -> list[tuple[int, float]]:
        """Rows of one kind by cosine similarity: the signs are scanned, the best of them scored."""
        size = self.rows("SELECT coalesce(max(id), 0) FROM items")[0][0]
        scored = max(SCORED * k, LEAST_SCORED + size // MORE_FROM)
        rows = self.rows(
            "SELECT id, vector FROM item_vectors WHERE "
            "embedder = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder') "
            f"AND {among(self.nearest_signs(kind, vector, scored))}"
        )
        similar: list[float] = (unpack([row[1] for row in rows]) @ vector).tolist() if rows else []
        found = sorted(zip((row[0] for row in rows), similar, strict=True), key=lambda p: -p[1])[:k]
        refs = dict(self.rows(f"SELECT id, ref_id FROM items WHERE {among([item for item, _ in found])}"))
        return [(refs[item], similarity) for item, similarity in found]


def among(ids: Sequence[int]) -> str:
    """SQL condition: the row's id is one of these."""
    return f"id IN ({','.join(map(str, ids))})"
