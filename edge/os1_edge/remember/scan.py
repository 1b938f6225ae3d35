"""The nearest by signs: all sign bits of a kind against those of a vector.

sqlite-vec keeps them in chunks of 1,024 (its ARCHITECTURE.md). Its own k-nearest search picks k out of each
chunk by k passes over it: for k = 200 that costs more than the distances do. Here the chunks are read as they
lie, and one selection is made over all: the same answer in a quarter of the time (261,000 rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNKS = (
    "SELECT c.validity, c.rowids, v.vectors FROM item_bits_chunks c "
    "JOIN item_bits_vector_chunks00 v ON v.rowid = c.chunk_id WHERE c.partition00 = ?"
)

CHUNKS_AT_ONCE = 32
"""Of 1,024 signs of 48 bytes: 1.5 MB, enough for numpy to be quick and little enough for a small device."""

_ONES = np.array([bin(n).count("1") for n in range(1 << 16)], np.uint8)
"""Bits set in a 16-bit word; for numpy before 2.0."""


def nearest_signs(db: Any, kind: str, signs: bytes, k: int) -> NDArray[np.int64]:
    """The item ids of one kind with the fewest sign bits unlike ``signs``, nearest first, at most ``k``.

    Args:
        db: an open memory.
        kind: of the items.
        signs: ``vectors.bits`` of the vector looked for.
        k: how many.
    """
    wanted = np.frombuffer(signs, np.uint64)
    ids: list[NDArray[np.int64]] = []
    distances: list[NDArray[np.uint16]] = []
    cursor = db.execute(_CHUNKS, (kind,))
    while rows := cursor.fetchmany(CHUNKS_AT_ONCE):
        valid, rowids, bits = (b"".join(column) for column in zip(*rows, strict=True))
        used = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little").view(np.bool_)
        chunk_ids = np.frombuffer(rowids, np.int64)
        unlike = _distance(np.frombuffer(bits, np.uint64).reshape(len(chunk_ids), -1), wanted)
        ids.append(chunk_ids[used])
        distances.append(unlike[used])
    if not ids:
        return np.zeros(0, np.int64)
    every, unlike = np.concatenate(ids), np.concatenate(distances)
    if len(every) > k:
        best = np.argpartition(unlike, k - 1)[:k]
        every, unlike = every[best], unlike[best]
    return every[np.argsort(unlike, kind="stable")]


def _distance(bits: NDArray[np.uint64], signs: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Hamming distance of each row of ``bits``, shape (n, words), to ``signs``, shape (words,)."""
    unlike = np.zeros(len(bits), np.uint16)
    for word in range(bits.shape[1]):
        differ = bits[:, word] ^ signs[word]
        if hasattr(np, "bitwise_count"):
            unlike += np.bitwise_count(differ)
        else:
            unlike += _ONES[differ.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.uint16)
    return unlike
