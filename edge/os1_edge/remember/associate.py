"""Associative recall: from a memory along its index keys to what shares them. What the paper's users missed:
"this reminds me of". Off when there is no time for it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from os1_edge.remember.ranking import Candidate
from os1_edge.remember.rows import OS1, Kind, moment
from os1_edge.remember.search import said
from os1_edge.remember.stem import stem, words
from os1_edge.remember.store import Store

COST_S = 0.02
"""Time that following the keys takes at most (200,000 memories); with less left it is not begun."""

KEYS_FOLLOWED = 8
"""Keys of all hits together that are followed, semantic before spatial; "in the morning" links nothing."""

SHARED_BY = 40
"""Memories read for one key, the newest; one that more share says little."""


@dataclass(frozen=True, slots=True)
class Link:
    """A memory that shares a key with one that was recalled."""

    memory: Candidate
    key: str
    to: tuple[Kind, int]
    """The one that was recalled: kind and row."""


def affordable(budget_s: float | None) -> bool:
    """Whether associative recall fits the time left; ``None``: no bound."""
    return budget_s is None or budget_s >= COST_S


def associated(
    store: Store,
    hits: Sequence[tuple[Kind, int]],
    limit: int,
    budget_s: float | None = None,
    *,
    derived: bool = True,
    among: Collection[tuple[Kind, int]] | None = None,
) -> list[Link]:
    """Memories linked to ``hits`` by index keys, the strongest link first.

    Args:
        store: the memory.
        hits: (kind, row) of what was recalled.
        limit: how many at most.
        budget_s: time left; too little of it: none.
        derived: whether events and summaries may be among them; else only turns and profile lines.
        among: only these, in this order; ``None``: all there are.
    """
    if limit <= 0 or not hits or (among is not None and not among) or not affordable(budget_s):
        return []
    known = set(hits)
    strength: dict[tuple[Kind, int], float] = {}
    by: dict[tuple[Kind, int], tuple[str, tuple[Kind, int]]] = {}
    with store.reading():
        for key, source in _keys(store, hits):
            sharing = [
                target
                for target in _sharing(store, key)
                if target not in known and (derived or target[0] in ("turn", "profile"))
            ]
            for target in sharing:
                strength[target] = strength.get(target, 0.0) + 1 / math.log2(2 + len(sharing))
                by.setdefault(target, (key, source))
        if among is None:
            best = sorted(strength, key=lambda target: (-strength[target], target))[:limit]
        else:
            best = [target for target in among if target in strength][:limit]
        return [Link(found, *by[target]) for target in best if (found := _read(store, target)) is not None]


def _keys(store: Store, hits: Iterable[tuple[Kind, int]]) -> list[tuple[str, tuple[Kind, int]]]:
    """The keys of ``hits``, each with its hit; a turn's are those of its conversation that it says."""
    found: dict[str, tuple[str, tuple[Kind, int]]] = {}
    for kind, ref in hits:
        for text, dimension in store.rows(
            "SELECT text, dimension FROM index_keys WHERE target_kind = ? AND target_id = ?", kind, ref
        ):
            found.setdefault(text, (dimension, (kind, ref)))
        if kind == "turn":
            for text, dimension, heard in store.rows(
                "SELECT k.text, k.dimension, t.heard FROM turns t JOIN summaries s USING (session_id) "
                "JOIN index_keys k ON k.target_kind = 'summary' AND k.target_id = s.id WHERE t.id = ?",
                ref,
            ):
                if _stems(text) <= _stems(heard):
                    found.setdefault(text, (dimension, (kind, ref)))
    linking = [(dimension, text, hit) for text, (dimension, hit) in found.items() if dimension != "temporal"]
    linking.sort(key=lambda key: key[0])  # "semantic" < "spatial"
    return [(text, hit) for _, text, hit in linking[:KEYS_FOLLOWED]]


def _sharing(store: Store, key: str) -> list[tuple[Kind, int]]:
    """What has ``key`` for a key, and the turns and profile lines that say it."""
    phrase = " ".join(words(key))
    if not phrase:
        return []
    return list(
        dict.fromkeys(
            (target, row) if kind == "key" else (kind, ref)
            for kind, ref, text, target, row in store.rows(
                "SELECT i.kind, i.ref_id, i.text, k.target_kind, k.target_id FROM items_fts f "
                "JOIN items i ON i.id = f.rowid LEFT JOIN index_keys k ON i.kind = 'key' AND k.id = i.ref_id "
                "WHERE items_fts MATCH ? ORDER BY f.rowid DESC LIMIT ?",
                f'"{phrase}"', SHARED_BY,
            )
            if kind in ("turn", "profile") or (kind == "key" and words(text) == words(key))
        )
    )  # fmt: skip


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text)}


def _read(store: Store, target: tuple[Kind, int]) -> Candidate | None:
    rows = store.rows(
        "SELECT time, text, speaker, location FROM items WHERE kind = ? AND ref_id = ? AND speaker <> ?",
        *target, OS1,
    )  # fmt: skip
    if not rows:
        return None
    time, text, speaker, location = rows[0]
    return Candidate(*target, moment(time), said(speaker, text), speaker, location)
