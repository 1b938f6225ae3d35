"""Forgetting: what was chosen goes, with all that rested on it alone; what rests on other things too is made
again without it. Nothing of it stays in the file: not the text, not the vectors, not the words of the index.

A ``Forgetting`` is worked out first and can be shown; ``carry_out`` does it in one transaction.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.backup import backups
from os1_edge.remember.cluster import EventClusterer
from os1_edge.remember.erase import clear, note_traces
from os1_edge.remember.mend import compact
from os1_edge.remember.rows import now
from os1_edge.remember.schema import TABLES
from os1_edge.remember.sessions import extract
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window, empty, put_aside

SAME_WORDS_S = 300
"""A turn's words stand in a context too, written within this time."""

LEAST_CONFIDENCE = 0.3
"""Of a profile line that lost some of what spoke for it."""

CHUNK = 1024
"""Places that sqlite-vec sets aside at once, for each kind."""

_NOWHERE = np.zeros(1, np.float32)
"""Stands for an embedding where a threshold of -1 takes all as alike."""

SPARSE = 0.75
"""Share of used places in what is scanned below which it is written anew."""

Row = tuple[str, int]
"""Kind (turn, context, event, summary, profile) and id."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What is to be forgotten, and what that means for the rest; numbers by kind."""

    chosen: frozenset[Row]
    gone: dict[str, int]
    """Everything that goes: what was chosen, and what rested on it alone."""
    remade: dict[str, int]
    """What rests on other things too, and is made again from those."""
    reworded: frozenset[Row] = frozenset()
    """Events and summaries that say what is to be forgotten: gone with the last of their sources, else among
    ``remade``."""
    says: Callable[[str], bool] = lambda _: False
    """Whether a text says what is to be forgotten; nothing made again may, not even in the wearer's words."""

    def __bool__(self) -> bool:
        return bool(self.gone or self.remade)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten."""

    gone: dict[str, int]
    remade: dict[str, int]
    copies: tuple[str, ...]
    """Files that may still hold it: copies that this memory made, or that lie beside it."""
    left: str
    """Why traces may still be in the file; empty: there are none."""
    undo_until: datetime | None = None
    """Until when it can be undone (``trash.undo``); ``None``: it is for good."""


def foresee(
    store: Store,
    chosen: Iterable[Row],
    reworded: Iterable[Row] = (),
    says: Callable[[str], bool] = lambda _: False,
) -> Forgetting:
    """Works out what forgetting the rows ``chosen`` means, and making ``reworded`` again without what
    ``says`` tells. Nothing is changed."""
    rows, again = frozenset(chosen), frozenset(reworded)
    if rows or again:
        store.complete(rows=rows | again)
    with store.reading() as db, _marked(db, rows, _SPREAD, again):
        return Forgetting(rows, _count(db, "going"), _count(db, "remade"), again, says)


def carry_out(
    store: Store, forgetting: Forgetting, *, clear_file: bool = True, undo: Window | None = None
) -> Receipt:
    """Forgets it: all of it, or on an error nothing. It cannot be found or recalled any more.

    Args:
        store: the memory.
        forgetting: what ``foresee`` worked out.
        clear_file: also leave no trace in the file, which takes seconds in a big one; who speaks with the
            wearer may do that later (``clear``).
        undo: for how long it can be undone; it lies in the file till then (``trash``). ``None``: it is gone
            for good, and with it what earlier forgettings had put aside, which may say the same.

    What is made again has no vector until the embedder comes by (``Store.without_vector``), and its better
    words are asked for anew (``jobs``).
    """
    with store.transaction() as db, _marked(db, forgetting.chosen, _SPREAD, forgetting.reworded):
        gone, remade = _count(db, "going"), _count(db, "remade")
        again = list(db.execute("SELECT kind, id FROM remade ORDER BY kind, id"))
        if undo is None:
            empty(db)
        elif gone or remade:
            put_aside(db, undo, gone)
        _leave_note(db)
        _take_back(store, db)
        _delete(db)
        for kind, row in again:
            _REMAKE[kind](store, db, row, forgetting.says)
        if _share_used(db) < SPARSE:
            compact(db)
        note_traces(db)
    if undo is not None:
        return Receipt(gone, remade, copies_of(store), "", undo.until if gone or remade else None)
    left = clear(store) if clear_file else "traces are left in the file; run: os1 memory forget --clear"
    return Receipt(gone, remade, copies_of(store), left)


def expire(
    store: Store, rows: Iterable[Row], *, clear_file: bool = True, undo: Window | None = None
) -> dict[str, int]:
    """Lets rows go whose time is over; what was made of them stays. Returns how many, by kind. ``clear_file``
    and ``undo`` as for ``carry_out``, but earlier forgettings stay as they are."""
    with store.transaction() as db, _marked(db, frozenset(rows), _THEMSELVES):
        gone = _count(db, "going")
        if undo is not None and gone:
            put_aside(db, undo, gone)
        _delete(db)
        if _share_used(db) < SPARSE:
            compact(db)
        note_traces(db)
    if clear_file:
        clear(store)
    return gone


def copies_of(store: Store) -> tuple[str, ...]:
    """Files where older states of this memory may still be read by whoever has the key."""
    path = store.path
    ends = (".v*.bak", ".damaged-*")
    beside = [str(p) for end in ends for p in path.parent.glob(f"{glob.escape(path.name)}{end}")]
    return tuple(sorted({*beside, *backups(store)}))


@contextmanager
def _marked(
    db: Any, chosen: frozenset[Row], spread: Sequence[str], again: frozenset[Row] = frozenset()
) -> Iterator[None]:
    """Fills the temporary tables ``going`` and ``remade`` (kind, id)."""
    try:
        for table in ("going", "remade"):
            db.execute(
                f"CREATE TEMP TABLE {table} (kind TEXT, id INTEGER, PRIMARY KEY (kind, id)) WITHOUT ROWID"
            )
        db.executemany("INSERT OR IGNORE INTO going VALUES (?,?)", sorted(chosen))
        db.executemany("INSERT OR IGNORE INTO remade VALUES (?,?)", sorted(again - chosen))
        db.create_function("sooner", 1, lambda t: _shifted(t, -SAME_WORDS_S), deterministic=True)
        db.create_function("later", 1, lambda t: _shifted(t, SAME_WORDS_S), deterministic=True)
        for statement in spread:
            db.execute(statement)
        yield
    finally:
        for table in ("going", "remade"):
            db.execute(f"DROP TABLE IF EXISTS temp.{table}")


_GOING = "SELECT id FROM going WHERE kind ="
_THEMSELVES = (
    *(
        f"DELETE FROM going WHERE kind = '{kind}' AND id NOT IN (SELECT id FROM {TABLES[kind]})"
        for kind in ("turn", "context", "event", "summary", "profile")
    ),
    f"""INSERT OR IGNORE INTO going WITH RECURSIVE chain(id) AS (
          {_GOING} 'turn'
          UNION SELECT t.id FROM turns t JOIN chain c ON t.superseded_by = c.id
          UNION SELECT t.superseded_by FROM turns t JOIN chain c ON t.id = c.id
                WHERE t.superseded_by IS NOT NULL
        ) SELECT 'turn', id FROM chain""",
)
"""A row that is there, with all its revisions."""

_SPREAD = (
    *_THEMSELVES,
    # a line that tells two (`revise`) takes them along, unless it was named because of one of them
    """INSERT OR IGNORE INTO going SELECT 'profile', p.id FROM profile p
       JOIN going m ON m.kind = 'profile' AND m.id = p.superseded_by WHERE p.valid_to IS NULL
       AND NOT EXISTS (SELECT 1 FROM profile o JOIN going g ON g.kind = 'profile' AND g.id = o.id
         WHERE o.superseded_by = p.superseded_by AND o.valid_to IS NULL)""",
    # the context that was taken as it was said
    f"""INSERT OR IGNORE INTO going SELECT 'context', c.id FROM turns t JOIN contexts c
        ON c.time BETWEEN sooner(t.time) AND later(t.time) AND c.utterance = t.heard
        WHERE t.id IN ({_GOING} 'turn') AND t.heard <> ''""",
    # events and sessions: gone with the last of what they were made of, made again otherwise
    f"""INSERT OR IGNORE INTO remade SELECT DISTINCT 'event', event_id FROM contexts
        WHERE id IN ({_GOING} 'context') AND event_id IS NOT NULL AND event_id NOT IN ({_GOING} 'event')""",
    f"""INSERT OR IGNORE INTO remade SELECT DISTINCT 'summary', s.id FROM turns t
        JOIN summaries s ON s.session_id = t.session_id
        WHERE t.id IN ({_GOING} 'turn') AND s.id NOT IN ({_GOING} 'summary')""",
    f"""INSERT OR IGNORE INTO going SELECT kind, id FROM remade r WHERE kind = 'event' AND NOT EXISTS (
          SELECT 1 FROM contexts c WHERE c.event_id = r.id AND c.id NOT IN ({_GOING} 'context'))""",
    f"""INSERT OR IGNORE INTO going SELECT r.kind, r.id FROM remade r JOIN summaries s ON s.id = r.id
        WHERE r.kind = 'summary' AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.session_id
          AND t.superseded_by IS NULL AND t.id NOT IN ({_GOING} 'turn'))""",
    "DELETE FROM remade WHERE EXISTS (SELECT 1 FROM going g WHERE g.kind = remade.kind AND g.id = remade.id)",
    # the profile: what rests on nothing else goes too; a summary made again is no evidence for what it said
    """INSERT OR IGNORE INTO remade SELECT DISTINCT 'profile', s.profile_id FROM profile_sources s
       WHERE EXISTS (SELECT 1 FROM going g WHERE g.kind = s.source_kind AND g.id = s.source_id)
       OR EXISTS (SELECT 1 FROM remade r WHERE r.kind = s.source_kind AND r.id = s.source_id)""",
    f"""INSERT OR IGNORE INTO remade SELECT DISTINCT 'profile', p.id FROM turns t
        JOIN profile p ON p.source_turn = t.turn_id AND p.learned = t.time
        WHERE t.id IN ({_GOING} 'turn')
        AND NOT EXISTS (SELECT 1 FROM profile_sources s WHERE s.profile_id = p.id)""",
    """INSERT OR IGNORE INTO going SELECT kind, id FROM remade p WHERE kind = 'profile' AND NOT EXISTS (
         SELECT 1 FROM profile_sources s WHERE s.profile_id = p.id
         AND NOT EXISTS (SELECT 1 FROM going g WHERE g.kind = s.source_kind AND g.id = s.source_id)
         AND NOT EXISTS (SELECT 1 FROM remade r WHERE r.kind = s.source_kind AND r.id = s.source_id))""",
    # a line that tells two (`revise`) is no more when one of them goes; the other counts again
    """INSERT OR IGNORE INTO going SELECT DISTINCT 'profile', p.superseded_by FROM profile p
       JOIN going g ON g.kind = 'profile' AND g.id = p.id
       WHERE p.superseded_by IS NOT NULL AND p.valid_to IS NULL""",
    "DELETE FROM remade WHERE EXISTS (SELECT 1 FROM going g WHERE g.kind = remade.kind AND g.id = remade.id)",
)


def _shifted(time: str, seconds: int) -> str:
    return (datetime.fromisoformat(time) + timedelta(seconds=seconds)).isoformat()


def _count(db: Any, table: str) -> dict[str, int]:
    return dict(db.execute(f"SELECT kind, count(*) FROM temp.{table} GROUP BY kind ORDER BY kind"))


def _leave_note(db: Any) -> None:
    """So that an import does not bring it back, nor the old words of what is made again."""
    for kind in ("turn", "context", "event", "summary", "profile"):
        db.execute(
            f"INSERT OR IGNORE INTO forgotten SELECT uid, ? FROM {TABLES[kind]} WHERE id IN ({_GOING} ?)",
            (now().isoformat(), kind),
        )
    for kind in ("event", "summary"):
        db.execute(
            f"INSERT OR IGNORE INTO forgotten SELECT uid, ? FROM {TABLES[kind]} "
            "WHERE id IN (SELECT id FROM remade WHERE kind = ?)",
            (now().isoformat(), kind),
        )


def _take_back(store: Store, db: Any) -> None:
    """What a forgotten line had ended is true again, unless the line itself was what the wearer chose."""
    going = f"({_GOING} 'profile')"
    while db.execute(  # what had ended it may have been ended by what goes too
        f"""UPDATE profile SET superseded_by = (SELECT n.superseded_by FROM profile n
              WHERE n.id = profile.superseded_by),
            valid_to = CASE WHEN superseded_by IN (SELECT id FROM going WHERE kind = 'profile')
              AND (SELECT n.superseded_by FROM profile n WHERE n.id = profile.superseded_by) IS NULL
              AND EXISTS (SELECT 1 FROM profile_sources s JOIN going g
                ON g.kind = s.source_kind AND g.id = s.source_id WHERE s.profile_id = profile.superseded_by)
              THEN NULL ELSE valid_to END
            WHERE superseded_by IN {going} AND id NOT IN {going}"""
    ).rowcount:
        pass
    for row, text, learned in db.execute(
        "SELECT id, text, learned FROM profile p WHERE superseded_by IS NULL AND valid_to IS NULL "
        f"AND id NOT IN {going} "
        "AND NOT EXISTS (SELECT 1 FROM items i WHERE i.kind = 'profile' AND ref_id = p.id)"
    ).fetchall():
        store.add_item("profile", row, datetime.fromisoformat(learned), text, None)


def _delete(db: Any) -> None:
    db.execute(f"UPDATE profile SET superseded_by = NULL WHERE id IN ({_GOING} 'profile')")
    for kind in ("profile", "turn", "context", "event", "summary"):
        db.execute(f"DELETE FROM {TABLES[kind]} WHERE id IN ({_GOING} ?)", (kind,))
    db.execute(
        """DELETE FROM profile_sources WHERE EXISTS (SELECT 1 FROM remade r
             WHERE r.kind = source_kind AND r.id = source_id)"""
    )
    # why it was recalled may name the words that it loses
    db.execute(
        """DELETE FROM turn_used WHERE EXISTS (SELECT 1 FROM remade r
             WHERE r.kind = turn_used.kind AND r.id = turn_used.ref_id)"""
    )


def _remake_event(store: Store, db: Any, row: int, says: Callable[[str], bool]) -> None:
    """The event of the contexts that are left, by rule; the wearer's own words for it stay, unless they say
    what is forgotten."""
    run = EventClusterer(-1.0)
    for c in store.stored_contexts("event_id = ?", row):
        context = RealtimeContext(c.at_s, c.scene, c.utterance, c.location, c.activity)
        run.add(context, c.time, _NOWHERE, c.id)
    made = run.close()
    if made is None:
        return
    old, by = db.execute("SELECT summary, summary_by FROM events WHERE id = ?", (row,)).fetchone()
    text, by = (old, by) if by == "wearer" and not says(old) else (made.summary, "rule")
    if says(f"{text} {made.location} {made.activity}"):  # only together do the rest say it
        _forget_whole(db, "event", row)
        return
    db.execute("DELETE FROM index_keys WHERE target_kind = 'event' AND target_id = ?", (row,))
    db.execute(
        "UPDATE events SET start_time = ?, end_time = ?, location = ?, activity = ?, summary = ?, "
        "summary_by = ?, contexts = ? WHERE id = ?",
        (
            made.start.isoformat(), made.end.isoformat(), made.location, made.activity, text, by,
            made.contexts, row,
        ),
    )  # fmt: skip
    store.add_item("event", row, made.start, text, None, location=made.location)
    derived.add_job(store, "summarise", "event", row)


def _forget_whole(db: Any, kind: str, row: int) -> None:
    db.execute(
        f"INSERT OR IGNORE INTO forgotten SELECT uid, ? FROM {TABLES[kind]} WHERE id = ?",
        (now().isoformat(), row),
    )
    db.execute(f"DELETE FROM {TABLES[kind]} WHERE id = ?", (row,))


def _remake_summary(store: Store, db: Any, row: int, says: Callable[[str], bool]) -> None:
    """What the turns that are left of the session tell, by rule; nothing, where that is small talk."""
    session, old, by = db.execute(
        "SELECT session_id, text, text_by FROM summaries WHERE id = ?", (row,)
    ).fetchone()
    turns = store.turns("session_id = ?", session)
    text, by = (old, by) if by == "wearer" and not says(old) else (extract(turns), "rule")
    if not text or says(text):
        _forget_whole(db, "summary", row)
        return
    db.execute("DELETE FROM index_keys WHERE target_kind = 'summary' AND target_id = ?", (row,))
    db.execute(
        "UPDATE summaries SET text = ?, text_by = ?, turns = ?, start_time = ?, end_time = ? WHERE id = ?",
        (text, by, len(turns), turns[0].time.isoformat(), turns[-1].time.isoformat(), row),
    )
    store.add_item("summary", row, turns[0].time, text, None)
    derived.add_job(store, "summarise", "turn", turns[-1].id)


def _remake_profile(store: Store, db: Any, row: int, _says: Callable[[str], bool]) -> None:
    """A line with less to rest on is less sure: each thing that spoke for it had halved the doubt."""
    (left,) = db.execute("SELECT count(*) FROM profile_sources WHERE profile_id = ?", (row,)).fetchone()
    (evidence, confidence) = db.execute(
        "SELECT evidence, confidence FROM profile WHERE id = ?", (row,)
    ).fetchone()
    lost = max(0, evidence - left)
    db.execute(
        "UPDATE profile SET evidence = ?, confidence = ? WHERE id = ?",
        (max(1, left), max(LEAST_CONFIDENCE, round(1 - (1 - confidence) * 2**lost, 3)), row),
    )


_REMAKE = {"event": _remake_event, "summary": _remake_summary, "profile": _remake_profile}


def _share_used(db: Any) -> float:
    """Counted in sqlite-vec's own table: a page for 1,024 vectors, where ``item_vectors`` has a hundred."""
    chunks = db.execute("SELECT partition00, size, validity FROM item_bits_chunks").fetchall()
    used = sum(int.from_bytes(valid, "little").bit_count() for _, _, valid in chunks)
    places = sum(size for _, size, _ in chunks)
    kinds = len({kind for kind, _, _ in chunks})
    return 1.0 if places <= CHUNK * (kinds + 1) else used / places


def within(store: Store, since: datetime | None, until: datetime | None) -> list[Row]:
    """What happened in a stretch of time: what was said and seen in it, and what was made in it of nothing
    that is still kept. ``foresee`` adds what was made of these."""
    store.complete(since)
    first, last = since.isoformat() if since else "", until.isoformat() if until else "9999"
    rows: list[Row] = []
    for kind, begins, ends, rest in (
        ("turn", "time", "time", ""),
        ("context", "time", "time", ""),
        ("event", "start_time", "end_time", "AND NOT EXISTS (SELECT 1 FROM contexts WHERE event_id = r.id)"),
        ("summary", "start_time", "end_time", _NO_TURNS),
        ("profile", "learned", "learned", _NO_SOURCES),
    ):
        query = f"SELECT id FROM {TABLES[kind]} r WHERE {ends} >= ? AND {begins} < ? {rest}"
        rows += [(kind, row[0]) for row in store.rows(query, first, last)]
    return rows


_NO_TURNS = "AND NOT EXISTS (SELECT 1 FROM turns WHERE session_id = r.session_id)"
_NO_SOURCES = "AND NOT EXISTS (SELECT 1 FROM profile_sources WHERE profile_id = r.id)"
