"""The scan by signs gives what comparing with every vector gives, gaps and several chunks included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from memories import MONDAY, new

from os1_edge.remember import scan
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.vectors import bits, bits_of, pack, unpack

CHANCE = np.random.default_rng(2)


def units(n: int) -> np.ndarray:
    made = CHANCE.normal(size=(n, DIMENSIONS)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("old_numpy", [False, True])
def test_the_nearest_by_signs_are_found_over_chunks_and_gaps(
    old_numpy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if old_numpy:
        monkeypatch.delattr(np, "bitwise_count", raising=False)
    store, vectors = new(tmp_path), units(2300)
    with store.transaction() as db:
        items = [store.add_item("turn", n, MONDAY, "x", vector) for n, vector in enumerate(vectors)]
        other = store.add_item("event", 1, MONDAY, "y", vectors[0])
        gone = set(items[5:1400:7])
        db.executemany("DELETE FROM items WHERE id = ?", [(item,) for item in gone])
    (wanted,) = units(1)
    there = [(item, vector) for item, vector in zip(items, vectors, strict=True) if item not in gone]
    unlike = {item: int(((vector > 0) != (wanted > 0)).sum()) for item, vector in there}
    with store.reading() as db:
        found = scan.nearest_signs(db, "turn", bits(wanted), 50).tolist()
        assert [unlike[item] for item in found] == sorted(unlike.values())[:50]
        assert scan.nearest_signs(db, "event", bits(wanted), 50).tolist() == [other]
        assert scan.nearest_signs(db, "summary", bits(wanted), 50).tolist() == []
        assert len(scan.nearest_signs(db, "turn", bits(wanted), 9999)) == len(there)
        nearest = db.execute(
            "SELECT rowid FROM item_bits WHERE bits MATCH vec_bit(?) AND k = 50 AND kind = 'turn'",
            (bits(wanted),),
        ).fetchall()
    assert sorted(unlike[row[0]] for row in nearest) == [unlike[item] for item in found]
    store.close()


def test_a_packed_vector_is_nearly_the_vector() -> None:
    vectors = units(200)
    back = unpack([pack(vector) for vector in vectors])
    assert float(np.abs((back @ vectors.T) - (vectors @ vectors.T)).max()) < 0.002
    assert float((back * vectors).sum(axis=1).min()) > 0.9999
    assert [len(pack(vector)) for vector in vectors[:1]] == [DIMENSIONS + 4]
    flipped = (int.from_bytes(bits(v)) ^ int.from_bytes(bits_of(pack(v))) for v in vectors)
    assert max(f.bit_count() for f in flipped) <= 8  # a value so small that it became zero
    assert unpack([]).shape == (0, 0)
    assert unpack([pack(np.zeros(4, np.float32))]).tolist() == [[0.0] * 4]
