"""``python -m os1_edge.bench.recall_hosted FILE [BACKEND]``: what a memory on a server costs.

The same conversation, questions and embedder, asked in turn of a memory on the device and of one moved to a
server (``place_of``; else milvus-lite on this machine), in one run: what both find, the time of
a question, the bytes that it fetches, the room that a memory takes on each side, and what turning a vector
costs. ``os1 bench recall FILE --backend milvus`` measures the recall alone, of every conversation.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import os1_models
from os1_edge.bench.recall import RULES, Conversation, read_conversations, remembered
from os1_edge.remember.embed import Embedder
from os1_edge.remember.erase import clear
from os1_edge.remember.hosted import search
from os1_edge.remember.hosted.move import move_out
from os1_edge.remember.hosted.seal import Seal
from os1_edge.remember.hosted.shelf import MilvusShelf
from os1_edge.remember.hosted.state import Place, new_secret
from os1_edge.remember.recall import Recall
from os1_edge.remember.store import Store

Prepare = Callable[[Store, datetime], None]

PATIENCE_S = 600.0
"""For the server's answers while recall is measured: what it finds, not how busy the machine is."""


@contextmanager
def place_of(backend: str) -> Iterator[Prepare]:
    """What puts a memory where ``backend`` says: "sqlite-vec", "milvus" (milvus-lite), "milvus:URL".

    With a URL go the files ``$OS1_MILVUS_TOKEN_FILE`` and ``$OS1_MILVUS_CA_FILE``, where they are set.

    Raises:
        ValueError: it says neither.
    """
    name, _, url = backend.partition(":")
    if backend == "sqlite-vec":
        yield lambda store, now: None
        return
    if name != "milvus":
        raise ValueError(f"no backend {backend!r}; there are sqlite-vec and milvus[:URL]")
    patience, search.ANSWER_S = search.ANSWER_S, PATIENCE_S
    try:
        with tempfile.TemporaryDirectory() as folder:
            where = url or str(Path(folder) / "milvus.db")
            token, ca = (os.environ.get(f"OS1_MILVUS_{of}_FILE", "") if url else "" for of in ("TOKEN", "CA"))
            places: list[Place] = []

            def prepare(store: Store, now: datetime) -> None:
                wearer, secret = f"bench {len(places)}", new_secret()
                places.append(Place(where, wearer, secret, token_file=token, ca_file=ca, keep_days=0))
                move_out(store, places[-1], now)

            yield prepare
            for place in places:
                shelf = MilvusShelf(place)
                shelf.drop()
                shelf.close()
    finally:
        search.ANSWER_S = patience


def compare(
    conversation: Conversation, embedder: Embedder, questions: int, backend: str = "milvus"
) -> dict[str, Any]:
    """Both sides, question by question in turn."""
    asked = [q.question for q in conversation.questions[:questions]]
    with remembered(Conversation((), ()), embedder) as (nothing, _):
        empty = _bytes(nothing)
    with (
        remembered(conversation, embedder) as (here, _),
        remembered(conversation, embedder) as (there, _),
        place_of(backend) as prepare,
    ):
        before = _bytes(there)
        prepare(there, conversation.now)
        sides = {"sqlite-vec": Recall(here, embedder, RULES), "milvus": Recall(there, embedder, RULES)}
        searching = sides["milvus"]._search
        assert isinstance(searching, search.HostedSearch)
        fetched: list[int] = []
        shelf = searching._line.shelf()
        assert isinstance(shelf, MilvusShelf)
        _count(shelf, fetched)
        times: dict[str, list[float]] = {name: [] for name in sides}
        same = 0
        for question in asked:
            searching._opened.clear()  # each question as if it were the first: none fetched for another
            found = []
            for name, recall in sides.items():
                began = time.perf_counter()
                hits = recall.recall(question, conversation.now)
                times[name].append(time.perf_counter() - began)
                found.append([hit.text for hit in hits])
            same += found[0] == found[1]
        ((away,),) = there.rows("SELECT count(*) FROM hosted_away")
        p50 = {name: statistics.median(some) for name, some in times.items()}
        out = {
            "questions": len(asked),
            "same_order_percent": round(100 * same / len(asked), 1),
            "p50_ms": {name: round(1000 * value, 1) for name, value in p50.items()},
            "ratio": round(p50["milvus"] / p50["sqlite-vec"], 2),
            "fetched_kB_p50": round(statistics.median(fetched) / 1000, 1),
            "device_bytes_a_memory": {
                "whole": round((before - empty) / len(conversation.turns)),
                "away": round((_bytes(there) - empty) / len(conversation.turns)),
            },
            "away": away,
        }
        sides["milvus"].close()
    return out


def _bytes(store: Store) -> int:
    """Of pages in use."""
    clear(store)
    pages, size = (int(store.rows(f"PRAGMA {what}")[0][0]) for what in ("page_count", "page_size"))
    return pages * size


def _count(shelf: MilvusShelf, into: list[int]) -> None:
    get = shelf.get

    def counting(row_ids: Sequence[bytes], timeout_s: float = 30.0, *, newest: bool = True) -> Any:
        found = get(row_ids, timeout_s, newest=newest)
        into.append(sum(len(row.sealed) * 5 // 4 + 40 for row in found.values()))
        return found

    shelf.get = counting  # type: ignore[method-assign]


def rotation_cost(rounds: int = 500) -> dict[str, float]:
    """Making the matrix (ms, once a start), and turning one vector (µs, once a question and a row)."""
    import numpy as np

    vector = np.ones(384, np.float32) / np.sqrt(np.float32(384))
    began = time.perf_counter()
    seal = Seal(bytes(32), "bench")
    made = time.perf_counter()
    for _ in range(rounds):
        seal.leaving(vector)
    done = time.perf_counter()
    return {"make_ms": round(1000 * (made - began), 1), "turn_us": round(1e6 * (done - made) / rounds, 1)}


def main(path: str, backend: str = "milvus") -> None:
    """Prints one JSON object."""
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    (conversation, *_) = read_conversations(Path(path))
    print(json.dumps({**compare(conversation, embedder, 60, backend), "rotation": rotation_cost()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
