"""Associative recall: from a memory along its index keys to what shares them. What the paper's users missed:
"this reminds me of". Off when there is no time for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from os1_edge.remember.ranking import Candidate
from os1_edge.remember.rows import OS1, moment
from os1_edge.remember.search import said
from os1_edge.remember.stem import words
from os1_edge.remember.store import Store

COST_S = 0.02
"""Time that following the keys takes at most (200,000 memories); with less left it is not begun."""

KEYS_FOLLOWED = 8
"""Keys of all hits together that are followed, semantic before spatial; "in the morning" links nothing."""

SHARED_BY = 40
"""Memories read for one key; one that more share says little."""


def affordable(budget_s: float | None) -> bool:
    """Whether associative recall fits the time left; ``None``: no bound."""
    return budget_s is None or budget_s >= COST_S


def associated(
    store: Store, hits: Sequence[tuple[str, int]], limit: int, budget_s: float | None = None
) -> list[tuple[Candidate, str]]:
    """Memories linked to ``hits`` by index keys, each with the key, the strongest link first.

    Args:
        store: the memory.
        hits: (kind, row) of what was recalled.
        limit: how many at most.
        budget_s: time left; too little of it: none.
    """
    if limit <= 0 or not hits or not affordable(budget_s):
        return []
    known = set(hits)
    strength: dict[tuple[str, int], float] = {}
    by: dict[tuple[str, int], str] = {}
    with store.reading():
        for key in _keys(store, hits):
            sharing = [target for target in _sharing(store, key) if target not in known]
            for target in sharing:
                strength[target] = strength.get(target, 0.0) + 1 / math.log2(2 + len(sharing))
                by.setdefault(target, key)
        best = sorted(strength, key=lambda target: (-strength[target], target))
        return [(found, by[target]) for target in best[:limit] if (found := _read(store, target)) is not None]


def _keys(store: Store, hits: Sequence[tuple[str, int]]) -> list[str]:
    found: dict[str, str] = {}
    for kind, ref in hits:
        for text, dimension in store.rows(
            "SELECT text, dimension FROM index_keys WHERE target_kind = ? AND target_id = ? "
            "AND dimension <> 'temporal'",
            kind, ref,
        ):  # fmt: skip
            found.setdefault(text, dimension)
    return sorted(found, key=lambda text: found[text])[:KEYS_FOLLOWED]  # "semantic" < "spatial"


def _sharing(store: Store, key: str) -> list[tuple[str, int]]:
    phrase = " ".join(words(key))
    if not phrase:
        return []
    return [
        (kind, ref)
        for kind, ref, text in store.rows(
            "SELECT k.target_kind, k.target_id, k.text FROM items_fts f JOIN items i ON i.id = f.rowid "
            "JOIN index_keys k ON i.kind = 'key' AND k.id = i.ref_id WHERE items_fts MATCH ? LIMIT ?",
            f'"{phrase}"', SHARED_BY,
        )
        if words(text) == words(key)
    ]  # fmt: skip


def _read(store: Store, target: tuple[str, int]) -> Candidate | None:
    rows = store.rows(
        "SELECT time, text, speaker, location FROM items WHERE kind = ? AND ref_id = ? AND speaker <> ?",
        *target, OS1,
    )  # fmt: skip
    if not rows:
        return None
    time, text, speaker, location = rows[0]
    kind, ref = target
    return Candidate(kind, ref, moment(time), said(speaker, text), speaker, location)  # type: ignore[arg-type]
