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
    "index_keys": ("id",),
    "profile": ("id",),
    "profile_sources": ("profile_id", "source_kind", "source_id"),
    "turn_used": ("turn", "kind", "ref_id"),
    "jobs": ("id",),
    "forgotten": ("uid",),
}
"""The tables whose rows lie on the server, with what names a row. Left out: the index (it goes with its
rows), notes of this device (``meta``, ``embedders``), and the trash: what the wearer wants gone is not sent."""

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
            None if item is None else Item(*item, data[4 + length :]),
        )


def name_of(table: str, key: list[Any]) -> str:
    """The name of a row; SQL makes the same (``sql_name``)."""
    return ":".join([table, *(v.hex() if isinstance(v, bytes) else str(v) for v in key)])


def sql_name(table: str, row: str) -> str:
    """An SQL expression for the name of the row that ``row`` (new, old, an alias) stands for."""
    parts = [f"lower(hex({row}.{c}))" if c == "uid" else f"{row}.{c}" for c in KEPT[table]]
    return f"'{table}:' || " + " || ':' || ".join(parts)


def read(db: Any, name: str) -> Content | None:
    """The row ``name`` as it stands in the file; ``None``: it is not there."""
    table, *key = name.split(":")
    values = [bytes.fromhex(part) if c == "uid" else part for c, part in zip(KEPT[table], key, strict=True)]
    cursor = db.execute(
        f"SELECT * FROM {table} WHERE {' AND '.join(f'{c} = ?' for c in KEPT[table])}", values
    )
    names = [column[0] for column in cursor.description]
    if (row := cursor.fetchone()) is None:
        return None
    return Content(table, dict(zip(names, row, strict=True)), _item(db, table, key[0]))


def _item(db: Any, table: str, ref: str) -> Item | None:
    if table not in _KIND_OF:
        return None
    row = db.execute(
        "SELECT i.id, i.kind, i.ref_id, i.time, i.speaker, i.location, i.text, coalesce(e.name, ''), "
        "coalesce(v.vector, x'') FROM items i LEFT JOIN item_vectors v ON v.id = i.id "
        "LEFT JOIN embedders e ON e.id = v.embedder WHERE i.kind = ? AND i.ref_id = ?",
        (_KIND_OF[table], int(ref)),
    ).fetchone()
    return None if row is None else Item(*row)


def write(db: Any, content: Content) -> None:
    """Puts a row back as it was, with its index entry under its old number, so that nothing tells that it
    was away. The caller's transaction defers foreign keys; rows come in any order."""
    names = ", ".join(content.columns)
    places = ", ".join("?" * len(content.columns))
    db.execute(
        f"INSERT INTO {content.table} ({names}) VALUES ({places})", tuple(content.columns.values())
    )


def write_item(db: Any, item: Item, bits: bytes) -> None:
    """The index entry of a row; ``bits``: the signs of its vector, empty where it has none."""
    db.execute(
        "INSERT INTO items (id, kind, ref_id, time, speaker, location, text) VALUES (?,?,?,?,?,?,?)",
        (item.id, item.kind, item.ref, item.time, item.speaker, item.location, item.text),
    )
    if not item.vector:
        return
    db.execute("INSERT OR IGNORE INTO embedders (name) VALUES (?)", (item.embedder,))
    db.execute(
        "INSERT INTO item_vectors (id, embedder, vector) VALUES (?, (SELECT id FROM embedders WHERE name = ?), ?)",
        (item.id, item.embedder, item.vector),
    )
    db.execute(
        "INSERT INTO item_bits (rowid, kind, bits) VALUES (?, ?, vec_bit(?))", (item.id, item.kind, bits)
    )
