"""Brings a memory file forward, step by step, never back; a copy of the file as it was stays beside it."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from os1_edge.remember.files import copy_whole
from os1_edge.remember.rows import searched, seconds
from os1_edge.remember.schema import STEPS
from os1_edge.remember.vectors import bits_of, pack

_ROWS = uuid.UUID("6f1d4e0a-5f0e-4d3c-9b59-7f6b1c9f4b51")
"""Name space of rows whose uid follows from what they hold: the same on every device."""


def uid_of(*parts: object) -> bytes:
    """The uid of a row that holds ``parts``, 16 bytes."""
    return uuid.uuid5(_ROWS, "\x1f".join(map(str, parts))).bytes


def statements(script: str) -> Iterator[str]:
    """The single statements of an SQL script; what stands in a trigger is no statement of its own."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def migrate(db: Any, path: Path) -> None:
    """Brings an open database to the newest step, each step in one transaction.

    Before the first step over a file that holds something, ``NAME.vN.bak`` (N: the step it stands at) is
    written beside it; an older such copy goes.

    Raises:
        ValueError: the file was written by a newer release.
        OSError: there is no room for the copy; nothing was changed.
    """
    done = _step(db)
    if done > len(STEPS):
        raise ValueError(f"it was written by a newer release (schema {done}, this one knows {len(STEPS)})")
    if done == len(STEPS):
        return
    if done:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("BEGIN IMMEDIATE")
    try:
        done = _step(db)  # another process may have been faster
        if 0 < done < len(STEPS):
            _keep_copy(path, done)
        register(db)
        for number, script in enumerate(STEPS[done:], done + 1):
            for statement in statements(script):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _step(db: Any) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _keep_copy(path: Path, step: int) -> None:
    """Copies the file, byte for byte, so under the same key. The caller holds the write lock over an empty
    write-ahead log, so that the file is whole and stands still."""
    copy = path.with_name(f"{path.name}.v{step}.bak")
    copy_whole(path, copy)
    for older in path.parent.glob(f"{path.name}.v*.bak"):
        if older != copy:
            older.unlink()


def register(db: Any) -> None:
    """The functions that the steps use: uid_of, seconds_of, pack_of, searched, bits_of."""
    db.create_function("uid_of", -1, uid_of, deterministic=True)
    db.create_function("seconds_of", 1, lambda t: seconds(datetime.fromisoformat(t)), deterministic=True)
    db.create_function("pack_of", 1, lambda v: pack(np.frombuffer(v, np.float32)), deterministic=True)
    db.create_function("searched", 2, searched, deterministic=True)
    db.create_function("bits_of", 1, bits_of, deterministic=True)
