"""``python -m os1_edge.bench.recall_peers --rows 10000 [--locomo FILE]``: beside plain LanceDB and Chroma.

The same rows, vectors and questions for each, in one run, question by question in turn (extra ``peers``; one
that is not installed is named and left out). Plain means as their own first pages do it: Chroma a persistent
collection by cosine, LanceDB a table with its full-text index, asked in its hybrid way. Neither encrypts.
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


class Peer(Protocol):
    """A plain set-up: filled once, then asked."""

    def ask(self, text: str, vector: Vector, k: int) -> list[int]:
        """Numbers of the best ``k`` rows."""


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

    def ask(self, text: str, vector: Vector, k: int) -> list[int]:
        """By meaning alone: Chroma's plain query knows no words."""
        found = self._rows.query(query_embeddings=[vector.tolist()], n_results=k)
        return [int(i) for i in found["ids"][0]]


class Lance:
    """A table with a full-text index."""

    def __init__(self, folder: Path, texts: Sequence[str], vectors: Vector) -> None:
        lancedb = importlib.import_module("lancedb")
        self._rows = lancedb.connect(str(folder)).create_table(
            "rows",
            [{"id": i, "text": t, "vector": v} for i, (t, v) in enumerate(zip(texts, vectors, strict=True))],
        )
        self._rows.create_fts_index("text", replace=True)

    def ask(self, text: str, vector: Vector, k: int) -> list[int]:
        """Words and meaning, fused by reciprocal rank, as its hybrid search does by default."""
        plain = "".join(c if c.isalnum() else " " for c in text)
        found = self._rows.search(query_type="hybrid").vector(vector).text(plain).limit(k).to_list()
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
    """Milliseconds of a question, median: ours and theirs in turn."""
    now = START + timedelta(minutes=5 * len(rows.texts))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", MEASURING_KEY)
        keep(store, rows)
        given = Given(dict(zip(rows.questions, rows.asked, strict=True)))
        recall = Recall(store, given, RecallRules(limit=DEPTH, min_similarity=-1.0))
        peers = {name: PEERS[name](Path(folder) / name, rows.texts, rows.vectors) for name in names}
        times: dict[str, list[float]] = {"os1": [], **{name: [] for name in names}}
        for question, vector in zip(rows.questions, rows.asked, strict=True):
            began = time.perf_counter()
            recall.recall(question, now)
            times["os1"].append(time.perf_counter() - began)
            for name, peer in peers.items():
                began = time.perf_counter()
                peer.ask(question, vector, DEPTH)
                times[name].append(time.perf_counter() - began)
        store.close()
    return {name: round(1000 * statistics.median(some), 1) for name, some in times.items()}


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
                    best[name] = [
                        ids[i] for i in peer.ask(asked.question, embedder.one(asked.question), DEPTH)
                    ]
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
        print(json.dumps({"rows": int(rows), "p50_ms": latency(made_up(int(rows), given.questions), names)}))
    if given.locomo:
        print(json.dumps({"recall@10": found(given.locomo, names)}))


if __name__ == "__main__":
    main()
