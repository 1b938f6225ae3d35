"""``python -m os1_edge.bench.recall_peers --rows 10000 [--locomo FILE]``: beside plain LanceDB and Chroma.

The same rows, vectors and questions for each, in one run, question by question in turn (extra ``peers``; one
that is not installed is named and left out). Two jobs are timed, by the clock and in processor time of all
threads: the ten nearest by vectors alone, with the share of the exact ten found; and words and vectors,
which Chroma's plain query does not do. Ours is then the whole of recall, with neighbours, times, speakers and
reasons. Plain means as their own first pages do it: Chroma a persistent collection by cosine, LanceDB a table
with its full-text index, asked in its hybrid way. Neither encrypts.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import os1_models
from os1_edge.bench.recall import MEASURING_KEY, RULES, fill, read_conversations
from os1_edge.bench.recall_scale import START, Given, Rows, keep, made_up
from os1_edge.remember.embed import Embedder
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import searched
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

DEPTH = 10
BATCH = 2000


Ask = Callable[[str, Vector], Sequence[int]]
"""Question and its embedding -> numbers of the best ``DEPTH`` rows, the best first."""


class Peer(Protocol):
    """A plain set-up: filled once, then asked."""

    def nearest(self, text: str, vector: Vector) -> list[int]:
        """By vectors alone."""

    def best(self, text: str, vector: Vector) -> list[int]:
        """By all that it knows in a plain query."""


class Chroma:
    """A persistent collection, by cosine."""

    def __init__(self, folder: Path, texts: Sequence[str], vectors: Vector) -> None:
        chromadb = importlib.import_module("chromadb")
        settings = importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(folder), settings=settings)
        self._rows = self._client.create_collection(
            "rows", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )
        for at in range(0, len(texts), BATCH):
            some = range(at, min(at + BATCH, len(texts)))
            self._rows.add(
                ids=[str(i) for i in some],
                embeddings=vectors[some.start : some.stop],
                documents=list(texts[some.start : some.stop]),
            )

    def nearest(self, text: str, vector: Vector) -> list[int]:
        """By vectors alone, out of its HNSW index: not always the nearest."""
        found = self._rows.query(query_embeddings=[vector.tolist()], n_results=DEPTH)
        return [int(i) for i in found["ids"][0]]

    best = nearest


class Lance:
    """A table with a full-text index."""

    def __init__(self, folder: Path, texts: Sequence[str], vectors: Vector) -> None:
        lancedb = importlib.import_module("lancedb")
        self._rows = lancedb.connect(str(folder)).create_table(
            "rows",
            [{"id": i, "text": t, "vector": v} for i, (t, v) in enumerate(zip(texts, vectors, strict=True))],
        )
        self._rows.create_fts_index("text", replace=True)

    def nearest(self, text: str, vector: Vector) -> list[int]:
        """By vectors alone: without an index of its own it compares with all."""
        return [int(row["id"]) for row in self._rows.search(vector).limit(DEPTH).to_list()]

    def best(self, text: str, vector: Vector) -> list[int]:
        """Words and meaning, fused by reciprocal rank, as its hybrid search does by default."""
        plain = "".join(c if c.isalnum() else " " for c in text)
        found = self._rows.search(query_type="hybrid").vector(vector).text(plain).limit(DEPTH).to_list()
        return [int(row["id"]) for row in found]


PEERS: dict[str, Callable[[Path, Sequence[str], Vector], Peer]] = {"chromadb": Chroma, "lancedb": Lance}


def installed(tell: Callable[[str], None]) -> list[str]:
    """The peers that can be measured here; says which cannot."""
    out = []
    for name in PEERS:
        if importlib.util.find_spec(name):
            out.append(name)
        else:
            tell(f"{name} is not installed, left out; pip install 'os1[peers]'")
    return out


def latency(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """By job and set-up: milliseconds of a question, median, ours and theirs in turn; percent of the exact
    nearest."""
    now = START + timedelta(minutes=5 * len(rows.texts))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", MEASURING_KEY)
        keep(store, rows)
        given = Given(dict(zip(rows.questions, rows.asked, strict=True)))
        recall = Recall(store, given, RecallRules(limit=DEPTH, min_similarity=-1.0))
        peers = {name: PEERS[name](Path(folder) / name, rows.texts, rows.vectors) for name in names}
        nearest: dict[str, Ask] = {
            "os1": lambda text, vector: [turn.id - 1 for turn, _ in store.nearest_turns(vector, DEPTH)],
            **{name: peer.nearest for name, peer in peers.items()},
        }
        whole: dict[str, Ask] = {
            "os1": lambda text, vector: [hit.ref_id - 1 for hit in recall.recall(text, now)],
            **{name: peer.best for name, peer in peers.items() if type(peer).best is not type(peer).nearest},
        }
        out = {"nearest": _timed(nearest, rows), "words and vectors": _timed(whole, rows)}
        store.close()
    return out


def _timed(asked: dict[str, Ask], rows: Rows) -> dict[str, dict[str, float]]:
    """Medians and the 95th percentile."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    work: dict[str, list[float]] = {name: [] for name in asked}
    shares: dict[str, list[float]] = {name: [] for name in asked}
    for number, (question, vector) in enumerate(zip(rows.questions, rows.asked, strict=True)):
        exact = set(np.argsort(-(rows.vectors @ vector))[:DEPTH].tolist())
        for name, ask in sorted(asked.items(), reverse=number % 2 == 1):
            began, worked = time.perf_counter(), time.process_time()
            best = ask(question, vector)
            work[name].append(1000 * (time.process_time() - worked))
            times[name].append(1000 * (time.perf_counter() - began))
            shares[name].append(len(exact & set(best)) / DEPTH)
    return {
        name: {
            "p50_ms": round(statistics.median(some), 1),
            "p95_ms": round(statistics.quantiles(some, n=20)[-1], 1),
            "cpu_ms": round(statistics.median(work[name]), 1),
            "of_nearest_percent": round(100 * statistics.mean(shares[name]), 1),
        }
        for name, some in times.items()
    }


