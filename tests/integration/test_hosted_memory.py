"""A memory that lies on a Milvus server: moved there and home, recalled, forgotten, cut off; nobody else's.

The server is milvus-lite, a process of its own spoken to over gRPC. `scripts/test-hosted` runs this with what
it needs; elsewhere it is skipped.
"""

from __future__ import annotations

import base64
import io
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from memories import KEY, meaning

from os1_edge.cli import main
from os1_edge.events import RealtimeContext
from os1_edge.remember import derived, forget
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.export import export
from os1_edge.remember.hosted import courier, search
from os1_edge.remember.hosted import open as opening
from os1_edge.remember.hosted.courier import send_all
from os1_edge.remember.hosted.move import adopt, move_home, move_out
from os1_edge.remember.hosted.open import owner, reach
from os1_edge.remember.hosted.search import HostedSearch
from os1_edge.remember.hosted.shelf import MilvusShelf, NotReached, SealedRow, collection_of
from os1_edge.remember.hosted.state import Place, counts, new_secret, place_of
from os1_edge.remember.hosted.window import Incomplete, let_go
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.repair import check
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent, StoredSummary, now
from os1_edge.remember.store import BadMemory, Store
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo

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


# Moving -----------------------------------------------------------------------------------------------------


def test_a_memory_that_moved_out_and_home_is_the_same_byte_for_byte(tmp_path: Path, place: Place) -> None:
    store = lived(tmp_path / "m.db")
    before, used = exported(store), store.rows("SELECT * FROM turn_used ORDER BY 1, 2, 3")
    jobs, rows = store.rows("SELECT * FROM jobs"), here(store)
    items = store.rows("SELECT * FROM items ORDER BY id")
    moved = move_out(store, place, NOW)
    assert moved.left == ""
    assert moved.away == counts(store)[1] > 100
    assert here(store) < rows / 2
    assert not store.rows("SELECT 1 FROM turns WHERE heard LIKE '%day 7.%'")
    home = move_home(store)
    assert home.rows == moved.away
    assert exported(store) == before
    assert store.rows("SELECT * FROM turn_used ORDER BY 1, 2, 3") == used
    assert store.rows("SELECT * FROM jobs") == jobs
    assert store.rows("SELECT * FROM items ORDER BY id") == items
    assert sound(store)
    assert place_of(store) is None
    with pytest.raises(NotReached):
        MilvusShelf(place)  # nothing of the wearer is left there


def test_what_came_between_is_there_too_wherever_it_lay(tmp_path: Path, place: Place) -> None:
    store, twin = lived(tmp_path / "m.db"), lived(tmp_path / "twin.db")
    with twin.transaction() as db:  # the same rows
        for table in ("turns", "contexts", "events", "summaries", "profile"):
            uids = dict(store.rows(f"SELECT id, uid FROM {table}"))
            db.executemany(f"UPDATE {table} SET uid = ? WHERE id = ?", [(u, i) for i, u in uids.items()])
    move_out(store, place, NOW)
    for memory in (store, twin):
        row = memory.add_turn("new", 0, NOW, "I like plums.", "", "", EMBEDDER.one("plums"), session_id="n",
                              uid=bytes(16), origin="o")  # fmt: skip
        derived.put_keys(memory, "turn", row, NOW, [("semantic", "plums", EMBEDDER.one("plums"))])
        ((origin,),) = memory.rows("SELECT origin FROM turns WHERE turn_id = 't39.0'")
        memory.add_turn(
            "t39.0", 1, NOW, "Day 39, in other words.", "", "", None, uid=b"1" * 16, origin=origin
        )
    move_home(store)

    def plain(memory: Store) -> list[str]:  # without what each run numbers for itself
        rows = [json.loads(line) for line in exported(memory).splitlines()[1:]]
        return sorted(json.dumps({k: v for k, v in row.items() if k != "origin"}) for row in rows)

    assert plain(store) == plain(twin)
    assert sound(store)


