"""Vectors for what has none, or those of another embedder: a batch a transaction, newest first.

What is left to do stands in the file itself: a vector notes who made it (``item_vectors.embedder``). So power
may fail at any time, and the next run goes on where this one was. Until an item is done it is found by its
words; vectors of two embedders are never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

BATCH = 8
"""Items a transaction: what an interruption loses, and for how long a turn may have to wait."""

_NEWEST = 2**62


def embedding_missing(store: Store, embed: Callable[[str], Vector], batch: int = BATCH) -> Iterator[int]:
    """Makes the vectors that are missing; after each batch, how many those were. Whoever has enough stops.

    Args:
        store: the memory.
        embed: text -> embedding, by the store's embedder.
        batch: items a transaction.
    """
    below = _NEWEST
    while some := store.without_vector(batch, below):
        vectors = [embed(text) for _, text in some]
        with store.transaction():
            for (item, text), vector in zip(some, vectors, strict=True):
                if store.rows("SELECT 1 FROM items WHERE id = ? AND text = ?", item, text):
                    store.set_vector(item, vector)  # else forgotten or reworded meanwhile
        below = some[-1][0]  # the newer ones need not be looked through again
        yield len(some)