def found(path: Path, names: Sequence[str]) -> dict[str, float]:
    """Recall@10 on the LoCoMo conversations of a file, percent: one embedder, the same texts."""
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    shares: dict[str, list[float]] = {"os1": [], **{name: [] for name in names}}
    for conversation in read_conversations(path):
        texts = [searched(turn.speaker, turn.text) for turn in conversation.turns]
        ids = [turn.turn_id for turn in conversation.turns]
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder) / "memory.db", MEASURING_KEY)
            turn_ids = fill(store, conversation, embedder)
            recall = Recall(store, embedder, RULES)
            vectors = embedder.embed(texts)
            peers = {name: PEERS[name](Path(folder) / name, texts, vectors) for name in names}
            for asked in conversation.questions:
                hits = [turn_ids[h.ref_id] for h in recall.recall(asked.question, conversation.now)[:DEPTH]]
                best = {"os1": hits}
                for name, peer in peers.items():
                    best[name] = [ids[i] for i in peer.best(asked.question, embedder.one(asked.question))]
                for name, some in best.items():
                    shares[name].append(len(asked.evidence & set(some)) / len(asked.evidence))
            store.close()
    return {name: round(100 * statistics.mean(some), 1) for name, some in shares.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints lines of JSON."""
    parser = argparse.ArgumentParser(description="Recall beside plain LanceDB and Chroma set-ups.")
    parser.add_argument("--rows", default="10000", help="numbers of memories, with commas")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo conversations, for recall")
    given = parser.parse_args(arguments)
    names = installed(print)
    for rows in given.rows.split(","):
        print(json.dumps({"rows": int(rows), **latency(made_up(int(rows), given.questions), names)}))
    if given.locomo:
        print(json.dumps({"recall@10": found(given.locomo, names)}))


if __name__ == "__main__":
    main()
