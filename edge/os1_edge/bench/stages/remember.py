"""Embedding and recall."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import os1_models
from os1_edge.bench.recall import MEASURING_KEY
from os1_edge.bench.recall_scale import ask, keep, made_up
from os1_edge.bench.stage import Reading, Setting, Stage, Work, timed
from os1_edge.bench.stages.clips import utterances
from os1_edge.remember.embed import Embedder
from os1_edge.remember.store import Store

KEPT_A_SECOND = 4000.0
"""About, for the time left: rows that a memory takes up."""


@contextmanager
def _embed(_: Setting) -> Iterator[Work]:
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    texts = cycle([text for text, _ in utterances()])
    numbers = iter(range(10**9))
    # The number keeps the embedder's memory of texts that it has seen out of it.
    yield lambda: (timed(lambda: embedder.one(f"{next(texts)} {next(numbers)}")),)


@contextmanager
def _recall(_: Setting, *, rows: int) -> Iterator[Work]:
    made = made_up(rows, 20)
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", MEASURING_KEY)
        try:
            keep(store, made)
            yield lambda: (sorted(ms for ms, _ in ask(store, made))[10],)
        finally:
            store.close()


def recall(rows: int, *, quick: bool) -> Stage:
    """A question to so many memories, its vector given; a sample is the median of twenty questions."""
    name = f"recall of {rows // 1000}k memories"
    return Stage(
        name,
        "remember",
        (Reading(name, of={"rows": rows}),),
        partial(_recall, rows=rows),
        repeats=8,
        within_s=2.0,
        ready_s=1.0 + rows / KEPT_A_SECOND,
        quick=quick,
    )


def stages() -> list[Stage]:
    """All of them."""
    return [
        Stage("embed", "remember", (Reading("embed, a sentence"),), _embed, repeats=60, within_s=1.0),
        recall(1_000, quick=True),
        recall(10_000, quick=True),
        recall(100_000, quick=False),
    ]
