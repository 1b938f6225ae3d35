"""Lays an exported memory over this one: what is new comes in, what both have is one row, and where they
differ the later knowledge counts. All of it, or nothing: a bad line is named and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from os1_edge.remember.lines import (
    LINE,
    VERSION,
    ContextLine,
    EventLine,
    ForgottenLine,
    Header,
    KeyLine,
    ProfileLine,
    SourceLine,
    SummaryLine,
    TurnLine,
    check_utf8,
)
from os1_edge.remember.mend import mend
from os1_edge.remember.reconcile import reconcile
from os1_edge.remember.rows import Kind, searched, seconds
from os1_edge.remember.schema import DIMENSIONS, TABLES
from os1_edge.remember.store import Store
from os1_edge.remember.trash import KINDS

LONGEST_LINE = 4 << 20
"""Letters of a line. The longest that an export writes is a turn; nobody speaks this long."""

PACKED = 4 + DIMENSIONS
"""Bytes of a vector (``vectors.pack``)."""


class BadImport(Exception):
    """The lines cannot be imported; nothing was changed. The message names the line."""


@dataclass(slots=True)
class Imported:
    """What an import did, by kind."""

    new: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    """Rows that were there as they are."""
    forgotten: int = 0
    """Lines left out because the wearer has forgotten them here."""
    forgotten_there: int = 0
    """Rows of this memory that were forgotten on the other device; they are still here."""
    profile_ended: int = 0
    """Profile lines of either that the other's later knowledge ended, or that said the same."""

    def count(self, what: dict[str, int], kind: str) -> None:
        """One more of ``kind``."""
        what[kind] = what.get(kind, 0) + 1


def import_lines(
    store: Store, lines: Iterable[str], name: str, tell: Callable[[int, int], None] = lambda _a, _b: None
) -> Imported:
    """Imports the lines of an export, in one transaction; holds one at a time.

    Args:
        store: the memory.
        lines: the header first.
        name: of the file, for messages.
        tell: called now and then with the lines read and their total as the header has it.

    Raises:
        BadImport: a line is not right; nothing was changed.
    """
    numbered = enumerate(lines, 1)
    header = _header(numbered, name)
    total = sum(header.rows.values())
    with store.transaction() as db:
        merge = _Merge(store, db, header)
        read = 0
        for number, text in numbered:
            if not text.strip():
                continue
            try:
                if len(text) > LONGEST_LINE:
                    raise ValueError(f"longer than {LONGEST_LINE} letters")
                check_utf8(text)
                merge.take(LINE.validate_json(text))
            except (ValueError, KeyError) as e:
                raise BadImport(f"{name}, line {number}: {_plain(e)}; nothing was imported") from None
            read += 1
            if read % 1000 == 0:
                tell(read, total)
        if read < total:
            raise BadImport(f"{name} is cut short: {read} of {total} rows; nothing was imported")
        merge.finish()
        tell(read, total)
    return merge.done


def _header(numbered: Iterable[tuple[int, str]], name: str) -> Header:
    first = next(iter(numbered), (1, ""))[1]
    try:
        check_utf8(first)
        header = Header.model_validate_json(first)
    except ValueError as e:
        raise BadImport(f"{name}, line 1: not an exported memory ({_plain(e)})") from None
    if header.os1_memory > VERSION:
        raise BadImport(f"{name}: format {header.os1_memory} of a newer release; this one knows {VERSION}")
    return header


def _plain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    return str(error.args[0]) if error.args else type(error).__name__


