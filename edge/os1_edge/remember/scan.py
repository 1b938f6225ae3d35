"""The nearest by signs, out of RAM: the sign bits of all vectors of a memory, 48 bytes each.

Scanning them in the file means decrypting 12 MB a question (200,000 memories: 15 ms; here 3 ms). The file
stays the truth: what this connection writes is read again by its id before the next scan, and a commit of
another connection (``PRAGMA data_version``) has everything read again, which takes 0.1 s.

Signs alone put near-equals in a poor order, so the question keeps its values (asymmetric distance: Gordo and
Perronnin, 2011): bits unlike choose a few times as many as are wanted, the sum of the question's values
with the memories' signs the best of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.vectors import Vector, bits, bits_of

_CHUNKS = (
    "SELECT c.partition00, c.validity, c.rowids, v.vectors FROM item_bits_chunks c "
    "JOIN item_bits_vector_chunks00 v ON v.rowid = c.chunk_id"
)
"""sqlite-vec's own tables (its ARCHITECTURE.md): 1,024 vectors a chunk; ``validity`` marks those in use."""

WORDS = DIMENSIONS // 64

AT_ONCE = 16_384
"""Vectors compared at once: each step's 128 KiB stay in a small processor's cache."""

ROUGH = 4
"""Times as many chosen by bits unlike as are wanted: with three no fewer of the nearest are found."""

MOST_TOUCHED = 20_000
"""Vectors written between two questions above which all are read anew: that is quicker then."""

_ONES = np.array([bin(n).count("1") for n in range(1 << 16)], np.uint8)
"""Bits set in a 16-bit word; for numpy before 2.0."""


