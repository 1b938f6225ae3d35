"""The shell around `profile`: looks up what is known, asks what a statement teaches, writes it down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from os1_edge.remember import derived
from os1_edge.remember.profile import Lesson, judge
from os1_edge.remember.revise import ALIKE, take_apart, take_apart_what_ends
from os1_edge.remember.rows import WEARER, MadeBy, ProfileEntry, Source, StoredTurn
from os1_edge.remember.statements import Statement, statements
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

NEAR = 3
"""Nearest lines among which to look for the one said again: the nearest of all may be its contrary."""

Embed = Callable[[str], Vector]


def learn(
    store: Store,
    embed: Embed | None,
    statement: Statement,
    time: datetime,
    source: Source,
    turn_id: str = "",
    made_by: MadeBy = "rule",
) -> Lesson:
    """Enters what ``statement`` teaches into the profile, in one transaction; returns what was decided.

    Args:
        store: the memory.
        embed: text -> embedding; ``None``: it is made later, and only the same words are known again.
        statement: what was stated.
        time: when it was.
        source: the row that it rests on, with the very words.
        turn_id: the app's name of that turn.
        made_by: who read the statement out of the words.
    """
    vector = embed(statement.text) if embed is not None else None
    with store.transaction():
        take_apart_what_ends(store, statement, time)
        near = store.nearest_profile(vector, NEAR) if vector is not None else []
        lesson = judge(
            statement,
            time,
            store.profile(),
            near,
            made_by=made_by,
            resting_on_it=_resting_on(store, source),
        )
        new = _apply(store, lesson, time, source, turn_id, made_by, vector)
        if new is not None and any(similarity >= ALIKE for _, similarity in near):
            derived.add_job(store, "revise", "profile", new)
    return lesson


def _apply(
    store: Store,
    lesson: Lesson,
    time: datetime,
    source: Source,
    turn_id: str,
    made_by: MadeBy,
    vector: Vector | None,
) -> int | None:
    """Returns the id of the line that is new and holds now, if there is one."""
    if lesson.reinforces is not None:
        _reinforce(store, lesson, source, turn_id)
    if not lesson.text:
        for old in lesson.supersedes:
            store.end_profile(old, time, lesson.reinforces)
        return None
    entry = ProfileEntry(
        0, lesson.kind, lesson.text, lesson.confidence, time, turn_id,
        evidence=lesson.evidence, made_by=made_by,
    )  # fmt: skip
    new = store.add_profile(entry, vector, supersedes=lesson.supersedes, sources=[source])
    if lesson.evidence > 1:  # richer words for the same thing: what spoke for the old ones speaks for it
        with store.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO profile_sources SELECT ?, source_kind, source_id, time, quote "
                "FROM profile_sources WHERE profile_id = ?",
                [(new, lesson.supersedes[0])],
            )
    if lesson.was_true_until is not None:
        store.end_profile(new, lesson.was_true_until)
        return None
    return new


def _reinforce(store: Store, lesson: Lesson, source: Source, turn_id: str) -> None:
    with store.transaction() as db:
        db.execute(
            "UPDATE profile SET confidence = ?, evidence = ?, "
            "source_turn = coalesce(nullif(?, ''), source_turn) WHERE id = ?",
            (lesson.confidence, lesson.evidence, turn_id, lesson.reinforces),
        )
        db.execute(
            "INSERT OR IGNORE INTO profile_sources VALUES (?,?,?,?,?)",
            (lesson.reinforces, source.kind, source.id, source.time.isoformat(), source.quote),
        )


def _resting_on(store: Store, source: Source) -> list[int]:
    return [
        int(row[0])
        for row in store.rows(
            "SELECT profile_id FROM profile_sources WHERE source_kind = ? AND source_id = ?",
            source.kind,
            source.id,
        )
    ]


def learn_turn(store: Store, embed: Embed | None, turn: StoredTurn) -> None:
    """Enters what a turn, which stands now, states of the wearer; only the wearer's own words do."""
    if turn.speaker != WEARER:
        return
    for statement in statements(turn.heard):
        source = Source("turn", turn.id, turn.time, turn.heard)
        learn(store, embed, statement, turn.time, source, turn.turn_id)


def withdraw(store: Store, turn: int, time: datetime) -> None:
    """The wearer spoke on, and a later revision of ``turn`` counts: what rested on the earlier one alone is
    taken back, and what that had ended is true again."""
    with store.transaction() as db:
        alone = db.execute(
            "SELECT profile_id FROM profile_sources s WHERE source_kind = 'turn' AND source_id = ? "
            "AND NOT EXISTS (SELECT 1 FROM profile_sources o "
            "WHERE o.profile_id = s.profile_id AND o.source_id <> s.source_id)",
            (turn,),
        ).fetchall()
        for (entry,) in alone:
            ended = db.execute(
                "SELECT id, text, learned FROM profile WHERE superseded_by = ?", (entry,)
            ).fetchall()
            db.execute(
                "UPDATE profile SET superseded_by = NULL, valid_to = NULL WHERE superseded_by = ?", (entry,)
            )
            for (told_by,) in db.execute(
                "SELECT superseded_by FROM profile WHERE id = ? AND superseded_by IS NOT NULL "
                "AND valid_to IS NULL",
                (entry,),
            ).fetchall():
                take_apart(store, told_by, time)
            for old, text, learned in ended:
                store.add_item("profile", old, datetime.fromisoformat(learned), text, None)
            store.end_profile(entry, time)
