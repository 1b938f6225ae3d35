"""Some weeks of memory, and a Milvus server for them, over gRPC.

It is milvus-lite, a process of its own; with ``OS1_MILVUS_PYTHON`` a whole Milvus, of that Python's package
``milvus``, with users and TLS; with ``OS1_MILVUS_URL`` one that runs, which no test may stop, spoken to with
``OS1_MILVUS_TOKEN_FILE``, its administrator's, and ``OS1_MILVUS_CA_FILE``.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from authority import Authority
from memories import KEY, meaning

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.export import export
from os1_edge.remember.hosted import open as opening
from os1_edge.remember.hosted import search
from os1_edge.remember.hosted.shelf import collection_of
from os1_edge.remember.hosted.state import Place, new_secret
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.repair import check
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent, StoredSummary
from os1_edge.remember.store import Store

pymilvus = pytest.importorskip("pymilvus", reason="needs the extra: pip install 'os1[hosted]' milvus-lite")
URL, PYTHON = os.environ.get("OS1_MILVUS_URL", ""), os.environ.get("OS1_MILVUS_PYTHON", "")
LITE = not (URL or PYTHON)
if LITE:
    pytest.importorskip("milvus_lite", reason="needs a server to test with: pip install milvus-lite")

only_lite = pytest.mark.skipif(not LITE, reason="of milvus-lite: it is given a new collection to forget")

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
    """A server of the tests' own, or one that runs already (no ``folder``)."""

    url: str
    folder: Path | None
    token_file: str = ""
    ca_file: str = ""
    certificate: Sequence[Path] = ()
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it unless it runs; back when it answers."""
        if self.process is not None or self.folder is None:
            return
        self.folder.mkdir(exist_ok=True)
        port = self.url.rpartition(":")[2]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder), "--host",
             "127.0.0.1", "--port", port, "--max-workers", "4"] if LITE else
            [PYTHON, str(Path(__file__).with_name("milvus_server.py")), str(self.folder), port,
             *map(str, self.certificate)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for _ in range(300):
            try:
                self.client(1.0).close()
                return
            except (pymilvus.MilvusException, grpc.RpcError):
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.2)
        raise AssertionError("the server does not answer")

    def client(self, timeout: float = 20.0) -> Any:
        """As its administrator."""
        token = Path(self.token_file).read_text().strip() if self.token_file else ""
        client = pymilvus.MilvusClient(
            uri=self.url, token=token, timeout=timeout, dedicated=True, server_pem_path=self.ca_file
        )
        client.list_collections(timeout=timeout)
        return client

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.folder is None:
            pytest.skip("the server of OS1_MILVUS_URL is not the tests' to stop")
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:  # Milvus may take minutes to leave
                self.process.kill()
                self.process.wait(20)
            self.process = None

    def data(self) -> bytes:
        """All that it keeps of rows, tables as they read: they are compressed on the disk. Of Milvus without
        its log, which keeps what was sent for its own time."""
        if self.folder is None:
            pytest.skip("the files of the server of OS1_MILVUS_URL cannot be read from here")
        parquet = pytest.importorskip("pyarrow.parquet")
        out = b""
        for file in self.folder.rglob("*") if LITE else self.folder.glob("data/*_log/**/*"):
            with suppress(FileNotFoundError):  # let go of at this moment
                out += file.read_bytes() if file.is_file() else b""
            if file.suffix == ".parquet":
                out += str(parquet.read_table(file).to_pylist()).encode()
        return out


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if URL:
        yield Server(URL, None, *(os.environ.get(f"OS1_MILVUS_{of}_FILE", "") for of in ("TOKEN", "CA")))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("milvus")
    server = Server(f"http://127.0.0.1:{port}", folder / "data")
    if PYTHON:
        operator = Authority(folder, "operator")
        server = Server(
            f"https://localhost:{port}", folder / "data",
            token_file(folder / "token", "root:Milvus"),  # as it comes
            str(operator.cert), operator.issue("milvus"),
        )  # fmt: skip
    server.start()
    yield server
    server.stop()


def token_file(path: Path, token: str) -> str:
    path.touch(0o600)
    path.write_text(token)
    return str(path)


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not fail a test."""
    monkeypatch.setattr(search, "ANSWER_S", 60.0)
    monkeypatch.setattr(opening, "CONNECT_S", 20.0)


@pytest.fixture
def place(server: Server, request: pytest.FixtureRequest) -> Iterator[Place]:
    server.start()
    wearer = f"ann of {request.node.name}"
    if URL:
        wearer += f" {secrets.token_hex(8)}"
    yield Place(
        server.url, wearer, new_secret(), token_file=server.token_file, ca_file=server.ca_file, keep_days=10
    )
    if not LITE:  # where there are many, all grows slow
        server.start()
        client = server.client()
        client.drop_collection(f"{collection_of(wearer)}_0")
        client.close()


def options(place: Place) -> list[str]:
    """Of the commands: what the server is spoken to with."""
    token = ["--token-file", place.token_file] if place.token_file else []
    return [*token, "--ca-file", place.ca_file] if place.ca_file else token


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
