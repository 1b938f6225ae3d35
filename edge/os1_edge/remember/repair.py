"""Says whether a memory file is sound, and saves what can be read of one that is not.

A repair never works on the only copy: the file as it was is kept aside, everything that can be read goes into
a new one, and that takes its place in one rename.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlcipher3

from os1_edge.remember.connection import APPLICATION_ID, BadMemory, connect, unlock
from os1_edge.remember.files import copy_whole, draft_folder, replace, sync_folder
from os1_edge.remember.key import salt_of
from os1_edge.remember.mend import compare, mend
from os1_edge.remember.migrate import migrate, register, statements
from os1_edge.remember.schema import STEPS
from os1_edge.remember.store import Store

_TABLES = {
    "meta": "",
    "forgotten": "",
    "embedders": "id",
    "events": "id",
    "contexts": "id",
    "turns": "id",
    "summaries": "id",
    "index_keys": "id",
    "profile": "id",
    "profile_sources": "profile_id",
    "turn_used": "turn",
    "jobs": "id",
    "trash_batches": "id",
    "trash": "id",
    "items": "id",
    "item_vectors": "id",
}
"""Tables to save with the number they are ordered by; those of meaning alone are made again from these."""

_LOOSE = (
    "UPDATE contexts SET event_id = NULL WHERE event_id NOT IN (SELECT id FROM events)",
    "UPDATE turns SET superseded_by = NULL WHERE superseded_by NOT IN (SELECT id FROM turns)",
    "UPDATE profile SET superseded_by = NULL WHERE superseded_by NOT IN (SELECT id FROM profile)",
    "DELETE FROM profile_sources WHERE profile_id NOT IN (SELECT id FROM profile)",
    "DELETE FROM item_vectors WHERE id NOT IN (SELECT id FROM items)",
    "INSERT OR IGNORE INTO embedders (id, name) "
    "SELECT DISTINCT embedder, 'lost ' || embedder FROM item_vectors",
    "INSERT OR IGNORE INTO meta VALUES ('device', lower(hex(randomblob(16))))",
    "INSERT OR IGNORE INTO embedders (id, name) VALUES (1, 'all-MiniLM-L6-v2 int8')",
    "INSERT OR IGNORE INTO meta VALUES ('embedder', '1')",
    # last, one a step: not in older files
    "DELETE FROM trash WHERE batch NOT IN (SELECT id FROM trash_batches)",
    "DELETE FROM turn_used WHERE turn NOT IN (SELECT id FROM turns)",
)
"""What makes saved rows fit together again, whatever was lost between them."""

_FURTHEST = 256
"""Numbers looked at beyond the last row that can be read, when the last pages of a table are gone."""

_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510

_STRETCH = 1024
"""Rows read at once: bounds what is held, and what a damaged page costs to go around."""


@dataclass(slots=True)
class Health:
    """What is wrong with a memory file, in words; nothing, if it is sound."""

    problems: list[str] = field(default_factory=list)
    index_only: bool = True
    """Whether all of it is in the index, which can be made again without loss."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did."""

    kept_aside: Path | None
    """The file as it was; ``None`` where only the index was put right, in place."""
    saved: dict[str, int]
    """Rows by table."""
    unreadable: dict[str, int]
    """Row numbers by table that could not be read, at most: some may never have been used."""


def check(path: Path, key: bytes) -> Health:
    """Reads every page and row of a memory: seals of the pages, trees, references, and index against rows.

    Raises:
        BadMemory: it cannot be opened at all.
    """
    if not path.exists():
        raise BadMemory(f"{path}: there is no memory yet")
    health = Health()
    try:
        store = Store(path, key)
    except BadMemory as e:
        if "damaged" not in str(e):
            raise
        return Health([str(e)], index_only=False)
    try:
        with store.reading() as db:
            _check_pages(db, health)
            if not health.problems:
                _check_index(db, health)
    finally:
        store.close()
    return health


def _check_pages(db: Any, health: Health) -> None:
    try:
        # Seals are looked at in the file itself. Where a full disk or a power loss cut off folding the log
        # in, the page that counts is the log's.
        busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        seals = [] if busy else list(db.execute("PRAGMA cipher_integrity_check"))
        health.problems += [f"page: {row[0]}" for row in seals[:20]]
        trees = [row[0] for row in db.execute("PRAGMA integrity_check(20)")]
        health.problems += [f"tree: {line}" for line in trees if line != "ok"]
        health.problems += [
            f"reference: a row of {row[0]} points to a row of {row[2]} that is not there"
            for row in db.execute("PRAGMA foreign_key_check")
        ]
    except sqlcipher3.DatabaseError as e:
        health.problems.append(f"page: {e}")
    health.index_only = not health.problems


def _check_index(db: Any, health: Health) -> None:
    try:
        found = compare(db)
    except sqlcipher3.DatabaseError as e:
        health.problems.append(f"index: {e}")
        health.index_only = False
        return
    told = (
        (found.missing, f"index: {found.missing} memories cannot be searched"),
        (found.stray, f"index: {found.stray} entries lead nowhere"),
        (found.bits, f"index: {found.bits} vectors do not fit what is scanned"),
        (found.words, "index: its words are not those of the memories"),
    )
    health.problems += [line for wrong, line in told if wrong]


