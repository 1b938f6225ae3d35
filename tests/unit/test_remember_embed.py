"""The real embedder: what makes recall repeatable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from os1_edge.remember.embed import CACHED, Embedder
from os1_edge.remember.schema import DIMENSIONS

pytestmark = pytest.mark.models


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
