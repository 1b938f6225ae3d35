"""What the device's own file holds of a memory that lies on a server: where and under which secret, what has
still to be sent, and an index of what is only there. All of it is encrypted with the file.

The tables come when a memory is moved out and go when it is home again; a file that was never moved has none.
Triggers note every change of a row in the change's own transaction: what was kept is sent, whatever ends the
process. The note is a name, not a copy, so that it never holds more than one line a row.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from os1_edge.remember.hosted.content import KEPT, Content, sql_name
from os1_edge.remember.hosted.seal import SECRET_BYTES, Seal
from os1_edge.remember.index import Index
from os1_edge.remember.schema import TABLE_OF

MARK = "hosted"
"""The note in ``meta`` by which others see that a memory was moved."""

_INTENDED = "hosted_intended"
"""In ``meta`` while a first move has not settled: where to, and under which secret."""

_TABLES = """
    CREATE TABLE IF NOT EXISTS hosted_state (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS hosted_outbox (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- a later change of the row has a later one
      name TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE IF NOT EXISTS hosted_away (  -- rows that are only on the server
      row_id BLOB PRIMARY KEY,
      name TEXT NOT NULL,
      digest BLOB NOT NULL,                   -- what has to come back
      shelf INTEGER NOT NULL,
      at TEXT NOT NULL,                       -- its time, '' where it has none
      item INTEGER UNIQUE,                    -- its number in hosted_words, where it is searched
      kind TEXT, ref INTEGER, time REAL, speaker TEXT, session TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX IF NOT EXISTS hosted_away_by_ref ON hosted_away (kind, ref) WHERE ref IS NOT NULL;
    CREATE INDEX IF NOT EXISTS hosted_away_by_time ON hosted_away (time) WHERE time IS NOT NULL;
    CREATE VIRTUAL TABLE IF NOT EXISTS hosted_words USING fts5(
      text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
    );
"""

FIRST_AWAY = 1 << 40
"""Numbers of what is found on the server begin here, far above those of the index on the device."""

_QUIET = "NOT EXISTS (SELECT 1 FROM hosted_state WHERE key = 'quiet')"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a wearer's memory lies."""

    url: str
    """Of a Milvus server (https://, http://), or the path of a milvus-lite file."""
    wearer: str
    secret: bytes
    turned: bool = True
    token_file: str = ""
    """Of the server: "user:password" or an API key; read anew at each start."""
    ca_file: str = ""
    generation: int = 0
    """Of the collection: a server that cannot forget is given a new one (``shelf.purge``)."""
    keep_days: float = 30.0
    """Days that stay on the device too."""

    def seal(self) -> Seal:
        """What seals for this wearer."""
        return Seal(self.secret, self.wearer, turned=self.turned)


def new_secret() -> bytes:
    """A secret for a memory that moves out."""
    return secrets.token_bytes(SECRET_BYTES)


def place_of(store: Index) -> Place | None:
    """Where the memory lies; ``None``: on this device only."""
    if store.meta(MARK) is None:
        return None
    return Place(
        url=_get(store, "url"),
        wearer=_get(store, "wearer"),
        secret=bytes.fromhex(_get(store, "secret")),
        turned=_get(store, "turned") == "1",
        token_file=_get(store, "token_file"),
        ca_file=_get(store, "ca_file"),
        generation=int(_get(store, "generation")),
        keep_days=float(_get(store, "keep_days")),
    )


def intended(store: Index, place: Place) -> Place:
    """``place`` with the secret of an earlier try to move there: that may have claimed the collection and not
    come back to say so. Else its own, noted for a later try."""
    where, noted = [place.url, place.wearer], store.meta(_INTENDED)
    if noted is not None and (found := json.loads(noted))[:2] == where:
        return replace(place, secret=bytes.fromhex(found[2]))
    with store.transaction():
        store.set_meta(_INTENDED, json.dumps([*where, place.secret.hex()]))
    return place


def embedder_of(store: Index) -> str:
    """The name of what made the vectors when the memory moved out."""
    return _get(store, "embedder")


def settle(store: Index, place: Place) -> None:
    """From now on every change is noted to be sent to ``place``; the first time, what is there already too.
    One transaction."""
    with store.transaction() as db:
        fresh = store.meta(MARK) is None
        for statement in (*_split(_TABLES), *_triggers()):
            db.execute(statement)
        for key, value in (
            ("url", place.url), ("wearer", place.wearer), ("secret", place.secret.hex()),
            ("turned", str(int(place.turned))), ("token_file", place.token_file),
            ("ca_file", place.ca_file), ("generation", str(place.generation)),
            ("keep_days", repr(place.keep_days)),
        ):  # fmt: skip
            put(db, key, value)
        if fresh:
            put(db, "embedder", store.embedder())
        store.set_meta(MARK, "1")
        db.execute("DELETE FROM meta WHERE key = ?", (_INTENDED,))
        if fresh:
            for table in KEPT:
                db.execute(f"INSERT INTO hosted_outbox (name) SELECT {sql_name(table, 'r')} FROM {table} r")


def unsettle(store: Index) -> None:
    """The memory is home: nothing tells any more that it was away."""
    with store.transaction() as db:
        for name in _trigger_names():
            db.execute(f"DROP TRIGGER IF EXISTS {name}")
        for table in ("hosted_words", "hosted_away", "hosted_outbox", "hosted_state"):
            db.execute(f"DROP TABLE IF EXISTS {table}")
        db.execute("DELETE FROM meta WHERE key = ?", (MARK,))


def put(db: Any, key: str, value: str) -> None:
    """Notes something of the move."""
    db.execute("INSERT OR REPLACE INTO hosted_state VALUES (?,?)", (key, value))


def quiet(db: Any, on: bool) -> None:
    """While on, in the caller's transaction, changes are not noted: rows only change where they lie."""
    if on:
        put(db, "quiet", "1")
    else:
        db.execute("DELETE FROM hosted_state WHERE key = 'quiet'")


def note(db: Any, name: str) -> None:
    """Notes a row to be sent, or to be deleted on the server where it is not here."""
    db.execute("INSERT OR REPLACE INTO hosted_outbox (name) VALUES (?)", (name,))


def waiting(store: Index, limit: int) -> list[tuple[int, str]]:
    """Changes to send, oldest first: (seq, name)."""
    return [
        (row[0], row[1])
        for row in store.rows("SELECT seq, name FROM hosted_outbox ORDER BY seq LIMIT ?", limit)
    ]


def sent(store: Index, entries: Iterable[tuple[int, str]], *, forgot: bool) -> None:
    """These are on the server; a row that changed again meanwhile stays noted. ``forgot``: rows were
    forgotten, of which the server may yet hold traces."""
    with store.transaction() as db:
        if forgot:
            put(db, "traces", "1")
        db.executemany("DELETE FROM hosted_outbox WHERE seq = ? AND name = ?", list(entries))


def counts(store: Index) -> tuple[int, int]:
    """How many changes wait, and how many rows are only on the server."""
    ((out,),) = store.rows("SELECT count(*) FROM hosted_outbox")
    ((away,),) = store.rows("SELECT count(*) FROM hosted_away")
    return out, away


def least(store: Index) -> int:
    """How many rows of the memory the server holds at least: what waits may be there already or not."""
    waiting, away = counts(store)
    here = sum(int(store.rows(f"SELECT count(*) FROM {table}")[0][0]) for table in KEPT)
    return max(0, here + away - waiting)


def give_up(store: Index) -> int:
    """Nothing is only on the server any more: what was is lost. Returns how many rows."""
    _, away = counts(store)
    with store.transaction() as db:
        db.execute("DELETE FROM hosted_away")
        db.execute("INSERT INTO hosted_words (hosted_words) VALUES ('delete-all')")
    return away


def has_traces(store: Index) -> bool:
    """Whether the server may hold traces of what was forgotten."""
    return bool(_get(store, "traces"))


def purged(store: Index, generation: int) -> None:
    """The server was asked to let them go; the memory lies in this generation now."""
    with store.transaction() as db:
        put(db, "generation", str(generation))
        db.execute("DELETE FROM hosted_state WHERE key = 'traces'")


def mark_away(db: Any, seal: Seal, rows: Sequence[Content]) -> None:
    """Notes rows as being only on the server, with what finds them: words, time, who spoke.

    Args:
        db: inside the transaction that takes them out of the file.
        seal: the wearer's.
        rows: as they lie on the server.
    """
    ((number,),) = db.execute("SELECT coalesce(max(item), ?) FROM hosted_away", (FIRST_AWAY,)).fetchall()
    for row in rows:
        i, name = row.item, row.name
        found: tuple[object, ...] = (None,) * 5
        if i is not None:
            number += 1
            found = (number, i.kind, i.ref, i.time, i.speaker)
            db.execute("INSERT INTO hosted_words (rowid, text) VALUES (?,?)", (number, i.text))
        db.execute(
            "INSERT INTO hosted_away VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (
                seal.row_id(name), name, seal.digest(row.encode()), row.shelf, _time(row), *found,
                row.columns["session_id"] if row.table == "turns" else "",
            ),
        )  # fmt: skip


def mark_back(db: Any, row_ids: Iterable[bytes]) -> None:
    """The rows are on the device again."""
    for row_id in row_ids:
        db.execute(
            "DELETE FROM hosted_words WHERE rowid = (SELECT item FROM hosted_away WHERE row_id = ?)",
            (row_id,),
        )
        db.execute("DELETE FROM hosted_away WHERE row_id = ?", (row_id,))


def _time(row: Content) -> str:
    return str(row.columns.get("end_time") or row.columns.get("time") or row.columns.get("learned") or "")


def _get(store: Index, key: str) -> str:
    found = store.rows("SELECT value FROM hosted_state WHERE key = ?", key)
    return str(found[0][0]) if found else ""


def _note(name: str) -> str:
    return f"{_INTO} SELECT {name} WHERE {_QUIET};"


_INTO = "INSERT OR REPLACE INTO hosted_outbox (name)"


def _triggers() -> Iterable[str]:
    for table in KEPT:
        for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            old = _note(sql_name(table, "old")) if event == "UPDATE" else ""  # its name may have changed
            yield (
                f"CREATE TRIGGER IF NOT EXISTS hosted_{table}_{event.lower()} AFTER {event} ON {table} "
                f"BEGIN {old} {_note(sql_name(table, row))} END"
            )
    for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
        owners = " ".join(
            f"{_INTO} SELECT {sql_name(table, 'r')} FROM {table} r "
            f"WHERE {row}.kind = '{kind}' AND r.id = {row}.ref_id AND {_QUIET};"
            for kind, table in TABLE_OF.items()
        )
        yield (
            f"CREATE TRIGGER IF NOT EXISTS hosted_items_{event.lower()} AFTER {event} ON items "
            f"BEGIN {owners} END"
        )
    for event in ("INSERT", "UPDATE"):
        owners = " ".join(
            f"{_INTO} SELECT {sql_name(table, 'r')} FROM items i JOIN {table} r ON r.id = i.ref_id "
            f"WHERE i.id = new.id AND i.kind = '{kind}' AND {_QUIET};"
            for kind, table in TABLE_OF.items()
        )
        yield (
            f"CREATE TRIGGER IF NOT EXISTS hosted_vectors_{event.lower()} AFTER {event} ON item_vectors "
            f"BEGIN {owners} END"
        )


def _trigger_names() -> Iterable[str]:
    for statement in _triggers():
        yield statement.removeprefix("CREATE TRIGGER IF NOT EXISTS ").split(" ", 1)[0]


def _split(script: str) -> list[str]:
    return [s for s in script.split(";\n") if s.strip()]