def repair(path: Path, key: bytes, now: datetime) -> Repaired | None:
    """Puts a memory right. ``None``: it was sound, and nothing was done.

    Raises:
        BadMemory: wrong key, its first page is lost, or another process uses it; nothing was changed.
    """
    path = path.resolve()  # of a link, the file is put right, and the link stays one
    health = check(path, key)
    if not health.problems:
        return None
    if health.index_only:
        store = Store(path, key)
        try:
            with store.transaction() as db:
                mend(db)
        finally:
            store.close()
        return Repaired(None, {}, {})
    return _salvage(path, key, path.with_name(f"{path.name}.damaged-{now:%Y%m%d-%H%M%S}"))


@contextmanager
def _nobody_else(path: Path) -> Iterator[None]:
    """Keeps others from opening the file, and its bytes as they are.

    SQLite locks these bytes of a file while it has it open (sqlite.org/lockingv3.html).

    Raises:
        BadMemory: somebody has it open.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        span = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, span)
        yield
    except BlockingIOError:
        raise BadMemory(f"{path}: another OS-1 is using it; end that one first") from None
    finally:
        os.close(handle)


def _salvage(path: Path, key: bytes, aside: Path) -> Repaired:
    with _nobody_else(path):
        return _salvage_alone(path, key, aside)


def _salvage_alone(path: Path, key: bytes, aside: Path) -> Repaired:
    copy_whole(path, aside)
    log, aside_log = (file.with_name(f"{file.name}-wal") for file in (path, aside))
    if log.exists():
        copy_whole(log, aside_log)
    with draft_folder(path) as folder:
        working, draft = folder / "old", folder / "new"
        copy_whole(path, working)  # reading may fold the log in: not into the file kept aside
        if log.exists():
            copy_whole(log, working.with_name("old-wal"))
        saved, unreadable = _save(working, draft, key)
        log.unlink(missing_ok=True)  # the log of the old file must never meet the new one
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
        draft.chmod(0o600)
        replace(draft, path)
        sync_folder(path.parent)
    return Repaired(aside, saved, unreadable)


def _save(damaged: Path, draft: Path, key: bytes) -> tuple[dict[str, int], dict[str, int]]:
    old = _Damaged(damaged, key)
    new = unlock(draft, key, create=True, salt=salt_of(damaged))  # a passphrase needs the old one
    try:
        step = max(1, int((old.rows("PRAGMA user_version") or [(len(STEPS),)])[0][0]))
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN")
        _tables(new, step)
        saved, unreadable = _fill(old, new)
        if step > 1:
            for statement in _LOOSE[: len(_LOOSE) - (len(STEPS) - step)]:
                new.execute(statement)
            mend(new)
        new.execute("COMMIT")
        new.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(new, draft)
    finally:
        old.close()
        new.close()
    connect(draft, key).close()
    return saved, unreadable


def _tables(db: Any, step: int) -> None:
    """The empty tables as a file of that step has them."""
    register(db)
    for number, script in enumerate(STEPS[:step], 1):
        for statement in statements(script):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {number}")


def _fill(old: _Damaged, new: Any) -> tuple[dict[str, int], dict[str, int]]:
    saved: dict[str, int] = {}
    unreadable: dict[str, int] = {}
    for table, number in _TABLES.items():
        columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
        if not columns:
            continue
        rows = _Rows(old, table, number, columns)
        marks = ",".join("?" * len(columns))
        new.executemany(f"INSERT OR REPLACE INTO {table} ({','.join(columns)}) VALUES ({marks})", rows)
        saved[table] = rows.read
        if rows.unread:
            unreadable[table] = rows.unread
    return saved, unreadable


class _Damaged:
    """A file with pages that cannot be read. SQLCipher reads nothing more once it has met one, so every
    failure costs a new connection."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key
        self._db = unlock(path, key, salvage=True)

    def close(self) -> None:
        self._db.close()

    def rows(self, query: str) -> list[tuple[Any, ...]] | None:
        """All rows of a query; ``None`` where a page on the way is damaged."""
        try:
            return list(self._db.execute(query))
        except sqlcipher3.DatabaseError:
            self._db.close()
            self._db = unlock(self._path, self._key, salvage=True)
            return None


class _Rows:
    """The rows of a table that can still be read; counts those that cannot."""

    def __init__(self, old: _Damaged, table: str, number: str, columns: list[str]) -> None:
        self._old, self._table, self._number = old, table, number
        self._query = f"SELECT {','.join(columns)} FROM {table}"
        self.read = self.unread = 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if self._number:
            yield from self._between(1, self._last())
            return
        rows = self._old.rows(self._query)
        self.read, self.unread = len(rows or ()), int(rows is None)
        yield from rows or ()

    def _last(self) -> int:
        found = self._old.rows(f"SELECT max({self._number}) FROM {self._table}")
        if found is not None:
            return int(found[0][0] or 0)
        last = 0  # the far end is gone: feel for the last row that can be read
        for step in (1 << bit for bit in reversed(range(40))):
            query = f"SELECT {self._number} FROM {self._table} WHERE {self._number} >= {last + step} LIMIT 1"
            if found := self._old.rows(query):
                last = int(found[0][0])
        return last + _FURTHEST

    def _between(self, low: int, high: int) -> Iterator[tuple[Any, ...]]:
        """Rows numbered ``low`` to ``high``, a stretch at a time; where that fails, each half of it."""
        while low <= high:
            end = min(high, low + _STRETCH - 1)
            rows = self._old.rows(f"{self._query} WHERE {self._number} BETWEEN {low} AND {end}")
            if rows is not None:
                self.read += len(rows)
                yield from rows
            elif low == end:
                self.unread += 1
            else:
                middle = (low + end) // 2
                yield from self._between(low, middle)
                yield from self._between(middle + 1, end)
            low = end + 1
