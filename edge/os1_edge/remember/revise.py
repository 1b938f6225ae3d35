"""A new line of the profile and the old one nearest to it, made one where a language model sees that they are
(paper 3.2.4: the nearest above a threshold is revised together with the proposal).

The paper lets the model's text replace the old line. Here the two lines stay beneath what was made of them,
true as they were: when the wearer takes one of them back, or forgets what it rests on, the other counts
again. A model's text stands only if it says all that both say and nothing else; else both stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from os1_edge.remember.contradict import ends
from os1_edge.remember.habits import SEEN
from os1_edge.remember.profile import content, denied, is_line
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.statements import Statement
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector, unpack

ALIKE = 0.75
"""Cosine similarity from which two lines are shown to a model: that of "likes tea" and "drinks tea every
morning" is 0.80, of "likes tea" and "likes coffee" 0.70."""

Embed = Callable[[str], Vector]

Verdict = Literal["both", "one", "over"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a model says of two lines."""

    verdict: Verdict
    """Each tells a thing of its own; they tell one, as ``text``; the new one shows that the old is over."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Revision:
    """What becomes of the two lines, and why."""

    reason: str
    text: str = ""
    """The one line that tells both; empty: none."""
    over: bool = False
    """Whether the old line ends."""


def judge_revision(new: ProfileEntry, old: ProfileEntry, proposal: Proposal | None) -> Revision:
    """Decides what becomes of two lines of a kind. Without a proposal, or with one that will not do, both
    stay, as the plain rules had decided when the new one was learned."""
    if proposal is None or proposal.verdict == "both":
        return Revision("both stay")
    if proposal.verdict == "over":
        if old.made_by != "llm":
            return Revision("what the wearer stated ends only by what the wearer states")
        return Revision("the new line shows that it is over", over=True)
    if why := _unfit(proposal.text, new, old):
        return Revision(why)
    return Revision("they are one thing", proposal.text)


def _unfit(text: str, new: ProfileEntry, old: ProfileEntry) -> str | None:
    if not is_line(text):
        return "it is no single statement about the wearer"
    said = [content(line) for line in (new.text, old.text)]
    if not content(text) >= said[0] | said[1]:
        return "it leaves out what was said"
    if content(text) - said[0] - said[1]:
        return "it says more than was said"
    if len({bool(re.search(r"\b(?:not|no|never)\b", line)) for line in (text, new.text, old.text)}) > 1:
        return "one of them denies what the other says"
    return None


def alike(store: Store, row: int) -> tuple[ProfileEntry, ProfileEntry] | None:
    """The line ``row`` and the one nearest to it that a model may look at together; ``None``: there is none.

    Not of health: each allergy is a line of its own. Not the wearer's own wording, nor a habit that was only
    seen, which is known by its words."""
    lines = {entry.id: entry for entry in store.profile()}
    new = lines.get(row)
    packed = store.rows(
        "SELECT v.vector FROM items i JOIN item_vectors v ON v.id = i.id WHERE i.kind = 'profile' "
        "AND i.ref_id = ? AND v.embedder = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder')",
        row,
    )
    if new is None or not packed or new.kind == "health" or new.made_by == "wearer":
        return None
    vector = np.asarray(unpack([packed[0][0]])[0], np.float32)
    for old, similarity in store.nearest_profile(vector, 4):
        if similarity < ALIKE:
            return None
        fits = old.kind == new.kind and old.made_by != "wearer" and not old.text.startswith(SEEN)
        if old.id != row and fits:
            return (new, old) if old.id < row else None
    return None


def apply_revision(
    store: Store, embed: Embed, pair: tuple[ProfileEntry, ProfileEntry], revision: Revision
) -> None:
    """Writes down what was decided, in one transaction; kind and confidence are kept, and every word that
    either line rests on."""
    new, old = pair
    with store.transaction() as db:
        if revision.over:
            store.end_profile(old.id, new.valid_from or new.learned, new.id)
        if not revision.text:
            return
        one = next((e for e in pair if e.text.casefold() == revision.text.casefold()), None)
        if one is None:
            entry = ProfileEntry(
                0, old.kind, revision.text, max(new.confidence, old.confidence), new.learned, new.source_turn,
                valid_from=min(e.valid_from or e.learned for e in pair),
                evidence=new.evidence + old.evidence,
                made_by="llm" if "llm" in (new.made_by, old.made_by) else "rule",
            )  # fmt: skip
            row = store.add_profile(entry, embed(revision.text), sources=[])
        else:
            row = one.id
            db.execute(
                "UPDATE profile SET confidence = ?, evidence = ? WHERE id = ?",
                (max(new.confidence, old.confidence), new.evidence + old.evidence, row),
            )
        for entry in pair:
            if entry.id != row:
                _lay_beneath(store, entry.id, row)


def _lay_beneath(store: Store, below: int, above: int) -> None:
    """The line ``below`` is told by ``above`` from now on; it is not over, so it has no ``valid_to``."""
    with store.transaction() as db:
        db.execute("UPDATE profile SET superseded_by = ? WHERE id = ?", (above, below))
        db.execute("DELETE FROM items WHERE kind = 'profile' AND ref_id = ?", (below,))
        db.execute(
            "INSERT OR IGNORE INTO profile_sources SELECT ?, source_kind, source_id, time, quote "
            "FROM profile_sources WHERE profile_id = ?",
            (above, below),
        )


def beneath(store: Store, row: int) -> list[ProfileEntry]:
    """The lines that ``row`` tells."""
    below = {
        number
        for (number,) in store.rows(
            "SELECT id FROM profile WHERE superseded_by = ? AND valid_to IS NULL", row
        )
    }
    return [entry for entry in store.profile_history() if entry.id in below] if below else []


def take_apart(store: Store, row: int, time: datetime) -> None:
    """The lines that ``row`` tells count again by themselves, and it is history."""
    with store.transaction() as db:
        for entry in beneath(store, row):
            db.execute("UPDATE profile SET superseded_by = NULL WHERE id = ?", (entry.id,))
            store.add_item("profile", entry.id, entry.learned, entry.text, None)
        store.end_profile(row, time)


def take_apart_what_ends(store: Store, statement: Statement, time: datetime) -> None:
    """Where ``statement`` ends one of the lines that another tells, that one is taken apart, so that the rest
    of it stays."""
    told = {row for (row,) in store.rows(_TOLD)}
    for row in sorted(told):
        if any(_ended(statement, entry) for entry in beneath(store, row)):
            take_apart(store, row, time)


def _ended(statement: Statement, entry: ProfileEntry) -> bool:
    over = denied(statement, entry.text) or ends(statement.text, entry.text, statement.words)
    return over is not None


_TOLD = (
    "SELECT DISTINCT p.superseded_by FROM profile p JOIN profile n ON n.id = p.superseded_by "
    "WHERE p.superseded_by IS NOT NULL AND p.valid_to IS NULL "
    "AND n.superseded_by IS NULL AND n.valid_to IS NULL"
)