def test_a_move_that_is_killed_again_and_again_goes_on_and_loses_nothing(
    tmp_path: Path, place: Place
) -> None:
    file, key = tmp_path / "m.db", tmp_path / "key"
    store = lived(file)
    before = exported(store)
    store.close()
    key.write_text(KEY.hex())
    key.chmod(0o600)
    ours = [sys.executable, "-m", "os1_edge", "memory", "move", "--memory", str(file), "--key-file", str(key)]
    out = ["--to", f"milvus:{place.url}", "--wearer", place.wearer, "--keep-days", "0"]
    for way in (out, ["--to", "local"]):
        for wait in (1, 3):  # lines of progress after which it is killed
            process = subprocess.Popen([*ours, *way], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            assert process.stderr is not None
            for _ in range(wait):
                process.stderr.readline()
            process.send_signal(signal.SIGKILL)
            process.wait(20)
            process.stderr.close()
        done = subprocess.run([*ours, *way, "--json"], capture_output=True, text=True, check=False)
        if "already" not in done.stderr:  # it may have been done before the last kill
            assert done.returncode == 0, done.stderr
    store = Store(file, KEY)
    assert exported(store) == before
    assert sound(store)
    assert place_of(store) is None
    store.close()


def test_what_the_server_did_not_keep_stays_on_the_device(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = lived(tmp_path / "m.db", 30)
    before = exported(store)
    put = MilvusShelf.put
    monkeypatch.setattr(MilvusShelf, "put", lambda self, rows: put(self, rows[: len(rows) - 1] or rows))
    with pytest.raises(Incomplete, match="whole on this device"):
        move_out(store, place, NOW)
    assert counts(store)[1] == 0
    monkeypatch.undo()
    with store.transaction() as db:  # the next try sends it again
        db.execute("INSERT OR IGNORE INTO hosted_outbox (name) SELECT json_array('turns', id) FROM turns")
    assert exported(store) == before


def test_a_week_of_which_the_server_lost_a_row_stays_on_the_device_and_is_sent_again(
    tmp_path: Path, place: Place
) -> None:
    store, seal = lived(tmp_path / "m.db"), place.seal()
    move_out(store, replace(place, keep_days=10_000), NOW)
    assert counts(store) == (0, 0)
    ((number,),) = store.rows("SELECT id FROM turns WHERE heard LIKE 'Ben likes % on day 9.'")
    shelf = reach(store)
    shelf.delete([seal.row_id(f'["turns",{number}]')])
    before = here(store)
    gone = let_go(store, seal, shelf, NOW - timedelta(days=10))
    assert store.turns("id = ?", number)
    assert gone > 0
    assert here(store) < before
    assert counts(store)[0] == 1
    send_all(store, seal, shelf)
    assert let_go(store, seal, shelf, NOW - timedelta(days=10)) > 0
    assert not store.turns("id = ?", number)
    shelf.close()


def test_what_the_server_lost_or_changed_is_told_and_all_else_comes_home(
    tmp_path: Path, place: Place
) -> None:
    store = lived(tmp_path / "m.db")
    before = exported(store)
    move_out(store, place, NOW)
    seal, shelf = place.seal(), reach(store)
    lost, changed = (
        row[0] for row in store.rows("SELECT row_id FROM hosted_away WHERE kind = 'turn' LIMIT 2")
    )
    kept = shelf.get([lost, changed])
    shelf.delete([lost])
    forged = seal.seal(changed, 0, b"\0\0\0\x02{}")  # even by whoever has the key: an older state
    shelf.put([(SealedRow(changed, 0, forged), None)])
    with pytest.raises(Incomplete, match="2 rows"):
        move_home(store)
    assert counts(store)[1] == 2
    shelf.put([(kept[lost], None), (kept[changed], None)])  # the operator's backup
    shelf.close()
    move_home(store)
    assert exported(store) == before


def test_a_new_device_takes_the_memory_over_with_its_recovery_key_alone(tmp_path: Path, place: Place) -> None:
    store = lived(tmp_path / "m.db")
    before = exported(store).splitlines()[1:]
    move_out(store, replace(place, keep_days=0), NOW)
    with pytest.raises(NotReached, match="another key"):
        adopt(Store(tmp_path / "thief.db", KEY), replace(place, secret=new_secret()))
    other = Store(tmp_path / "other.db", KEY)
    adopt(other, place)
    assert sorted(exported(other).splitlines()[1:]) == sorted(before)
    assert sound(other)
    store.add_turn("late", 0, NOW, "From the old glasses.", "", "", None)
    with pytest.raises(NotReached, match="taken over"):
        reach(store)
    with pytest.raises(BadMemory, match="has a memory already"):
        adopt(lived(tmp_path / "full.db", 2), place)


# Recall -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("keep_days", "turned"), [(0.0, True), (10.0, True), (25.0, False)])
def test_the_same_comes_to_mind_wherever_the_memory_lies(
    tmp_path: Path, place: Place, keep_days: float, turned: bool
) -> None:
    store = lived(tmp_path / "m.db")
    questions = (
        "What did Ben say about chess?", "Tell me about violets.", "What happened on day 17?",
        "When did the day begin with sailing?", "What did I do last week?", "What happened in February 2026?",
        "pottery of day 4", "bread",
    )  # fmt: skip
    before = {q: recalled(store, q) for q in questions}
    move_out(store, replace(place, keep_days=keep_days, turned=turned), NOW)
    assert {q: recalled(store, q) for q in questions} == before


def test_after_a_change_of_embedder_what_is_away_is_found_by_its_words_alone(
    tmp_path: Path, place: Place
) -> None:
    store = lived(tmp_path / "m.db")
    move_out(store, place, NOW)
    store.set_embedder("another model")
    found, _ = opening.hosted_search(store).by_meaning(EMBEDDER.one("day 7"))
    assert found == {}
    assert any("day 7." in text for _, text in recalled(store, "What was on day 7?", limit=10))


def test_without_the_server_the_last_days_are_recalled_and_the_rest_is_said_to_be_out_of_reach(
    tmp_path: Path, place: Place, server: Server
) -> None:
    store = lived(tmp_path / "m.db")
    move_out(store, place, NOW)
    recall = Recall(store, EMBEDDER, RecallRules(limit=5, min_similarity=-1, tokens=10_000))
    searching = recall._search
    assert isinstance(searching, HostedSearch)
    assert any("day 7." in hit.text for hit in recall.recall("What was on day 7?", NOW))
    assert recall.word == ""
    server.stop(signal.SIGKILL)
    searching._opened.clear()
    hits = recall.recall("What was on day 37?", NOW)
    assert any("day 37" in hit.text.casefold() for hit in hits)
    assert "not reached" in recall.word
    assert not any("day 7." in hit.text for hit in recall.recall("What was on day 7?", NOW))
    row = store.add_turn("out", 0, NOW, "I said this in the tunnel.", "", "", None)  # kept without a link
    assert counts(store)[0] == 1
    with pytest.raises(BadMemory, match="server"):
        forget.within(store, None, None)  # what cannot be forgotten whole is not said to be
    last_hour = forget.within(store, NOW - timedelta(hours=1), None)
    forget.carry_out(store, forget.foresee(store, last_hour))  # while this needs nothing from there
    assert not store.turns("id = ?", row)
    server.start()
    searching._line._next_try = 0.0
    for _ in range(100):
        if any("day 7." in hit.text for hit in recall.recall("What was on day 7?", NOW)):
            break
        time.sleep(0.1)
    assert recall.word == ""
    shelf = reach(store)
    send_all(store, place.seal(), shelf)
    assert counts(store)[0] == 0
    shelf.close()
    recall.close()


def test_what_is_kept_while_the_link_is_down_is_sent_when_it_is_back(
    tmp_path: Path, place: Place, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "EVERY_S", 0.05)
    store = lived(tmp_path / "m.db", 3)
    move_out(store, place, NOW)
    server.stop(signal.SIGKILL)
    carrier = courier.Courier(store, place.seal(), lambda: reach(store, 1.0))
    row = store.add_turn("out", 0, now(), "I said this in the tunnel.", "", "", None)
    time.sleep(0.5)
    assert counts(store)[0] == 1
    server.start()
    for _ in range(300):
        if counts(store)[0] == 0:
            break
        time.sleep(0.1)
    carrier.close()
    shelf = reach(store)
    name = place.seal().row_id(f'["turns",{row}]')
    assert list(shelf.get([name])) == [name]
    shelf.close()


# Forgetting -------------------------------------------------------------------------------------------------


def test_what_is_forgotten_is_gone_from_the_server_and_its_files(
    tmp_path: Path, place: Place, server: Server
) -> None:
    store = lived(tmp_path / "m.db")
    seal = place.seal()
    ((number,),) = store.rows("SELECT id FROM turns WHERE heard LIKE 'Ben likes % on day 7.'")
    move_out(store, place, NOW)
    old = [seal.row_id(f'["turns",{number}]')]
    shelf = reach(store)
    (before,) = shelf.get([old[0]]).values()
    forgotten = about(store, "day 7")
    forget.carry_out(store, foresee_about(store, "day 7", forgotten))
    assert forgotten
    send_all(store, seal, shelf)
    shelf.close()
    shelf = reach(store)
    assert place_of(store) != place  # milvus-lite had to be given a new collection
    assert shelf.get([old[0]]) == {}
    assert not any("day 7." in text for _, text in recalled(store, "What was on day 7?"))
    shelf.close()
    left = server.data()
    assert old[0].hex().encode() not in left
    assert before.sealed.hex().encode() not in left
    assert base64.b85encode(before.sealed) not in left
    stays = store.rows("SELECT row_id FROM hosted_away LIMIT 1") or [(seal.row_id('["turns",1]'),)]
    assert stays[0][0].hex().encode() in left  # the search does find what is there


def test_a_forgetting_that_is_undone_is_undone_on_the_server_too(tmp_path: Path, place: Place) -> None:
    store = lived(tmp_path / "m.db")
    before = exported(store, vectors=False)
    move_out(store, place, NOW)
    window = Window(NOW, NOW + timedelta(hours=1))
    forget.carry_out(store, foresee_about(store, "chess", about(store, "chess")), undo=window)
    shelf = reach(store)
    send_all(store, place.seal(), shelf)
    undo(store)
    send_all(store, place.seal(), shelf)
    held = shelf.count()
    shelf.close()
    assert sorted(exported(store, vectors=False).splitlines()) == sorted(before.splitlines())
    assert held == 1 + sum(
        store.rows(f"SELECT count(*) FROM {t}")[0][0]
        for t in ("turns", "contexts", "events", "summaries", "index_keys", "profile", "profile_sources",
                  "turn_used", "jobs", "forgotten")
    )  # fmt: skip


# Isolation --------------------------------------------------------------------------------------------------

HOSTILE = (
    'ann" or id != "',
    "ann') or 1 == 1 --",
    "shelf >= -5",
    "*",
    "",
    "ann\x00",
    "../ann",
    "id in ['x']",
    "名",
)


def test_no_wearer_sees_counts_or_deletes_anothers_rows_whatever_their_name(
    tmp_path: Path, server: Server
) -> None:
    if server.process is None:
        server.start()
    url, shelves = server.url, {}
    for wearer in ("ann", *HOSTILE):
        seal = Place(url, wearer, new_secret()).seal()
        shelf = MilvusShelf(Place(url, wearer, new_secret()), make=True)
        rows = [(n := seal.row_id(f"{wearer} {i}"), seal.seal(n, 0, b"secret")) for i in range(5)]
        shelf.put([(SealedRow(n, 0, box), seal.leaving(meaning(str(i)))) for i, (n, box) in enumerate(rows)])
        shelves[wearer] = shelf, seal, [n for n, _ in rows]
    assert len({collection_of(wearer) for wearer in shelves}) == len(shelves)
    for wearer, (shelf, seal, mine) in shelves.items():
        theirs = [n for other, (_, _, rows) in shelves.items() if other != wearer for n in rows]
        assert shelf.count() == 5
        assert {row.row_id for row in shelf.every()} == set(mine)
        assert {n for n, _ in shelf.nearest(0, seal.leaving(meaning("3")), 1000, 5.0)} == set(mine)
        assert shelf.get([*theirs, mine[0]]).keys() == {mine[0]}
        shelf.delete(theirs)
    assert [shelf.count() for shelf, _, _ in shelves.values()] == [5] * len(shelves)
    ann, ben = shelves["ann"], shelves[HOSTILE[0]]
    ben[0].drop()
    assert ann[0].count() == 5
    for shelf, _, _ in shelves.values():
        if shelf is not ben[0]:
            shelf.drop()
        shelf.close()


def test_a_collection_under_another_key_is_refused_and_left_as_it_is(tmp_path: Path, place: Place) -> None:
    store, other = lived(tmp_path / "a.db", 5), lived(tmp_path / "b.db", 5)
    move_out(store, place, NOW)
    with pytest.raises(NotReached, match="another key"):
        move_out(other, replace(place, secret=new_secret()), NOW)
    assert place_of(other) is None
    shelf = reach(store)
    assert owner(shelf, place.seal()) == store.meta("device")
    shelf.close()


# The commands -----------------------------------------------------------------------------------------------


def test_the_wearer_moves_the_memory_and_is_told_where_it_is(tmp_path: Path, place: Place) -> None:
    file, key = tmp_path / "m.db", tmp_path / "key"
    lived(file, 30).close()
    key.write_text(KEY.hex())
    key.chmod(0o600)

    def run(*words: str) -> dict[str, object]:
        done = CliRunner().invoke(
            main, ["memory", *words, "--memory", str(file), "--key-file", str(key), "--json"]
        )
        assert done.exit_code == 0, done.output
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        return found

    assert run("hosted") == {"hosted": False}
    away = run("move", "--to", f"milvus:{place.url}", "--wearer", "ann & co", "--keep-days", "5")["away"]
    told = run("hosted")
    assert told["away"] == away
    assert told["wearer"] == "ann & co"
    assert run("hosted", "--recovery", str(tmp_path / "rec"))["waiting"] == 0
    assert len(bytes.fromhex((tmp_path / "rec").read_text())) == 32
    assert (tmp_path / "rec").stat().st_mode & 0o77 == 0
    run("move", "--to", "local")
    assert run("hosted") == {"hosted": False}


@pytest.mark.parametrize("to", ["http://far.example:19530", "milvus:", "milvus:http://10.0.0.1:19530"])
def test_a_server_over_the_network_without_tls_is_refused(tmp_path: Path, to: str) -> None:
    lived(tmp_path / "m.db", 1).close()
    key = tmp_path / "key"
    key.write_text(KEY.hex())
    key.chmod(0o600)
    done = CliRunner().invoke(
        main, ["memory", "move", "--to", to, "--memory", str(tmp_path / "m.db"), "--key-file", str(key)]
    )
    assert done.exit_code == 2
