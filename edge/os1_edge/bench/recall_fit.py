"""``python -m os1_edge.bench.recall_fit FILE``: fits the weights of recall's similarity, and says what they
bring on conversations that they were not fitted on.

A softmax over the candidates of a question should put its mass on the evidence (ListNet, Cao et al., 2007).
For each conversation the weights come from the others: no number of the table saw its own conversation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import os1_models
from os1_edge.bench.recall import (
    DEPTHS,
    Answered,
    Conversation,
    read_conversations,
    remembered,
    table,
)
from os1_edge.remember.embed import Embedder
from os1_edge.remember.query import read_question
from os1_edge.remember.ranking import Weights, rank_candidates
from os1_edge.remember.search import Search

Array = NDArray[np.float64]

STEPS, RATE, DECAY = 150, 0.1, 1e-3
"""Adam's, and the L2 term; the result hardly depends on them."""

HARDEST = 120
"""Candidates of a question to learn from, the best first."""


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of one question."""

    conversation: int
    category: str
    evidence: int
    """Turns of evidence, found or not."""
    features: Array
    """Shape (candidates, features), the best first by the present weights."""
    relevant: Array
    """Shape (candidates,), 1 for evidence, else 0."""


def examples(conversations: Sequence[Conversation], embedder: Embedder) -> list[Example]:
    """The candidates that recall finds for every question."""
    out = []
    for number, conversation in enumerate(conversations):
        with remembered(conversation, embedder) as (store, turn_ids):
            search = Search(store)
            for asked in conversation.questions:
                question = read_question(asked.question, conversation.now, search.people())
                found = search.find(question, embedder.one(question.plain))
                ranked = rank_candidates(
                    found.candidates, question, found.rarity, conversation.now, Weights(), 0.0, 0.0
                )
                features = np.array([r.features for r in ranked], np.float64)
                relevant = [float(turn_ids[r.candidate.ref_id] in asked.evidence) for r in ranked]
                out.append(Example(number, asked.category, len(asked.evidence), features, np.array(relevant)))
    return out


def fit(chosen: Sequence[Example]) -> Array:
    """Weights of the features, shape (features,), so that BM25's is 1."""
    chosen = [e for e in chosen if e.relevant[:HARDEST].any()]
    every = np.concatenate([e.features[:HARDEST] for e in chosen])
    spread = every.std(axis=0)
    spread[spread == 0] = 1.0
    every = every / spread
    lengths = np.array([len(e.features[:HARDEST]) for e in chosen])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    owner = np.repeat(np.arange(len(chosen)), lengths)
    wanted = np.concatenate([e.relevant[:HARDEST] / e.relevant[:HARDEST].sum() for e in chosen])
    weights = np.zeros(every.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = every @ weights
        mass = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        mass /= np.add.reduceat(mass, starts)[owner]
        slope = every.T @ (mass - wanted) / len(chosen) + DECAY * weights
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    weights = weights / spread
    words = Weights._fields.index("words")
    return np.asarray(weights / abs(weights[words] or 1.0))


def judged(chosen: Sequence[Example], weights: Array) -> list[Answered]:
    """What ``weights`` find for each question."""
    out = []
    for e in chosen:
        best = e.relevant[np.argsort(-(e.features @ weights), kind="stable")]
        found = tuple(float(best[:k].sum()) / e.evidence for k in DEPTHS)
        out.append(Answered(e.conversation, e.category, found))
    return out


def main(paths: Sequence[str]) -> None:
    """Prints the weights and two tables: left out in turn, and fitted on all."""
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    conversations = [c for path in paths for c in read_conversations(Path(path))]
    every = examples(conversations, embedder)
    apart: list[Answered] = []
    for number in range(len(conversations)):
        weights = fit([e for e in every if e.conversation != number])
        apart += judged([e for e in every if e.conversation == number], weights)
    weights = fit(every)
    print("weights", {name: round(float(w), 2) for name, w in zip(Weights._fields, weights, strict=True)})
    print("each conversation with the weights of the others", table(apart))
    print("fitted on all", table(judged(every, weights)))
    print("as they stand", table(judged(every, np.array(Weights()))))


if __name__ == "__main__":
    main(sys.argv[1:])
