"""The index over all that can be searched, compared with the rows it was made of and put right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlcipher3

from os1_edge.remember.migrate import register
from os1_edge.remember.vectors import bits_of

_TARGET = "FROM items t WHERE t.kind = r.target_kind AND t.ref_id = r.target_id"

_SEARCHED = "searched(r.speaker, r.heard)"

_CURRENT = {
    "turn": ("turns", _SEARCHED, "superseded_by IS NULL", "seconds_of(r.time), r.speaker, r.location"),
    "event": ("events", "r.summary", "1", "seconds_of(r.start_time), '', r.location"),
    "summary": ("summaries", "r.text", "1", "seconds_of(r.start_time), '', ''"),
    "profile": (
        "profile",
        "r.text",
        "superseded_by IS NULL AND valid_to IS NULL",
        "seconds_of(r.learned), '', ''",
    ),
    "key": (
        "index_keys",
        "r.text",
        "1",
        f"coalesce((SELECT t.time {_TARGET}), 0), '', coalesce((SELECT t.location {_TARGET}), '')",
    ),
}
"""What belongs into the index, by kind: table, its text, which rows; time, speaker, location."""

_SEEN = "WHERE id NOT IN (SELECT rowid FROM item_bits)"
_STRAY = "SELECT rowid FROM item_bits WHERE rowid NOT IN (SELECT id FROM item_vectors)"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How far the index is from the rows."""

    missing: int
    """Rows that cannot be found."""
    stray: int
    """Entries that lead nowhere, or have other words than their row."""
    bits: int
    """Vectors that are not scanned, or scanned without being there."""
    words: bool
    """Whether the words of the full-text index differ from those of the entries."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.stray or self.bits or self.words)


def compare(db: Any) -> Mismatch:
    """How far the index is from the rows; changes nothing."""
    register(db)
    missing = stray = 0
    for kind in _CURRENT:
        missing += db.execute(f"SELECT count(*) {_missing(kind)}").fetchone()[0]
        stray += db.execute(f"SELECT count(*) {_stray(kind)}").fetchone()[0]
    stray += db.execute(f"SELECT count(*) FROM item_vectors WHERE {_ITEMLESS}").fetchone()[0]
    unseen = db.execute(f"SELECT count(*) FROM item_vectors {_SEEN}").fetchone()[0]
    return Mismatch(
        missing,
        stray,
        unseen + db.execute(f"SELECT count(*) FROM ({_STRAY})").fetchone()[0],
        not _words_fit(db),
    )


def mend(db: Any) -> None:
    """Makes the index say what the rows say; vectors stay where their text is the same. Inside the caller's
    transaction. What is entered anew has no vector until the embedder comes by (``Store.without_vector``)."""
    register(db)
    if not _words_fit(db):
        db.execute("INSERT INTO items_fts (items_fts) VALUES ('rebuild')")
    for kind, (_, text, _, rest) in _CURRENT.items():
        db.execute(f"DELETE {_stray(kind)}")
        db.execute(
            "INSERT INTO items (kind, ref_id, time, speaker, location, text) "
            f"SELECT '{kind}', r.id, {rest}, {text} {_missing(kind)}"
        )
    db.execute(f"DELETE FROM item_vectors WHERE {_ITEMLESS}")
    db.executemany("DELETE FROM item_bits WHERE rowid = ?", list(db.execute(_STRAY)))
    _scan(db, [row[0] for row in db.execute(f"SELECT id FROM item_vectors {_SEEN}")])


def compact(db: Any) -> None:
    """Writes what is scanned anew without gaps: sqlite-vec gives room back only where 1,024 neighbours are
    all gone. Inside the caller's transaction."""
    db.execute("DELETE FROM item_bits")
    _scan(db, [row[0] for row in db.execute("SELECT id FROM item_vectors ORDER BY id")])


def _scan(db: Any, ids: list[int]) -> None:
    """Enters the signs of these vectors; one by one, because what SQLite knows of a value as bits does not
    outlive a query that has to write its rows down in between."""
    for item in ids:
        (kind, vector) = db.execute(
            "SELECT i.kind, v.vector FROM items i JOIN item_vectors v USING (id) WHERE id = ?", (item,)
        ).fetchone()
        db.execute(
            "INSERT INTO item_bits (rowid, kind, bits) VALUES (?,?,vec_bit(?))", (item, kind, bits_of(vector))
        )


_ITEMLESS = "id NOT IN (SELECT id FROM items)"


def _missing(kind: str) -> str:
    table, _, which, _ = _CURRENT[kind]
    entered = f"SELECT 1 FROM items i WHERE i.kind = '{kind}' AND i.ref_id = r.id"
    return f"FROM {table} r WHERE {which} AND NOT EXISTS ({entered})"


def _stray(kind: str) -> str:
    table, text, which, _ = _CURRENT[kind]
    row = f"SELECT 1 FROM {table} r WHERE r.id = items.ref_id AND {text} = items.text AND {which}"
    return f"FROM items WHERE kind = '{kind}' AND NOT EXISTS ({row})"


def _words_fit(db: Any) -> bool:
    try:
        db.execute("INSERT INTO items_fts (items_fts, rank) VALUES ('integrity-check', 1)")
    except sqlcipher3.DatabaseError:
        return False
    return True
