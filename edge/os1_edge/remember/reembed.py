"""Vectors again when the embedder has changed: in the background, a batch a transaction, newest first.

What is left to do stands in the file itself: a vector notes who made it (``item_vectors.embedder``). So power
may fail at any time, and the next run goes on where this one was. Until an item is done it is found by its
words; vectors of two embedders are never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

BATCH = 32
"""Items a transaction: what an interruption loses, and for how long a turn may have to wait."""


class Embeds(Protocol):
    """An embedder with a name."""

    name: str

    def embed(self, texts: Sequence[str]) -> Vector:
        """One row of norm 1 for each text."""


def outdated(store: Store) -> int:
    """How many items have no vector of the present embedder."""
    return int(store.rows(f"SELECT count(*) {_OUTDATED}")[0][0])


def reembed(store: Store, embedder: Embeds, go_on: Callable[[], bool] = lambda: True) -> int:
    """Makes the vectors that are missing or another's; returns how many.

    Args:
        store: the memory; its embedder becomes this one.
        embedder: makes the vectors.
        go_on: asked before each batch; ``False`` ends the work, the rest is for the next time.
    """
    if store.embedder() != embedder.name:
        store.set_embedder(embedder.name)
    done, below = 0, _NEWEST
    while go_on():
        newest = f"SELECT i.id, i.text {_OUTDATED} AND i.id < ? ORDER BY i.id DESC LIMIT ?"
        some = store.rows(newest, below, BATCH)
        if not some:
            break
        vectors = embedder.embed([text for _, text in some])
        with store.transaction():
            for (item, text), vector in zip(some, vectors, strict=True):
                if store.rows("SELECT 1 FROM items WHERE id = ? AND text = ?", item, text):
                    store.set_vector(item, vector)  # else forgotten or reworded meanwhile
        done += len(some)
        below = some[-1][0]
    return done


_NEWEST = 2**62
_OUTDATED = (
    "FROM items i LEFT JOIN item_vectors v ON v.id = i.id WHERE v.embedder IS NOT "
    "(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder')"
)
