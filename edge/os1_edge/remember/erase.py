"""Leaves nothing of what was deleted in the file: not in its free pages, its index of words or its log."""

from __future__ import annotations

from typing import Any

import sqlcipher3

from os1_edge.remember.store import Store

_TRACES = "traces"
"""Note in the file, kept with the deletion itself: whatever ends the process before ``clear``, the next one
knows that there is something to clear."""


def note_traces(db: Any) -> None:
    """Something was deleted and may still be read in the file; call it in the same transaction."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?,'1')", (_TRACES,))


def has_traces(store: Store) -> bool:
    """Whether something deleted was not cleared yet."""
    return store.meta(_TRACES) is not None


def clear(store: Store) -> str:
    """Leaves nothing deleted in the file or its write-ahead log; returns why that was not possible, if so.

    ``secure_delete`` overwrites what is deleted, but not what SQLite had copied within the file before, and
    the tree over the full-text index keeps words of its old pages (both measured). So the full-text index and
    the file are written anew: about 3 s for 100 MB, and as much room on the disk for a moment.
    """
    with store.beside() as db:
        try:
            db.execute("INSERT INTO items_fts (items_fts) VALUES ('rebuild')")
            db.execute("PRAGMA temp_store = FILE")  # encrypted like the file; in memory it would be all of it
            db.execute("VACUUM")
            db.execute("DELETE FROM meta WHERE key = ?", (_TRACES,))
            busy = int(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            if busy:
                note_traces(db)
        except sqlcipher3.OperationalError as e:
            return f"what was deleted may still be found in the file ({e}); run: os1 memory forget --clear"
    if busy:
        return "another process reads the memory; its log is cleared when that one ends"
    return ""
