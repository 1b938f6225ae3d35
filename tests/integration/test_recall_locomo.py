"""Recall on real conversations: the evidence for questions that people asked about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from os1_edge.bench.recall import RULES, Answered, measure, only, read_conversations, table
from os1_edge.remember.embed import Embedder

pytestmark = [pytest.mark.models, pytest.mark.shared_data]

QUESTIONS = 40
"""Of the first conversation; ``os1 bench recall`` asks them all."""


@pytest.fixture(scope="module")
def answers(pulled: Callable[..., Path], shared_data: Path) -> list[list[Answered]]:
    file = shared_data / "locomo" / "locomo-6.json"
    if not file.is_file():
        pytest.skip(f"no LoCoMo conversations at {file}")
    embedder = Embedder(pulled("minilm-l6"), pulled("minilm-l6", "tokenizer.json"))
    first = read_conversations(file)[0]
    first = type(first)(first.turns, first.questions[:: len(first.questions) // QUESTIONS])
    return measure([first], embedder, [RULES, only(meaning=1.0), only(words=1.0)])


def test_most_of_the_evidence_is_among_the_ten_best(answers: list[list[Answered]]) -> None:
    assert table(answers[0])["recall"]["10"]["all"] >= 70


def test_words_and_meaning_and_neighbours_together_find_more_than_either_alone(
    answers: list[list[Answered]],
) -> None:
    together, meaning, words = (table(a)["recall"]["10"]["all"] for a in answers)
    assert together > meaning + 5
    assert together > words + 5


def test_the_table_has_every_depth_and_category(answers: list[list[Answered]]) -> None:
    found = table(answers[0])
    assert found["questions"] == len(answers[0])
    assert set(found["recall"]) == {"5", "10", "20"}
    for shares in found["recall"].values():
        assert set(shares) == {"multi-hop", "temporal", "open-domain", "single-hop", "all"}
        assert all(share is None or 0 <= share <= 100 for share in shares.values())
