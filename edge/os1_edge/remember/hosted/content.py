"""A row of the memory file as bytes, whole: its columns, and what the index holds of it; and back again."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from os1_edge.remember.schema import TABLE_OF

KEPT: dict[str, tuple[str, ...]] = {
    "turns": ("id",),
    "contexts": ("id",),
    "events": ("id",),
    "summaries": ("id",),
    "index_keys": ("target_kind", "target_id", "dimension", "text"),  # a number of theirs comes twice
    "profile": ("id",),
    "profile_sources": ("profile_id", "source_kind", "source_id"),
    "turn_used": ("turn", "kind", "ref_id"),
    "jobs": ("id",),
    "forgotten": ("uid",),
}
"""The tables whose rows lie on the server, with what names a row. Left out: the index (it goes with its
rows), notes of this device (``meta``, ``embedders``), and the trash: what should go stays here."""

SHELVES = {"turn": 0, "event": 1, "summary": 2, "profile": 3, "key": 4}
"""The shelf of a searched row on the server, by its kind."""

UNSEARCHED = -1
"""The shelf of what cannot be searched by meaning: contexts, history, notes, and what has no vector yet."""

_KIND_OF = {table: kind for kind, table in TABLE_OF.items()}


@dataclass(frozen=True, slots=True)
class Item:
    """What the index holds of a row."""

    id: int
    kind: str
    ref: int
    time: float
    speaker: str
    location: str
    text: str
    embedder: str
    """Name of what made ``vector``; "" where there is none."""
    vector: bytes
    """As packed in the file."""


@dataclass(frozen=True, slots=True)
class Content:
    """A row: its table, its columns in order, and its index entry if it has one."""

    table: str
    columns: dict[str, Any]
    item: Item | None

    @property
    def name(self) -> str:
        """Names the row: ``turns:12``."""
        return name_of(self.table, [self.columns[column] for column in KEPT[self.table]])

    @property
    def shelf(self) -> int:
        """Where it is searched for."""
        return SHELVES[self.item.kind] if self.item is not None and self.item.vector else UNSEARCHED

    def encode(self) -> bytes:
        """The same bytes for the same row, always."""
        item = None
        if (i := self.item) is not None:
            item = [i.id, i.kind, i.ref, i.time, i.speaker, i.location, i.text, i.embedder]
        columns = {
            name: {"hex": value.hex()} if isinstance(value, bytes) else value
            for name, value in self.columns.items()
        }
        text = json.dumps([self.table, columns, item], ensure_ascii=False, separators=(",", ":")).encode()
        return struct.pack(">I", len(text)) + text + (self.item.vector if self.item is not None else b"")

    @staticmethod
    def decode(data: bytes) -> Content:
        """What ``encode`` made ``data`` of."""
        (length,) = struct.unpack(">I", data[:4])
        table, columns, item = json.loads(data[4 : 4 + length])
        return Content(
            table,
            {n: bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for n, v in columns.items()},
            None if item is None else Item(*[*item, data[4 + length :]]),
        )


def name_of(table: str, key: list[Any]) -> str:
    """The name of a row; SQL makes the like (``sql_name``), to be read by ``table_and_key``."""
    values = [v.hex().upper() if isinstance(v, bytes) else v for v in key]
    return json.dumps([table, *values], ensure_ascii=False, separators=(",", ":"))


def table_and_key(name: str) -> tuple[str, list[Any]]:
    """The table and the values of ``KEPT`` that name a row."""
    table, *values = json.loads(name)
    return table, [bytes.fromhex(v) if c == "uid" else v for c, v in zip(KEPT[table], values, strict=True)]


def canonical(name: str) -> str:
    """``name`` as ``name_of`` writes it, whichever of the two made it."""
    return json.dumps(json.loads(name), ensure_ascii=False, separators=(",", ":"))


def sql_name(table: str, row: str) -> str:
    """An SQL expression for the name of the row that ``row`` (new, old, an alias) stands for."""
    parts = [f"hex({row}.{c})" if c == "uid" else f"{row}.{c}" for c in KEPT[table]]
    return f"json_array('{table}', {', '.join(parts)})"


def read(db: Any, name: str) -> Content | None:
    """The row ``name`` as it stands in the file; ``None``: it is not there."""
    table, key = table_and_key(name)
    cursor = db.execute(f"SELECT * FROM {table} WHERE {' AND '.join(f'{c} = ?' for c in KEPT[table])}", key)
    names = [column[0] for column in cursor.description]
    if (row := cursor.fetchone()) is None:
        return None
    columns = dict(zip(names, row, strict=True))
    return Content(table, columns, _item(db, table, columns["id"]) if table in _KIND_OF else None)


def _item(db: Any, table: str, ref: int) -> Item | None:
    row = db.execute(
        "SELECT i.id, i.kind, i.ref_id, i.time, i.speaker, i.location, i.text, coalesce(e.name, ''), "
        "coalesce(v.vector, x'') FROM items i LEFT JOIN item_vectors v ON v.id = i.id "
        "LEFT JOIN embedders e ON e.id = v.embedder WHERE i.kind = ? AND i.ref_id = ?",
        (_KIND_OF[table], ref),
    ).fetchone()
    return None if row is None else Item(*row)


def write(db: Any, content: Content, bits: bytes) -> bool:
    """Puts a row back as it was, with its index entry under its old number, so that nothing tells that it was
    away. The caller's transaction defers foreign keys: rows come in any order.

    Args:
        db: the file.
        content: the row; it is not there.
        bits: the signs of its vector, empty where it has none.

    Returns:
        Whether it is the very same: a key's number, or its entry's, may have been given to another meanwhile.
    """
    columns, item, same = dict(content.columns), content.item, True
    if content.table == "index_keys" and _taken(db, "index_keys", columns["id"]):
        columns["id"], same = None, False
    places = ", ".join("?" * len(columns))
    row = db.execute(
        f"INSERT INTO {content.table} ({', '.join(columns)}) VALUES ({places})", tuple(columns.values())
    ).lastrowid
    if item is None:
        return same
    taken = _taken(db, "items", item.id)
    entry = db.execute(
        "INSERT INTO items (id, kind, ref_id, time, speaker, location, text) VALUES (?,?,?,?,?,?,?)",
        (None if taken else item.id, item.kind, row, item.time, item.speaker, item.location, item.text),
    ).lastrowid
    if item.vector:
        db.execute("INSERT OR IGNORE INTO embedders (name) VALUES (?)", (item.embedder,))
        db.execute(
            "INSERT INTO item_vectors (id, embedder, vector) "
            "VALUES (?, (SELECT id FROM embedders WHERE name = ?), ?)",
            (entry, item.embedder, item.vector),
        )
        db.execute(
            "INSERT INTO item_bits (rowid, kind, bits) VALUES (?, ?, vec_bit(?))", (entry, item.kind, bits)
        )
    return same and not taken


def _taken(db: Any, table: str, number: int) -> bool:
    return db.execute(f"SELECT 1 FROM {table} WHERE id = ?", (number,)).fetchone() is not None