class _Merge:
    """The import in progress. References forward (to a successor) wait in a temporary table."""

    def __init__(self, store: Store, db: Any, header: Header) -> None:
        self._store, self._db = store, db
        self._vectors = header.vectors and header.embedder == store.embedder()
        self.done = Imported()
        self._fresh_profile: list[int] = []
        newest = "SELECT coalesce(max(id), 0) FROM"
        self._last = {k: int(db.execute(f"{newest} {TABLES[k]}").fetchone()[0]) for k in KINDS}
        """The last row of each kind before the import; ids only grow."""
        db.execute("DROP TABLE IF EXISTS temp.successors")
        db.execute("CREATE TEMP TABLE successors (kind TEXT, id INTEGER, successor BLOB)")

    def take(self, line: Any) -> None:
        """Lays one line over the memory.

        Raises:
            ValueError: it names a row that did not come before it.
        """
        uid = getattr(line, "uid", None)
        if not isinstance(line, ForgottenLine) and uid is not None and self._is_forgotten(uid):
            self.done.forgotten += 1
            return
        _TAKE[type(line)](self, line)

    def finish(self) -> None:
        """Resolves what waited, and makes one profile of two."""
        for kind in ("turn", "profile"):
            table = TABLES[kind]
            self._db.execute(
                f"UPDATE {table} SET superseded_by = (SELECT n.id FROM temp.successors s "
                f"JOIN {table} n ON n.uid = s.successor WHERE s.kind = '{kind}' AND s.id = {table}.id) "
                f"WHERE id IN (SELECT s.id FROM temp.successors s JOIN {table} n ON n.uid = s.successor "
                f"WHERE s.kind = '{kind}')"
            )
        lost = self._db.execute(
            "SELECT count(*) FROM temp.successors WHERE successor NOT IN "
            "(SELECT uid FROM turns UNION ALL SELECT uid FROM profile)"
        ).fetchone()[0]
        self._db.execute("DROP TABLE temp.successors")
        if lost:  # the wearer has forgotten what came after: the row counts again
            mend(self._db)
        self.done.profile_ended = reconcile(self._store, self._fresh_profile)

    def event(self, line: EventLine) -> None:
        row, columns = self._row("event", line.uid), _columns(line)
        if row is None:
            row = self._insert("event", columns)
        elif _better(line.summary_by, self._value("event", row, "summary_by")):
            self._update("event", row, columns)
        else:
            self._same("event", row, importance=line.importance)
            return
        start = datetime.fromisoformat(line.start_time)
        self._item("event", row, start, line.summary, line.vector, location=line.location)

    def context(self, line: ContextLine) -> None:
        row = self._row("context", line.uid)
        event = None if line.event is None else self._row("event", line.event)
        if row is None:
            self._insert("context", {**_columns(line), "event_id": event})
        elif event is not None and self._value("context", row, "event_id") is None:
            self._update("context", row, {"event_id": event})
        else:
            self.done.count(self.done.known, "context")

    def turn(self, line: TurnLine) -> None:
        row = self._row("turn", line.uid)
        gone = line.superseded_by is not None
        if row is not None:
            if gone and self._value("turn", row, "superseded_by") is None:
                self._succeed("turn", row, line.superseded_by)
                self.done.count(self.done.changed, "turn")
            else:
                self._same("turn", row, importance=line.importance)
            return
        columns = _columns(line)
        if self._db.execute(
            "SELECT 1 FROM turns WHERE origin = ? AND turn_id = ? AND revision = ?",
            (line.origin, line.turn_id, line.revision),
        ).fetchone():
            columns["origin"] = f"{line.origin}~{line.uid[:8]}"  # another turn that was numbered alike
        row = self._insert("turn", columns)
        if gone:
            self._succeed("turn", row, line.superseded_by)
            return
        time = datetime.fromisoformat(line.time)
        text = searched(line.speaker, line.heard)
        self._item("turn", row, time, text, line.vector, speaker=line.speaker, location=line.location)

    def summary(self, line: SummaryLine) -> None:
        row = self._row("summary", line.uid)
        if row is None:  # of one session there is one summary
            found = self._db.execute(
                "SELECT id FROM summaries WHERE session_id = ?", (line.session_id,)
            ).fetchone()
            row = None if found is None else int(found[0])
        if row is None:
            row = self._insert("summary", _columns(line))
        elif _better(line.text_by, self._value("summary", row, "text_by")):
            self._update("summary", row, {k: v for k, v in _columns(line).items() if k != "uid"})
        else:
            self._same("summary", row, importance=line.importance)
            return
        self._item("summary", row, datetime.fromisoformat(line.start_time), line.text, line.vector)

    def profile(self, line: ProfileLine) -> None:
        row = self._row("profile", line.uid)
        gone = line.superseded_by is not None or line.valid_to is not None
        if row is None:
            row = self._insert("profile", _columns(line))
            self._fresh_profile.append(row)
            if not gone:
                self._item("profile", row, datetime.fromisoformat(line.learned), line.text, line.vector)
        else:
            self._join_profile(row, line)
        if line.superseded_by is not None:
            self._succeed("profile", row, line.superseded_by)

    def _join_profile(self, row: int, line: ProfileLine) -> None:
        """The same line on both devices: ended on either, it is over, at the earlier time; else the surer."""
        here = self._db.execute(
            "SELECT valid_to, confidence, evidence FROM profile WHERE id = ?", (row,)
        ).fetchone()
        ends = [t for t in (here[0], line.valid_to) if t is not None]
        joined = (min(ends) if ends else None, max(here[1], line.confidence), max(here[2], line.evidence))
        if joined == tuple(here):
            self.done.count(self.done.known, "profile")
            return
        self._update("profile", row, dict(zip(("valid_to", "confidence", "evidence"), joined, strict=True)))
        if ends:
            self._db.execute("DELETE FROM items WHERE kind = 'profile' AND ref_id = ?", (row,))

    def key(self, line: KeyLine) -> None:
        target = self._row(line.target_kind, line.target)
        if target is None or self._is_forgotten(line.target):
            return self._unknown(line.target)
        found = self._db.execute(
            "INSERT OR IGNORE INTO index_keys (target_kind, target_id, dimension, text) VALUES (?,?,?,?) "
            "RETURNING id",
            (line.target_kind, target, line.dimension, line.text),
        ).fetchone()
        if found is None:
            self.done.count(self.done.known, "key")
            return None
        self.done.count(self.done.new, "key")
        of = self._db.execute(
            "SELECT time, location FROM items WHERE kind = ? AND ref_id = ?", (line.target_kind, target)
        ).fetchone()
        time, location = of or (0.0, "")
        self._item_at("key", int(found[0]), time, line.text, line.vector, location=location)
        return None

    def source(self, line: SourceLine) -> None:
        entry, source = self._row("profile", line.profile), self._row(line.source_kind, line.source)
        if entry is None or source is None or self._is_forgotten(line.source):
            return self._unknown(line.profile if entry is None else line.source)
        added = self._db.execute(
            "INSERT OR IGNORE INTO profile_sources VALUES (?,?,?,?,?)",
            (entry, line.source_kind, source, line.time, line.quote),
        ).rowcount
        self.done.count(self.done.new if added else self.done.known, "source")
        return None

    def forgotten_line(self, line: ForgottenLine) -> None:
        # A row that came in these very lines was made again there: its old words are not to come either.
        for kind, last in self._last.items():
            row = self._row(kind, line.uid)
            if row is not None and row <= last:
                self.done.forgotten_there += 1
                return
        self._db.execute("INSERT OR IGNORE INTO forgotten VALUES (?,?)", (bytes.fromhex(line.uid), line.time))

    def _unknown(self, uid: str) -> None:
        if self._is_forgotten(uid):
            self.done.forgotten += 1
            return
        raise ValueError(f"it names a row {uid[:8]}… that did not come before it")

    def _is_forgotten(self, uid: str) -> bool:
        query = "SELECT 1 FROM forgotten WHERE uid = ?"
        return self._db.execute(query, (bytes.fromhex(uid),)).fetchone() is not None

    def _row(self, kind: str, uid: str) -> int | None:
        query = f"SELECT id FROM {TABLES[kind]} WHERE uid = ?"
        found = self._db.execute(query, (bytes.fromhex(uid),)).fetchone()
        return None if found is None else int(found[0])

    def _value(self, kind: str, row: int, column: str) -> Any:
        query = f"SELECT {column} FROM {TABLES[kind]} WHERE id = ?"
        return self._db.execute(query, (row,)).fetchone()[0]

    def _insert(self, kind: str, columns: dict[str, Any]) -> int:
        marks = ",".join("?" * len(columns))
        row = self._db.execute(
            f"INSERT INTO {TABLES[kind]} ({','.join(columns)}) VALUES ({marks})", tuple(columns.values())
        ).lastrowid
        self.done.count(self.done.new, kind)
        return int(row)

    def _update(self, kind: str, row: int, columns: dict[str, Any]) -> None:
        marks = ",".join(f"{name} = ?" for name in columns)
        self._db.execute(f"UPDATE {TABLES[kind]} SET {marks} WHERE id = ?", (*columns.values(), row))
        self.done.count(self.done.changed, kind)

    def _same(self, kind: str, row: int, importance: int | None) -> None:
        if importance is not None and self._value(kind, row, "importance") is None:
            self._update(kind, row, {"importance": importance})
        else:
            self.done.count(self.done.known, kind)

    def _succeed(self, kind: str, row: int, successor: str | None) -> None:
        assert successor is not None
        self._db.execute("INSERT INTO temp.successors VALUES (?,?,?)", (kind, row, bytes.fromhex(successor)))
        self._db.execute("DELETE FROM items WHERE kind = ? AND ref_id = ?", (kind, row))

    def _item(
        self,
        kind: Kind,
        row: int,
        time: datetime,
        text: str,
        vector: bytes | None,
        *,
        speaker: str = "",
        location: str = "",
    ) -> None:
        self._item_at(kind, row, seconds(time), text, vector, speaker=speaker, location=location)

    def _item_at(
        self,
        kind: str,
        row: int,
        at: float,
        text: str,
        vector: bytes | None,
        *,
        speaker: str = "",
        location: str = "",
    ) -> None:
        self._db.execute("DELETE FROM items WHERE kind = ? AND ref_id = ?", (kind, row))
        item = self._db.execute(
            "INSERT INTO items (kind, ref_id, time, speaker, location, text) VALUES (?,?,?,?,?,?)",
            (kind, row, at, speaker, location, text),
        ).lastrowid
        if vector is not None and len(vector) != PACKED:
            raise ValueError(f"vector: {len(vector)} bytes instead of {PACKED}")
        if vector is not None and self._vectors:
            self._store.set_packed(item, vector)


def _columns(line: Any) -> dict[str, Any]:
    left_out = {"row", "vector", "event", "superseded_by"}
    columns = line.model_dump(exclude=left_out)
    columns["uid"] = bytes.fromhex(columns["uid"])
    return dict(columns)


_RANK = {"rule": 0, "llm": 1, "wearer": 2}


def _better(there: str, here: str) -> bool:
    return _RANK[there] > _RANK[here]


_TAKE: dict[type, Callable[[_Merge, Any], None]] = {
    EventLine: _Merge.event,
    ContextLine: _Merge.context,
    TurnLine: _Merge.turn,
    SummaryLine: _Merge.summary,
    ProfileLine: _Merge.profile,
    KeyLine: _Merge.key,
    SourceLine: _Merge.source,
    ForgottenLine: _Merge.forgotten_line,
}
