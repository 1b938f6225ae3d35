"""Some weeks of memory, and a Milvus server for them: milvus-lite, a process of its own, over gRPC."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from memories import KEY, meaning

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.export import export
from os1_edge.remember.hosted import open as opening
from os1_edge.remember.hosted import search
from os1_edge.remember.hosted.state import Place, new_secret
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.repair import check
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent, StoredSummary
from os1_edge.remember.store import Store

pytest.importorskip("pymilvus", reason="needs the extra: pip install 'os1[hosted]' milvus-lite")
pytest.importorskip("milvus_lite", reason="needs a server to test with: pip install milvus-lite")

NOW = datetime(2026, 3, 31, 20)
DAYS = 40
THINGS = ("tea", "figs", "chess", "sailing", "pottery", "opera", "cycling", "bread", "stars", "violets")


class Words:
    """An embedder that finds texts alike that share words."""

    def one(self, text: str) -> np.ndarray:
        found = sum((meaning(w.strip(".,?!").casefold()) for w in text.split()), meaning("the"))
        return (found / np.linalg.norm(found)).astype(np.float32)


EMBEDDER = Words()


def lived(file: Path, days: int = DAYS) -> Store:
    """Two months in which every day holds a conversation, an event and what was made of them."""
    store = Store(file, KEY)
    with store.transaction():
        for day in range(days):
            _a_day(store, day, NOW - timedelta(days=days - day, hours=4))
    ((last,),) = store.rows("SELECT max(id) FROM turns")
    with store.transaction() as db:
        db.execute("INSERT INTO turn_used VALUES (?, 'turn', 2, 'old')", (last - 1,))
        db.execute("INSERT INTO turn_used VALUES (?, 'event', 3, 'old')", (last,))
        db.execute(
            "INSERT INTO forgotten VALUES (x'0102030405060708090a0b0c0d0e0f10', '2026-03-01T00:00:00')"
        )
    return store


def _a_day(store: Store, day: int, when: datetime) -> None:
    thing, session = THINGS[day % len(THINGS)], f"s{day}"
    for number, said in enumerate((f"Day {day} began with {thing}.", f"Ben likes {thing} on day {day}.")):
        speaker = "wearer" if number == 0 else "other:Ben"
        row = store.add_turn(
            f"t{day}.{number}", 0, when + timedelta(minutes=number), said, "I see.", "kitchen",
            EMBEDDER.one(said), speaker=speaker, session_id=session,
        )  # fmt: skip
        derived.set_importance(store, "turn", row, 1 + day % 9)
    context = store.add_context(RealtimeContext(0.0, f"A table, {thing}.", "", "home", "busy"), when)
    event = StoredEvent(0, when, when, "home", "busy", f"Was busy with {thing}, {day}.", "llm", 1)
    made = derived.add_event(store, event, [context], EMBEDDER.one(event.summary))
    key = f"{thing} of day {day}"
    derived.put_keys(store, "event", made, when, [("semantic", key, EMBEDDER.one(key))])
    text = f"They spoke of {thing}, {day}."
    told = StoredSummary(0, session, when, when, text, "llm", 2)
    derived.put_summary(store, told, EMBEDDER.one(text))
    if day % 20 == 0:
        entry = ProfileEntry(0, "preference", f"Likes {thing}.", 0.8, when, f"t{day}.0")
        source = Source("turn", row - 1, when, f"quote {thing}")
        store.add_profile(entry, EMBEDDER.one(entry.text), (), [source])
    if day % 10 == 3:  # corrected at once
        store.add_turn(f"t{day}.0", 1, when, f"Day {day}: {thing}!", "", "", EMBEDDER.one(thing),
                       session_id=session)  # fmt: skip


@dataclass
class Server:
    """A milvus-lite server."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder), "--host",
             "127.0.0.1", "--port", str(self.port), "--max-workers", "4"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, "milvus-lite ended"
            time.sleep(0.05)
        raise AssertionError("milvus-lite did not listen")

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None

    def data(self) -> bytes:
        """All that it keeps, tables as they read: they are compressed on the disk."""
        parquet = pytest.importorskip("pyarrow.parquet")
        out = b""
        for file in sorted(p for p in self.folder.rglob("*") if p.is_file()):
            out += file.read_bytes()
            if file.suffix == ".parquet":
                out += str(parquet.read_table(file).to_pylist()).encode()
        return out


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(tmp_path_factory.mktemp("milvus") / "data", port)
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not fail a test."""
    monkeypatch.setattr(search, "ANSWER_S", 60.0)
    monkeypatch.setattr(opening, "CONNECT_S", 20.0)


@pytest.fixture
def place(server: Server, request: pytest.FixtureRequest) -> Place:
    if server.process is None:
        server.start()
    return Place(server.url, f"ann of {request.node.name}", new_secret(), keep_days=10)


def exported(store: Store, vectors: bool = True) -> str:
    """The export, without the moment that it was made."""
    out = io.StringIO()
    export(store, out, vectors=vectors)
    first, rest = out.getvalue().split("\n", 1)
    return json.dumps({**json.loads(first), "exported": ""}) + "\n" + rest


def sound(store: Store) -> bool:
    return not check(store.path, KEY).problems


def here(store: Store) -> int:
    return sum(
        store.rows(f"SELECT count(*) FROM {t}")[0][0] for t in ("turns", "contexts", "events", "summaries")
    )


def recalled(store: Store, question: str, limit: int = 5) -> list[tuple[str, str]]:
    recall = Recall(
        store, EMBEDDER, RecallRules(limit=limit, min_similarity=-1, tokens=10_000, questions=True)
    )
    try:
        return [(hit.kind, hit.text) for hit in recall.recall(question, NOW)]
    finally:
        recall.close()
