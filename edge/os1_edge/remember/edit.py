"""The wearer's corrections: the new words take the place of the old ones, which stay as history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from os1_edge.remember import derived
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.forget import Row
from os1_edge.remember.learning import learn_turn, withdraw
from os1_edge.remember.rows import readable, searched
from os1_edge.remember.store import Store
from os1_edge.remember.used import hand_on
from os1_edge.remember.vectors import Vector

SURE = 1.0
"""Confidence of a profile line that the wearer wrote."""


def edit(store: Store, row: Row, text: str, now: datetime, embed: Callable[[str], Vector] | None) -> Row:
    """Puts ``text`` in place of what was heard, or of the line; returns the row that counts from now on.

    A turn gets another revision, which teaches what it says; a profile line a successor. An event or a
    summary, made of other rows, is rewritten, and no rule or model writes over the wearer's words.

    Args:
        store: the memory.
        row: a turn, event, summary or profile line as it stands.
        text: the wearer's words.
        now: when.
        embed: text -> embedding; without it, it is made later.

    Raises:
        BadMemory: there is no such row, or it is history already.
        ValueError: there is nothing in ``text``, or the row is a context.
    """
    text = " ".join(readable(text).split())
    if not text:
        raise ValueError("there are no words to put in its place; to take it out, delete it")
    kind, number = row
    if kind not in _EDITS:
        raise ValueError(f"a {kind} is kept as it was seen; it can be deleted")
    with store.transaction():
        return kind, _EDITS[kind](store, number, text, now, embed)


Embed = Callable[[str], Vector] | None


def _turn(store: Store, number: int, text: str, now: datetime, embed: Embed) -> int:
    found = store.turns("t.id = ?", number)
    if not found:
        raise BadMemory(f"there is no turn:{number} in the memory, or it was corrected before")
    turn = found[0]
    (origin,) = store.rows("SELECT origin FROM turns WHERE id = ?", number)[0]
    vector = embed(searched(turn.speaker, text)) if embed else None
    new = store.add_turn(
        turn.turn_id, turn.revision + 1, turn.time, text, turn.reply, turn.location, vector,
        speaker=turn.speaker, session_id=turn.session_id, origin=origin,
    )  # fmt: skip
    hand_on(store, number, new)
    with store.transaction() as db:
        db.execute("UPDATE turns SET importance = ? WHERE id = ?", (turn.importance, new))
        if turn.session_id:
            derived.add_job(store, "summarise", "turn", new)
    # What rested on the wrong words alone goes; what the right ones state is learned.
    withdraw(store, number, now)
    learn_turn(store, embed, *store.turns("t.id = ?", new))
    return new


def _profile(store: Store, number: int, text: str, now: datetime, embed: Embed) -> int:
    found = [entry for entry in store.profile() if entry.id == number]
    if not found:
        raise BadMemory(f"there is no profile:{number} that holds now in the memory")
    old = found[0]
    new = replace(
        old, text=text, confidence=SURE, learned=now, valid_from=old.valid_from, evidence=1, made_by="wearer"
    )
    return store.add_profile(new, embed(text) if embed else None, [number], store.sources(number))


def _event(store: Store, number: int, text: str, _now: datetime, embed: Embed) -> int:
    found = derived.events(store, "id = ?", number)
    if not found:
        raise BadMemory(f"there is no event:{number} in the memory")
    new = replace(found[0], summary=text, summary_by="wearer")
    derived.change_event(store, new, embed(text) if embed else None)
    _drop_keys(store, "event", number)
    return number


def _summary(store: Store, number: int, text: str, _now: datetime, embed: Embed) -> int:
    found = derived.summaries(store, "id = ?", number)
    if not found:
        raise BadMemory(f"there is no summary:{number} in the memory")
    new = replace(found[0], text=text, text_by="wearer")
    derived.put_summary(store, new, embed(text) if embed else None)
    _drop_keys(store, "summary", number)
    return number


def _drop_keys(store: Store, kind: str, number: int) -> None:
    """The old phrases would still find it; new ones are asked for."""
    with store.transaction() as db:
        db.execute("DELETE FROM index_keys WHERE target_kind = ? AND target_id = ?", (kind, number))
        derived.add_job(store, "keys", kind, number)


_EDITS = {"turn": _turn, "profile": _profile, "event": _event, "summary": _summary}
