"""Leaves nothing of what was deleted in the file: not in its free pages, its index of words or its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlcipher3

from os1_edge.remember.store import Store

_TRACES = "traces"
"""Note in the file, kept with the deletion itself: whatever ends the process before ``clear``, the next one
knows that there is something to clear."""

_ALL, _FILE = "1", "2"
"""What the note says: all is to be written anew; the index of words was already."""

ASK_EVERY = 20_000
"""Steps of SQLite's machine between two looks at whether to stop: some milliseconds."""


def note_traces(db: Any) -> None:
    """Something was deleted and may still be read in the file; call it in the same transaction."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (_TRACES, _ALL))


def has_traces(store: Store) -> bool:
    """Whether something deleted was not cleared yet."""
    return store.meta(_TRACES) is not None


def clear(store: Store, stop: Callable[[], bool] = lambda: False) -> str:
    """Leaves nothing deleted in the file or its write-ahead log; returns why that was not possible, if so.

    ``secure_delete`` overwrites what is deleted, but not what SQLite had copied within the file before, and
    the tree over the full-text index keeps words of its old pages (both measured). So the full-text index and
    the file are written anew: about 3 s for 100 MB, and as much room on the disk for a moment. Recall goes on
    meanwhile, in another thread; who writes waits (``Store.beside``).

    Args:
        store: the memory.
        stop: asked now and then; when it says so the file stays as it was, and what is done by then of the
            work is not done again.
    """
    with store.beside() as db:
        db.set_progress_handler(stop, ASK_EVERY)
        try:
            if store.meta(_TRACES) != _FILE:
                _rewrite_words(db)
            db.execute("PRAGMA temp_store = FILE")  # encrypted like the file; in memory it would be all of it
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")  # most of it, for which nobody waits
            if int(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]):
                return "another process reads the memory; its log is cleared when that one ends"
            db.execute("DELETE FROM meta WHERE key = ?", (_TRACES,))
        except sqlcipher3.OperationalError as e:
            return f"what was deleted may still be found in the file ({e}); run: os1 memory forget --clear"
        finally:
            db.set_progress_handler(None, 0)
    return ""


def _rewrite_words(db: Any) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("INSERT INTO items_fts (items_fts) VALUES ('rebuild')")
        db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (_TRACES, _FILE))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
