"""A memory that lies on a Milvus server: moved there and home, recalled, cut off.

`scripts/test-hosted` runs this with what it needs; elsewhere it is skipped.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hosted_world import (
    EMBEDDER,
    NOW,
    Server,
    exported,
    here,
    lived,
    no_hurry,
    options,
    place,
    recalled,
    server,
    sound,
)
from memories import KEY

from os1_edge.remember import derived, forget
from os1_edge.remember.connection import unlock
from os1_edge.remember.hosted import courier, move
from os1_edge.remember.hosted import open as opening
from os1_edge.remember.hosted.courier import purge, send_all
from os1_edge.remember.hosted.move import adopt, move_home, move_out
from os1_edge.remember.hosted.open import reach
from os1_edge.remember.hosted.search import HostedSearch
from os1_edge.remember.hosted.shelf import MilvusShelf, NotReached, SealedRow
from os1_edge.remember.hosted.state import Place, counts, new_secret, place_of, put
from os1_edge.remember.hosted.window import Incomplete, let_go
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import now
from os1_edge.remember.store import BadMemory, Store

__all__ = ["no_hurry", "place", "server"]


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
    out = ["--to", f"milvus:{place.url}", "--wearer", place.wearer, "--keep-days", "0", *options(place)]
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


@pytest.mark.parametrize("at", [1, 2])
def test_a_move_whose_server_is_killed_goes_on_and_loses_nothing(
    at: int, tmp_path: Path, place: Place, server: Server
) -> None:
    store = lived(tmp_path / "m.db")
    before = exported(store)

    def killer() -> Callable[[str], None]:
        lines = iter(range(1, 100))
        return lambda _: server.stop(signal.SIGKILL) if next(lines) == at else None

    for way in (
        lambda tell: move_out(store, replace(place, keep_days=0), NOW, tell),
        lambda tell: move_home(store, tell),
    ):
        with pytest.raises(NotReached):
            way(killer())
        server.start()
        way(lambda _: None)
    assert exported(store) == before
    assert sound(store)


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


@pytest.mark.parametrize("revised", [False, True])
def test_what_the_server_lost_or_changed_is_told_and_all_else_comes_home(
    revised: bool, tmp_path: Path, place: Place
) -> None:
    store = lived(tmp_path / "m.db")
    before = exported(store)
    move_out(store, place, NOW)
    seal, shelf = place.seal(), reach(store)
    turns = "SELECT json_extract(name, '$[1]'), row_id FROM hosted_away WHERE name LIKE '[\"turns\",%'"
    away = dict(store.rows(turns))
    lost, changed = away[9 if revised else 3], away[4]  # 9 took the place of 7, which waits for it
    kept = shelf.get([lost, changed])
    shelf.delete([lost])
    forged = seal.seal(changed, 0, b"\0\0\0\x02{}")  # even by whoever has the key: an older state
    shelf.put([(SealedRow(changed, 0, forged), None)])
    with pytest.raises(Incomplete, match="3 rows" if revised else "2 rows"):
        move_home(store)
    assert counts(store)[1] == 2 + revised
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


def test_glasses_whose_memory_was_taken_over_change_nothing_more_though_their_line_is_open(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "EVERY_S", 3600.0)  # it works when the test says so
    store, other = lived(tmp_path / "m.db", 5), Store(tmp_path / "other.db", KEY)
    move_out(store, replace(place, keep_days=10_000), NOW)
    late = [store.add_turn(f"late{n}", 0, NOW, "From the old glasses.", "", "", None) for n in (0, 1)]
    carrier = courier.Courier(store, place.seal(), lambda: reach(store))
    carrier.once()
    adopt(other, place)
    theirs = reach(other)

    def held() -> set[tuple[bytes, bytes]]:
        return {(row.row_id, row.sealed) for row in theirs.every()}

    before = held()
    forget.carry_out(store, forget.foresee(store, [("turn", late[0])]))
    store.add_turn("later", 0, NOW, "Also from the old glasses.", "", "", None)
    rows, waits = here(store), counts(store)
    assert waits[0] > 1
    with pytest.raises(NotReached, match="taken over"):
        carrier.once()
    assert held() == before
    assert (here(store), counts(store)) == (rows, waits)
    carrier.close()
    theirs.close()


def test_a_takeover_while_work_is_under_way_stops_it(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other, seal = lived(tmp_path / "m.db", 15), Store(tmp_path / "other.db", KEY), place.seal()
    move_out(store, replace(place, keep_days=10_000), NOW)
    shelf, rows = reach(store), here(store)
    adopt(other, place)
    there = shelf.count()
    with pytest.raises(NotReached, match="taken over"):
        let_go(store, seal, shelf, NOW)
    with store.transaction() as db:
        put(db, "traces", "1")
    with pytest.raises(NotReached, match="taken over"):
        purge(store, seal, shelf)
    monkeypatch.setattr(move, "reach", lambda _: shelf)  # it was taken over while the rows came home
    with pytest.raises(NotReached, match="taken over"):
        move_home(store)
    theirs = reach(other)
    assert theirs.count() == there
    assert here(store) == rows
    theirs.close()


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
    monkeypatch.setattr(courier, "LONGEST_S", 0.5)
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


def test_what_changed_while_another_command_held_the_file_is_sent_afterwards(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(courier, "EVERY_S", 0.05)
    monkeypatch.setattr(courier, "LONGEST_S", 0.5)
    store = lived(tmp_path / "m.db", 3)
    move_out(store, place, NOW)
    store.add_turn("new", 0, now(), "I like plums.", "", "", None)
    with store.reading() as db:
        db.execute("PRAGMA busy_timeout = 0")  # in place of 5 s
    command = unlock(store.path, KEY)
    command.execute("BEGIN IMMEDIATE")
    carrier = courier.Courier(store, place.seal(), lambda: reach(store))
    for _ in range(300):
        if caplog.records:
            break
        time.sleep(0.1)
    assert ["OperationalError" in line for line in caplog.messages] == [True]
    assert counts(store)[0] == 1
    command.close()
    for _ in range(300):
        if counts(store)[0] == 0:
            break
        time.sleep(0.1)
    assert counts(store)[0] == 0
    carrier.close()
