"""What of the memory to give to the reply: ranked, with the reason for each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from os1_edge.remember.profile import propose
from os1_edge.remember.store import ProfileEntry, StoredTurn

RECENCY_WEIGHT = 0.05
"""Recency only breaks ties: at full weight it drowns similarity (see docs/decisions/0004)."""

RECENCY_HALF_LIFE_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class RecallRules:
    """How much to recall."""

    limit: int = 3
    """Memories at most."""
    min_similarity: float = 0.25
    """Cosine similarity below which a memory has nothing to do with what was said."""
    candidates: int = 24
    """Nearest neighbours to rank."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that was recalled."""

    kind: Literal["turn", "profile"]
    text: str
    time: datetime
    location: str
    score: float
    reason: str


def rank(
    turns: Sequence[tuple[StoredTurn, float]],
    profile: Sequence[tuple[ProfileEntry, float]],
    now: datetime,
    in_view: Collection[str],
    rules: RecallRules,
) -> list[Hit]:
    """The best memories first, at most ``rules.limit``. Questions are left out: they hold no fact, and the
    same question asked before is always the nearest.

    Args:
        turns: neighbours with their cosine similarity.
        profile: the same.
        now: the wearer's time.
        in_view: texts that the prompt already holds; they are not given twice, nor is a profile entry
            beside the turn that it came from.
        rules: how much to recall.
    """
    said = {text.casefold() for text in in_view}
    stated = {line.text.casefold() for text in in_view for line in propose(text)}
    sources = {turn.turn_id for turn, _ in turns if turn.heard.casefold() in said}
    turns = [
        (turn, similarity)
        for turn, similarity in turns
        if similarity >= rules.min_similarity
        and turn.heard.casefold() not in said
        and not turn.heard.rstrip().endswith("?")
    ]
    sources |= {turn.turn_id for turn, _ in turns}
    hits = [
        *(_hit("turn", turn.heard, turn.time, turn.location, similarity, now) for turn, similarity in turns),
        *(
            _hit("profile", entry.text, entry.learned, "", similarity, now)
            for entry, similarity in profile
            if similarity >= rules.min_similarity
            and entry.source_turn not in sources
            and entry.text.casefold() not in stated  # its source may be too far off to be among the turns
        ),
    ]
    best: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda h: (-h.score, h.time, h.text)):
        best.setdefault(hit.text.casefold(), hit)
    return list(best.values())[: rules.limit]


def _hit(
    kind: Literal["turn", "profile"],
    text: str,
    time: datetime,
    location: str,
    similarity: float,
    now: datetime,
) -> Hit:
    days = max(0.0, (now - time).total_seconds() / 86_400)
    recency = 0.5 ** (days / RECENCY_HALF_LIFE_DAYS)
    return Hit(
        kind=kind,
        text=text,
        time=time,
        location=location,
        score=round(similarity + RECENCY_WEIGHT * recency, 4),
        reason=f"similarity {similarity:.2f}, {days:.0f} days old",
    )
