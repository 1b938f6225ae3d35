"""``python -m os1_edge.bench.recall_scale --rows 10000,200000``: recall from a big memory, embedding aside.

Rows are made up: sentences of words as frequent as in English (Zipf), with vectors in clusters as narrow as
MiniLM's on real talk. Printed, per number of rows: memories kept a second, time of a question (by the clock,
and the work alone: a busy machine shows in the first), size of the file, resident memory of a fresh process
that has searched it, over the interpreter, and how much of the exact twenty nearest the scan of signs keeps.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from os1_edge.bench.memory_store import opened_cost
from os1_edge.bench.recall import MEASURING_KEY
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.search import SCANNED, Search
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

WORDS, FIRST = 20_000, 50
"""Vocabulary, and the rank of its commonest word: before it stand the function words, which are never looked
up."""

CLUSTERS, WIDTH = 500, 0.8
"""Topics, and the noise in each against its centre: nearest neighbours at a cosine of 0.6, as in LoCoMo."""

TRANSACTION = 500
"""Rows kept at once, as an import does."""

START = datetime(2020, 1, 1)
NEAREST = 20


@dataclass(frozen=True, slots=True)
class Rows:
    """Made-up memories and questions."""

    texts: list[str]
    vectors: Vector
    """Shape (rows, 384)."""
    questions: list[str]
    asked: Vector
    """Shape (questions, 384)."""


class Given:
    """An embedder that is told the vectors beforehand."""

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors

    def one(self, text: str) -> Vector:
        """The vector that was given for ``text``."""
        return self._vectors[text]


def made_up(rows: int, questions: int, seed: int = 0) -> Rows:
    """Memories and questions; the same for the same ``seed``."""
    rng = np.random.default_rng(seed)
    centres = _unit(rng.standard_normal((CLUSTERS, DIMENSIONS)))
    frequency = 1 / np.arange(FIRST, FIRST + WORDS)
    frequency /= frequency.sum()

    def near(n: int) -> Vector:
        noise = rng.standard_normal((n, DIMENSIONS)) * WIDTH / np.sqrt(DIMENSIONS)
        return _unit(centres[rng.integers(CLUSTERS, size=n)] + noise).astype(np.float32)

    spelled = [_spelled(w) for w in range(WORDS)]

    def sentences(n: int, least: int, most: int) -> list[str]:
        lengths = rng.integers(least, most, size=n)
        words = rng.choice(WORDS, p=frequency, size=int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        return [
            " ".join(spelled[w] for w in words[start : start + length])
            for start, length in zip(starts, lengths, strict=True)
        ]

    return Rows(sentences(rows, 6, 24), near(rows), sentences(questions, 3, 8), near(questions))


def _spelled(number: int) -> str:
    """A word of syllables for each number; no two alike, and no stemmer shortens them."""
    out = ""
    for _ in range(4):
        number, syllable = divmod(number, 60)
        out += "bdfgklmnprtv"[syllable // 5] + "aeiou"[syllable % 5]
    return out + "k"


def _unit(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def keep(store: Store, rows: Rows) -> float:
    """Puts the rows into a memory; returns the seconds it took."""
    began = time.perf_counter()
    for start in range(0, len(rows.texts), TRANSACTION):
        with store.transaction():
            for i in range(start, min(start + TRANSACTION, len(rows.texts))):
                moment = START + timedelta(minutes=5 * i)
                session = f"{moment:%Y-%m-%d}"
                store.add_turn(f"t{i}", 0, moment, rows.texts[i], "", "", rows.vectors[i], session_id=session)
    return time.perf_counter() - began


def ask(store: Store, rows: Rows, rules: RecallRules | None = None) -> Iterator[tuple[float, float]]:
    """Milliseconds of each question: by the clock, and of this thread's own work."""
    embedder = Given(dict(zip(rows.questions, rows.asked, strict=True)))
    recall = Recall(store, embedder, rules or RecallRules(limit=10, min_similarity=-1.0))
    now = START + timedelta(minutes=5 * len(rows.texts))
    recall.recall(rows.questions[0], now)
    for question in rows.questions:
        began, worked = time.perf_counter(), time.thread_time()
        recall.recall(question, now)
        yield 1000 * (time.perf_counter() - began), 1000 * (time.thread_time() - worked)


def kept_of_exact(store: Store, rows: Rows, questions: int) -> float:
    """Share of the exact nearest (float vectors) that the scan of signs brings."""
    search, shares = Search(store), []
    for vector in rows.asked[:questions]:
        exact = {int(i) + 1 for i in np.argsort(-(rows.vectors @ vector))[:NEAREST]}
        found, _ = search.by_meaning(vector)
        best = set(sorted(found, key=lambda item: -found[item])[:NEAREST])
        shares.append(len(exact & best) / NEAREST)
    return sum(shares) / len(shares)


def measure(rows: int, questions: int) -> dict[str, float]:
    """What the module's docstring lists, for one number of rows."""
    made = made_up(rows, questions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        store = Store(path, MEASURING_KEY)
        try:
            seconds = keep(store, made)
            asked = list(ask(store, made))
            times, work = sorted(t for t, _ in asked), sorted(w for _, w in asked)
            share = kept_of_exact(store, made, min(50, questions))
        finally:
            store.close()
        return {
            "rows": rows,
            "inserts_per_s": round(rows / seconds),
            "p50_ms": round(times[len(times) // 2], 1),
            "p95_ms": round(times[int(0.95 * len(times))], 1),
            "p50_work_ms": round(work[len(work) // 2], 1),
            "scanned": SCANNED["turn"],
            "nearest_20_kept_percent": round(100 * share, 1),
            "file_mib": round(path.stat().st_size / 2**20, 1),
            **opened_cost(path),
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one line of JSON for each number of rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="10000,200000", help="numbers of memories, with commas")
    parser.add_argument("--questions", type=int, default=100)
    given = parser.parse_args(arguments)
    for rows in given.rows.split(","):
        print(json.dumps(measure(int(rows), given.questions)), flush=True)


if __name__ == "__main__":
    main()
