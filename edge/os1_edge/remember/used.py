"""The memories that a reply rested on, kept with its turn. They go with either of the two, and come back with
both; an export leaves them out: they tell of the companion's work, and of nothing that the wearer said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from os1_edge.remember.recall import Hit
from os1_edge.remember.schema import OWNERS, TABLE_OF
from os1_edge.remember.store import Store

MOST = 32
"""Memories noted of one reply; recall gives fewer."""

_TEXT = {"turn": "heard", "event": "summary", "summary": "text", "profile": "text"}

_USED = " UNION ALL ".join(
    f"SELECT u.kind, u.ref_id, m.{_TEXT[kind]} AS text, u.reason FROM turn_used u "
    f"JOIN {TABLE_OF[kind]} m ON m.id = u.ref_id WHERE u.turn = ?1 AND u.kind = '{kind}'"
    for kind in OWNERS
)


@dataclass(frozen=True, slots=True)
class Used:
    """A memory that a reply rested on."""

    kind: str
    id: int
    text: str
    """As it stands now."""
    reason: str
    """Why it was recalled."""


def keep_used(store: Store, turn: int, hits: Iterable[Hit]) -> None:
    """Notes what the reply of the turn with id ``turn`` rested on. A memory that was forgotten since it was
    recalled is left out."""
    with store.transaction() as db:
        for hit in list(hits)[:MOST]:
            db.execute(
                f"INSERT OR IGNORE INTO turn_used SELECT ?, ?, id, ? FROM {TABLE_OF[hit.kind]} WHERE id = ?",
                (turn, hit.kind, hit.reason, hit.ref_id),
            )


def used_of(store: Store, turn: int) -> list[Used]:
    """What the reply of the turn with id ``turn`` rested on."""
    return [Used(*row) for row in store.rows(f"{_USED} ORDER BY 1, 2 LIMIT {MOST}", turn)]


def hand_on(store: Store, old: int, new: int) -> None:
    """A turn was corrected: the reply is the same, and what it rested on."""
    with store.transaction() as db:
        db.execute(
            "INSERT OR IGNORE INTO turn_used SELECT ?, kind, ref_id, reason FROM turn_used WHERE turn = ?",
            (new, old),
        )
