"""Which rows lie on the device: those of the last days, and those from the server when they are needed here.

A row leaves the device only when the server has given it back, opened, byte for byte as it stands here, and
it did not change meanwhile. What stays whatever its age: the profile with what it rests on, what work waits
for, the conversation that goes on, and what is connected with them. So whatever can be forgotten from a
moment on is here whole, unless something of that time is away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.erase import note_traces
from os1_edge.remember.hosted.content import Content, canonical, read, sql_name, write
from os1_edge.remember.hosted.owner import require_ours
from os1_edge.remember.hosted.seal import NotSealed, Seal
from os1_edge.remember.hosted.shelf import BATCH, SealedRow, Shelf
from os1_edge.remember.hosted.state import mark_away, mark_back, note, quiet
from os1_edge.remember.index import Index
from os1_edge.remember.vectors import bits_of

Tell = Callable[[str], None]

STEP = timedelta(days=7)
"""Rows leave a week at a time: what an interruption has to do again."""

_TIED = (
    "SELECT source_id FROM profile_sources WHERE source_kind = '{0}' "
    "UNION SELECT target_id FROM jobs WHERE target_kind = '{0}'"
)
_LEAVING = "SELECT id FROM temp.leaving WHERE tbl ="

_TURNS = f"""
    INSERT INTO temp.leaving SELECT 'turns', id FROM turns WHERE time < ?1
      AND id NOT IN ({_TIED.format("turn")})
      AND (session_id = '' OR session_id IS NOT (SELECT session_id FROM turns ORDER BY id DESC LIMIT 1))"""
_WHOLE = (  # conversations whole, with all revisions
    f"""DELETE FROM temp.leaving WHERE tbl = 'turns' AND id IN (
          SELECT t.id FROM turns t JOIN turns o ON o.session_id = t.session_id
          WHERE t.session_id <> '' AND o.id NOT IN ({_LEAVING} 'turns'))""",
    f"""DELETE FROM temp.leaving WHERE tbl = 'turns' AND id IN (
          SELECT id FROM turns WHERE superseded_by NOT IN ({_LEAVING} 'turns')
          UNION SELECT superseded_by FROM turns
          WHERE superseded_by IS NOT NULL AND id NOT IN ({_LEAVING} 'turns'))""",
)
_REST = (
    f"""INSERT INTO temp.leaving SELECT 'events', id FROM events WHERE end_time < ?1
        AND id NOT IN ({_TIED.format("event")})""",
    f"INSERT INTO temp.leaving SELECT 'contexts', id FROM contexts WHERE event_id IN ({_LEAVING} 'events')",
    f"""INSERT INTO temp.leaving SELECT 'summaries', id FROM summaries s WHERE end_time < ?1
        AND id NOT IN ({_TIED.format("summary")})
        AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.session_id
          AND t.id NOT IN ({_LEAVING} 'turns'))""",
    """INSERT INTO temp.leaving SELECT 'index_keys', k.id FROM index_keys k JOIN temp.leaving l
        ON l.id = k.target_id AND l.tbl = {table_of}""",
)
_TABLE_OF = "CASE {0} WHEN 'turn' THEN 'turns' WHEN 'event' THEN 'events' WHEN 'summary' THEN 'summaries' END"
_USED = f"""
    SELECT {sql_name("turn_used", "u")} FROM turn_used u WHERE turn IN ({_LEAVING} 'turns')
    OR EXISTS (SELECT 1 FROM temp.leaving l WHERE l.id = u.ref_id AND l.tbl = {_TABLE_OF.format("u.kind")})"""
_TAKEN = ("turns", "contexts", "events", "summaries")
"""Tables in the order in which their rows are deleted; triggers take keys, notes and index entries along."""

_BACK = (
    "events", "turns", "contexts", "summaries", "profile", "profile_sources", "index_keys", "turn_used",
    "jobs", "forgotten",
)  # fmt: skip
"""The order in which rows come back: what others point to first, and later revisions before earlier ones."""


def let_go(store: Index, seal: Seal, shelf: Shelf, before: datetime, tell: Tell = lambda _: None) -> int:
    """Takes rows that ended before a time out of the device's file; returns how many.

    A week of which the server does not hold every row as it stands here stays, and is sent again.

    Raises:
        NotReached: the server cannot be asked, or is another device's now; what has left is safe there, the
            rest is here.
    """
    gone = 0
    for until in _weeks(store, before):
        with store.transaction() as db:
            names = _choose(db, until)
        if not names:
            continue
        require_ours(store, seal, shelf)
        missing = [name for name, held in compare(store, seal, shelf, names).items() if not held]
        if missing:
            with store.transaction() as db:
                for name in missing:
                    note(db, name)
            continue
        gone += _take_out(store, seal, until, names)
        tell(f"{gone} rows are only on the server now")
    return gone


def _weeks(store: Index, before: datetime) -> Iterator[str]:
    ((first,),) = store.rows(
        "SELECT min(t) FROM (SELECT min(time) t FROM turns UNION ALL SELECT min(end_time) FROM events "
        "UNION ALL SELECT min(end_time) FROM summaries)"
    )
    until = datetime.fromisoformat(first) if first else before
    while until < before:
        until = min(until + STEP, before)
        yield until.isoformat()


def _choose(db: Any, until: str) -> list[str]:
    """Names of all rows that may leave, all together; temp.leaving then holds those with a number."""
    db.execute("DROP TABLE IF EXISTS temp.leaving")
    db.execute("CREATE TEMP TABLE leaving (tbl TEXT, id INTEGER, PRIMARY KEY (tbl, id)) WITHOUT ROWID")
    db.execute(_TURNS, (until,))
    while sum(db.execute(statement).rowcount for statement in _WHOLE):
        pass
    for statement in _REST:
        sql = statement.format(table_of=_TABLE_OF.format("k.target_kind"))
        db.execute(sql, (until,) if "?1" in sql else ())
    names = [
        canonical(name)
        for table in (*_TAKEN, "index_keys")
        for (name,) in db.execute(
            f"SELECT {sql_name(table, 'r')} FROM {table} r "
            f"JOIN temp.leaving l ON l.tbl = '{table}' AND l.id = r.id"
        )
    ]
    return names + [canonical(name) for (name,) in db.execute(_USED)]


def compare(store: Index, seal: Seal, shelf: Shelf, names: Sequence[str]) -> dict[str, bool]:
    """Whether the server holds each row as it stands here."""
    out = {}
    for at in range(0, len(names), BATCH):
        some = {seal.row_id(name): name for name in names[at : at + BATCH]}
        held = shelf.get(list(some))
        with store.reading() as db:
            for row_id, name in some.items():
                here = read(db, name)
                row = held.get(row_id)
                out[name] = here is not None and row is not None and _opened(seal, row) == here.encode()
    return out


def _opened(seal: Seal, row: SealedRow) -> bytes | None:
    try:
        return seal.open(row.row_id, row.shelf, row.sealed)
    except NotSealed:
        return None


def _take_out(store: Index, seal: Seal, until: str, compared: Sequence[str]) -> int:
    """Deletes what was ``compared`` and notes it as away: one transaction, nothing if anything changed."""
    with store.transaction() as db:
        names = _choose(db, until)
        waiting = {canonical(name) for (name,) in db.execute("SELECT name FROM hosted_outbox")}
        if set(compared) != set(names) or waiting & set(names):
            return 0
        rows = [row for name in names if (row := read(db, name)) is not None]
        quiet(db, True)
        mark_away(db, seal, rows)
        for table in _TAKEN:
            db.execute(f"DELETE FROM {table} WHERE id IN ({_LEAVING} '{table}')")
        quiet(db, False)
        note_traces(db)
        db.execute("DROP TABLE temp.leaving")
    return len(rows)


class Incomplete(BadMemory):
    """Rows that the server should hold are not there, or not as they were; nothing here was given up."""


def bring_home(store: Index, seal: Seal, shelf: Shelf, tell: Tell = lambda _: None) -> int:
    """Puts all that is only on the server back into the device's file; returns how many rows.

    It goes on where it was cut off: each batch is one transaction.

    Raises:
        NotReached: the server cannot be asked.
        Incomplete: some are not there, or not as they were sent; those are told, all others are home.
    """
    done, lost = 0, 0
    for table in _BACK:
        rows = store.rows(
            f"SELECT row_id, digest FROM hosted_away WHERE name LIKE '[\"{table}\",%' "
            "ORDER BY json_extract(name, '$[1]') DESC"
        )
        for at in range(0, len(rows), BATCH):
            some = rows[at : at + BATCH]
            held = shelf.get([row[0] for row in some])
            back = [c for row in some if (c := _checked(seal, held.get(row[0]), row[1])) is not None]
            home = _put_back(store, seal, back)
            lost += len(some) - home
            done += home
            tell(f"{done} rows came back")
    if done:
        with (
            store.transaction() as db
        ):  # of a table without its texts the words of what left it stay for a while
            db.execute(
                "INSERT INTO hosted_words (hosted_words) VALUES (?)", ("optimize" if lost else "delete-all",)
            )
            note_traces(db)
    if lost:
        raise Incomplete(
            f"{lost} rows, or what they rest on, are not on the server as they were sent, {done} came back; "
            "nothing was deleted there. Ask the operator for a backup of the collection, then try again; "
            "if there is none: os1 memory move --to local --as-is"
        )
    return done


def _checked(seal: Seal, row: SealedRow | None, digest: bytes) -> Content | None:
    content = _opened(seal, row) if row is not None else None
    return Content.decode(content) if content is not None and seal.digest(content) == digest else None


def _put_back(store: Index, seal: Seal, rows: Sequence[Content]) -> int:
    """Returns how many are home; a turn whose later revision is lost waits for it."""
    with store.transaction() as db:
        quiet(db, True)
        moved, home = [], []
        for row in rows:
            if _too_early(db, row):
                continue
            home.append(seal.row_id(row.name))
            if _orphan(db, row):
                moved.append(row.name)  # nobody misses it: it goes from the server too
                continue
            vector = row.item.vector if row.item is not None else b""
            if not write(db, row, bits_of(vector) if vector else b""):
                moved.append(row.name)
            elif (here := read(db, row.name)) is None or here.encode() != row.encode():
                raise Incomplete(f"{row.table}: a row did not come back as it was; it stays on the server")
        mark_back(db, home)
        quiet(db, False)
        for name in moved:
            note(db, name)
    return len(home)


def _too_early(db: Any, row: Content) -> bool:
    """Whether the revision that took a turn's place is not here; newer rows come first."""
    later = row.columns["superseded_by"] if row.table == "turns" else None
    return later is not None and db.execute("SELECT 1 FROM turns WHERE id = ?", (later,)).fetchone() is None


def _orphan(db: Any, row: Content) -> bool:
    """Whether what it belongs to was forgotten meanwhile; an event's context then is an event's no more."""
    if row.table == "turn_used":
        return db.execute("SELECT 1 FROM turns WHERE id = ?", (row.columns["turn"],)).fetchone() is None
    if row.table == "contexts" and row.columns["event_id"] is not None:
        event = row.columns["event_id"]
        if db.execute("SELECT 1 FROM events WHERE id = ?", (event,)).fetchone() is None:
            row.columns["event_id"] = None
    return False


def newest_away(store: Index) -> str:
    """The latest time of what is only on the server; "": nothing is."""
    return str(store.rows("SELECT coalesce(max(at), '') FROM hosted_away")[0][0])