class Signs:
    """The sign bits of one open memory. For whoever holds the store's lock."""

    def __init__(self, db: Any) -> None:
        """``db``: an open memory; a temporary trigger on it tells which vectors it writes."""
        self._db = db
        self._version = -1
        self._kinds: dict[str, _Bank] | None = None
        self._touched: set[int] = set()
        db.create_function("vector_touched", 1, self._touch)
        for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            db.execute(
                f"CREATE TEMP TRIGGER vector_{event.lower()} AFTER {event} ON main.item_vectors "
                f"BEGIN SELECT vector_touched({row}.id); END"
            )

    def forget(self) -> None:
        """What was read may not be true: a transaction was rolled back. The next scan reads all anew."""
        self._kinds = None
        self._touched.clear()

    def still_true(self, unchanged: Callable[[], bool]) -> None:
        """The file was written anew by another connection. ``unchanged``: whether that changed no row."""
        version = self._committed()
        if unchanged():
            self._version = version

    def _committed(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def nearest(self, kind: str, vector: Vector, k: int) -> list[int]:
        """The ids of the items of ``kind`` nearest to ``vector`` as far as signs tell, nearest first, and of
        those that they cannot tell apart the newest.

        Args:
            kind: of the items.
            vector: shape (384,), float32.
            k: how many at most.
        """
        bank = self._fresh().get(kind)
        return bank.nearest(vector, k) if bank is not None else []

    def _touch(self, item: int) -> None:
        if self._kinds is None:
            return
        self._touched.add(item)
        if len(self._touched) > MOST_TOUCHED:
            self.forget()

    def _fresh(self) -> dict[str, _Bank]:
        version = self._committed()
        if self._kinds is None or version != self._version:
            self._touched.clear()
            self._version, self._kinds = version, self._read_all()
        elif self._touched:
            self._read_again(self._kinds)
        return self._kinds

    def _read_all(self) -> dict[str, _Bank]:
        kinds = {
            str(kind): _Bank(int(room))
            for kind, room in self._db.execute(
                "SELECT partition00, sum(size) FROM item_bits_chunks GROUP BY partition00"
            )
        }
        for kind, valid, rowids, vectors in self._db.execute(_CHUNKS):
            used = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little").view(np.bool_)
            signs = np.frombuffer(vectors, np.uint64).reshape(-1, WORDS)
            kinds[kind].add(np.frombuffer(rowids, np.int64)[used], signs[used])
        return kinds

    def _read_again(self, kinds: dict[str, _Bank]) -> None:
        touched = np.fromiter(self._touched, np.int64, len(self._touched))
        for bank in kinds.values():
            bank.drop(touched)
        found: dict[str, list[tuple[int, bytes]]] = {}
        for item, kind, vector in self._db.execute(
            "SELECT v.id, i.kind, v.vector FROM item_vectors v JOIN items i ON i.id = v.id "
            f"WHERE v.id IN ({','.join(map(str, touched.tolist()))})"
        ):
            found.setdefault(kind, []).append((item, bits_of(vector)))
        for kind, rows in found.items():
            signs = np.frombuffer(b"".join(sign for _, sign in rows), np.uint64).reshape(-1, WORDS)
            kinds.setdefault(kind, _Bank(0)).add(np.array([item for item, _ in rows], np.int64), signs)
        self._touched.clear()


class _Bank:
    """The signs of one kind of items, a word of all of them after the other: so they are compared fastest."""

    def __init__(self, room: int) -> None:
        self._ids = np.zeros(room, np.int64)
        self._signs = np.zeros((WORDS, room), np.uint64)
        self._used = 0
        self._top = -1
        """No id is above it."""

    def add(self, ids: NDArray[np.int64], signs: NDArray[np.uint64]) -> None:
        """``ids``, shape (n,), none of which is there; ``signs``, shape (n, WORDS)."""
        end = self._used + len(ids)
        if end > len(self._ids):
            more = end + end // 8 + 256 - len(self._ids)  # seldom enough, and not much room for nothing
            self._ids = np.pad(self._ids, (0, more))
            self._signs = np.pad(self._signs, ((0, 0), (0, more)))
        self._ids[self._used : end] = ids
        self._signs[:, self._used : end] = signs.T
        self._top = max(self._top, int(ids.max(initial=-1)))
        self._used = end

    def drop(self, ids: NDArray[np.int64]) -> None:
        """Takes out those of ``ids`` that are there."""
        ids = ids[ids <= self._top]  # what is new need not be looked for
        if not len(ids) or not (gone := np.isin(self._ids[: self._used], ids)).any():
            return
        left = self._used - int(gone.sum())
        self._ids[:left] = self._ids[: self._used][~gone]
        self._signs[:, :left] = self._signs[:, : self._used][:, ~gone]
        self._used = left

    def nearest(self, vector: Vector, k: int) -> list[int]:
        """See ``Signs.nearest``."""
        rough, wanted = np.arange(self._used), k * ROUGH
        if self._used > wanted:
            unlike = self._unlike(np.frombuffer(bits(vector), np.uint64))
            cut = np.searchsorted(np.bincount(unlike, minlength=DIMENSIONS + 1).cumsum(), wanted)
            closer = np.flatnonzero(unlike < cut)
            # "Good morning." was said a thousand times: of those as unlike as the last, the newest.
            last = np.flatnonzero(unlike == cut)
            newest = last[np.argsort(-self._ids[last])][: wanted - len(closer)]
            rough = np.concatenate([closer, newest])
        signs = np.ascontiguousarray(self._signs[:, rough].T).view(np.uint8)
        alike = np.unpackbits(signs, axis=1, bitorder="little").astype(np.float32) @ vector
        ids = self._ids[rough]
        found: list[int] = ids[np.lexsort((-ids, -alike))[:k]].tolist()
        return found

    def _unlike(self, wanted: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Bits unlike those of ``wanted``, shape (WORDS,), of each."""
        out = np.zeros(self._used, np.uint16)
        for start in range(0, self._used, AT_ONCE):
            here = slice(start, min(start + AT_ONCE, self._used))
            for word in range(WORDS):
                out[here] += _count(self._signs[word, here] ^ wanted[word])
        return out


def _count(differ: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Bits set in each of ``differ``."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(differ))
    return np.asarray(_ONES[differ.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.uint8))
