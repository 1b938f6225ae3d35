"""The scan by signs gives what comparing with every vector gives, whoever wrote or deleted what meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from memories import MONDAY, new, say

from os1_edge.remember import forget, scan
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import bits, bits_of, pack, unpack


def units(n: int, seed: int = 2) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(n, DIMENSIONS)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("old_numpy", [False, True])
def test_the_nearest_are_found_over_chunks_and_gaps(
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
    (wanted,) = units(1, seed=3)
    there = [(item, vector) for item, vector in zip(items, vectors, strict=True) if item not in gone]
    alike = {item: float((unpack([pack(vector)])[0] > 0) @ wanted) for item, vector in there}
    found = store.nearest_signs("turn", wanted, 50)
    best = sorted(alike, key=lambda item: -alike[item])
    assert len(set(found) & set(best[:50])) >= 35  # of vectors as unlike as can be
    assert found == sorted(found, key=lambda item: -alike[item])
    assert store.nearest_signs("turn", wanted, 9999) == best  # none lost where all are asked for
    assert store.nearest_signs("event", wanted, 50) == [other]
    assert store.nearest_signs("summary", wanted, 50) == []
    store.close()


def everything(store: Store) -> set[int]:
    return set(store.nearest_signs("turn", units(1)[0], 9999))


def test_what_is_written_and_forgotten_is_scanned_at_once_even_in_mid_transaction(tmp_path: Path) -> None:
    store = new(tmp_path)
    first = [store.add_item("turn", n, MONDAY, "x", vector) for n, vector in enumerate(units(3))]
    assert everything(store) == set(first)
    with store.transaction() as db:
        (wanted,) = units(1, seed=3)
        late = store.add_item("turn", 9, MONDAY, "late", None)
        assert everything(store) == set(first)
        store.set_vector(late, wanted)
        assert store.nearest_signs("turn", wanted, 1) == [late]
        store.set_vector(first[0], wanted)
        store.set_vector(late, -wanted)
        assert store.nearest_signs("turn", wanted, 1) == [first[0]]
        db.execute("DELETE FROM items WHERE id = ?", (first[1],))
        assert everything(store) == {first[0], first[2], late}
    assert everything(store) == {first[0], first[2], late}
    store.close()


def test_of_what_was_said_a_hundred_times_the_newest_is_found(tmp_path: Path) -> None:
    store = new(tmp_path)
    said, wanted = units(2, seed=3)
    with store.transaction():
        items = [store.add_item("turn", n, MONDAY, "Good morning.", said) for n in range(100)]
    assert store.nearest_signs("turn", wanted, 10) == items[:-11:-1]
    assert store.nearest_signs("turn", wanted, 90) == items[:-91:-1]
    store.close()


def test_what_was_rolled_back_is_not_scanned(tmp_path: Path) -> None:
    store = new(tmp_path)
    kept = store.add_item("turn", 1, MONDAY, "x", units(1)[0])

    def fails() -> None:
        with store.transaction() as db:
            store.add_item("turn", 2, MONDAY, "y", units(1)[0])
            db.execute("DELETE FROM items WHERE id = ?", (kept,))
            assert kept not in everything(store)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert everything(store) == {kept}
    store.close()


def test_what_another_process_writes_is_scanned(tmp_path: Path) -> None:
    store, other = new(tmp_path), new(tmp_path)
    mine = store.add_item("turn", 1, MONDAY, "x", units(1)[0])
    assert everything(store) == everything(other) == {mine}
    theirs = other.add_item("turn", 2, MONDAY, "y", units(1)[0])
    assert everything(store) == everything(other) == {mine, theirs}
    with other.transaction() as db:
        db.execute("DELETE FROM items WHERE id = ?", (mine,))
    assert everything(store) == everything(other) == {theirs}
    store.close()
    other.close()


def test_a_big_import_between_two_questions_is_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MOST_TOUCHED", 10)
    store = new(tmp_path)
    assert everything(store) == set()
    with store.transaction():
        items = [store.add_item("turn", n, MONDAY, "x", vector) for n, vector in enumerate(units(30))]
        assert len(store._signs._touched) <= 10
    assert everything(store) == set(items)
    store.close()


def test_forgetting_for_good_keeps_the_scan_in_step(tmp_path: Path) -> None:
    store = new(tmp_path)
    rows = [say(store, f"t{n}", f"word {n}") for n in range(4)]
    before = everything(store)
    forget.carry_out(store, forget.foresee(store, [("turn", rows[1])]))
    there = {row[0] for row in store.rows("SELECT id FROM items WHERE kind = 'turn'")}
    assert everything(store) == there < before
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


def test_of_many_with_the_same_signs_the_nearest_is_found_by_its_values(tmp_path: Path) -> None:
    store, (near,) = new(tmp_path), np.abs(units(1, seed=4))
    wanted = near / np.linalg.norm(near)
    say(store, "t0", "the one")
    store.set_vector(1, wanted)
    for n, other in enumerate(np.abs(units(60)), 1):
        say(store, f"t{n}", f"another {n}")
        store.set_vector(n + 1, other)
    assert [turn.heard for turn, _ in store.nearest_turns(wanted, 1)] == ["the one"]
    store.close()


def test_the_nearest_turns_are_those_of_the_embedder_that_asks(tmp_path: Path) -> None:
    store, (vector,) = new(tmp_path), units(1)
    say(store, "t0", "made by the one before")
    store.set_vector(1, vector)
    assert store.nearest_turns(vector, 1)
    store.set_embedder("another model")
    assert store.nearest_turns(vector, 1) == []
    store.close()


def test_what_is_scanned_shrinks_with_what_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "CHUNK", 1)  # so that two of sqlite-vec's chunks are many
    store = new(tmp_path)
    with store.transaction():
        for n in range(1030):
            say(store, f"t{n}", f"number {n}")
    assert store.rows("SELECT count(*) FROM item_bits_chunks") == [(2,)]
    gone = [("turn", n) for n in range(4, 1024, 4)]
    forget.carry_out(store, forget.foresee(store, gone), clear_file=False)
    assert store.rows("SELECT count(*) FROM item_bits_chunks") == [(1,)]
    assert len(store.nearest_signs("turn", units(1)[0], 2000)) == 1030 - len(gone)
    store.close()
