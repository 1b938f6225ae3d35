"""Opens the encrypted file, or says in words why not; what cannot be opened is never written to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlcipher3
import sqlite_vec

from os1_edge.remember.files import draft_folder, place_new, sweep
from os1_edge.remember.migrate import migrate
from os1_edge.remember.rows import readable

APPLICATION_ID = 0x6F733101
"""Marks the file as an OS-1 memory for whoever has the key (``PRAGMA application_id``)."""

PAGE_BYTES = 4096

CACHE_KIB = 24 * 1024
"""Decrypted pages kept: a third of the vectors of 200,000 memories; their signs lie apart (``scan``)."""

BUSY_MS = 5000
"""How long to wait for another process's transaction."""

_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",  # a committed memory survives the battery being pulled out
    "secure_delete = ON",
    "foreign_keys = ON",
    f"cache_size = -{CACHE_KIB}",
    "temp_store = MEMORY",  # nothing in plain text outside the file
    "journal_size_limit = 4194304",
)


sqlcipher3.register_adapter(str, readable)  # every text on its way into a file, whoever writes it


class BadMemory(Exception):
    """The memory file cannot be opened; nothing was changed. The message says why."""


class NotThisKey(BadMemory):
    """Another key, or no memory file: under encryption the two look the same."""


def connect(path: Path, key: bytes) -> Any:
    """An open connection to the memory at ``path``, brought to the newest schema; makes the file if there is
    none. Statements commit by themselves outside a transaction; any thread may use it, one at a time.

    Raises:
        BadMemory: wrong key, no memory file, damaged, read-only, in use, or written by a newer release.
    """
    if path.is_dir():
        raise BadMemory(f"{path} is a folder, not a memory file")
    sweep(path)
    if not os.path.lexists(path):
        _make(path, key)
    elif path.is_file() and path.stat().st_size == 0:
        raise BadMemory(f"{path} is empty, not a memory file; move it away to start a new memory")
    return _open(path, key)


def unlock(path: Path, key: bytes, *, create: bool = False, salt: bytes = b"", salvage: bool = False) -> Any:
    """A connection that can read ``path``, with nothing else set: for copies and repairs.

    Args:
        path: the file.
        key: 32 bytes.
        create: make the file if there is none.
        salt: 16 bytes for a new file, to which a passphrase's key was made; default: random.
        salvage: read what there is of a file that was cut short; tables of vectors stay closed.

    Raises:
        BadMemory: wrong key, no memory file, or damaged at its very beginning.
    """
    mode = "rwc" if create else "rw"
    try:
        db: Any = sqlcipher3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, check_same_thread=False, isolation_level=None
        )
    except sqlcipher3.DatabaseError as e:
        raise BadMemory(f"{path}: {e}") from None
    try:
        db.execute("PRAGMA cipher_log_level = NONE")  # it would tell stderr of every wrong key
        db.execute(f"PRAGMA key = \"x'{key.hex()}{salt.hex()}'\"")
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        if salvage:  # SQLite then takes a file for as long as it is, not as its first page says
            db.execute("PRAGMA writable_schema = ON")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not salvage:
            db.enable_load_extension(True)
            sqlite_vec.load(db)
            db.enable_load_extension(False)
    except sqlcipher3.DatabaseError as e:
        db.close()
        raise (_cannot_write if create else _why)(path, e) from None
    return db


def opens(path: Path, key: bytes) -> bool:
    """Whether ``key`` is that of ``path``; nothing is changed.

    Raises:
        BadMemory: there is no telling: the file is in use, or cannot be read.
    """
    try:
        unlock(path, key).close()
    except NotThisKey:
        return False
    return True


@contextmanager
def open_alone(path: Path, key: bytes) -> Iterator[Any]:
    """A connection beside which nobody else has the file open until the end: for what replaces the file.

    Raises:
        BadMemory: wrong key, damaged, or another process uses it.
    """
    db = unlock(path, key)
    try:
        try:
            db.execute("PRAGMA journal_mode = DELETE")  # folds the log in; refused where there are others
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
        except sqlcipher3.DatabaseError as e:
            raise _why(path, e) from None
        yield db
    finally:
        db.close()


@contextmanager
def opening(db: Any, path: Path) -> Iterator[None]:
    """What goes wrong with ``db`` inside closes it, and is told as what opening ``path`` may meet.

    Raises:
        BadMemory: in use, a full disk, and the like.
    """
    try:
        yield
    except sqlcipher3.DatabaseError as e:
        db.close()
        raise _why(path, e) from None


def _make(path: Path, key: bytes) -> None:
    """The file appears with all its tables or not at all, whatever ends the process meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_folder(path) as folder:
        draft = folder / "new"
        db = unlock(draft, key, create=True)
        try:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute("PRAGMA journal_mode = WAL")
            migrate(db, draft)
        except sqlcipher3.DatabaseError as e:
            raise _cannot_write(path, e) from None
        finally:
            db.close()
        draft.chmod(0o600)
        place_new(draft, path)


def _open(path: Path, key: bytes) -> Any:
    db = unlock(path, key)
    try:
        _refuse_foreign(db, path)
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
        migrate(db, path)
        if int(db.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:  # the first release's
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    except sqlcipher3.DatabaseError as e:
        db.close()
        raise _why(path, e) from None
    except (ValueError, OSError) as e:
        db.close()
        raise BadMemory(f"{path}: {e}") from None
    except BaseException:
        db.close()
        raise
    return db


def _refuse_foreign(db: Any, path: Path) -> None:
    marked = int(db.execute("PRAGMA application_id").fetchone()[0])
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if marked != APPLICATION_ID and not (marked == 0 and {"turns", "contexts"} <= tables):
        db.close()
        raise BadMemory(f"{path} is another program's database, not a memory file; nothing was changed")


def _cannot_write(path: Path, error: sqlcipher3.DatabaseError) -> BadMemory:
    """Why a new file cannot be made; it has no other key."""
    return BadMemory(f"{path} cannot be made ({error}); is there room on its disk?")


def _why(path: Path, error: sqlcipher3.DatabaseError) -> BadMemory:
    text = str(error)
    if "is full" in text:
        return BadMemory(f"{path} cannot be written ({text}); make room on its disk")
    if "locked" in text or "busy" in text:
        return BadMemory(f"{path}: another OS-1 is using it; end that one first")
    if "readonly" in text or "unable to open" in text:
        return BadMemory(f"{path} cannot be opened to write ({text}); check who may write it and its folder")
    if "malformed" in text:
        return BadMemory(
            f"{path} is cut short or damaged ({text}); nothing was changed; see: os1 memory repair"
        )
    if "not a database" in text or "disk I/O" in text:  # what decrypting with another key comes to
        return NotThisKey(f"{path}: not a memory file, or another key ({text}); nothing was changed")
    return BadMemory(f"{path}: {text}; nothing was changed")
