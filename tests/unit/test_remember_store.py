"""The memory file: opened only with its key, unreadable without it, unchanged by what fails."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
import sqlcipher3

from os1_edge.events import RealtimeContext
from os1_edge.remember import connection
from os1_edge.remember.key import KEY_BYTES, BadKey, default_key_file, load_or_make
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import BadMemory, ProfileEntry, Store, Vector

KEY, OTHER = bytes(range(32)), bytes(32)
MONDAY = datetime(2026, 3, 2, 8)


def direction(*weights: float) -> Vector:
    """A unit vector along the first few dimensions."""
    vector = np.zeros(DIMENSIONS, np.float32)
    vector[: len(weights)] = weights
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def told(store: Store, turn_id: str, heard: str, vector: Vector, time: datetime = MONDAY) -> int:
    return store.add_turn(turn_id, 0, time, heard, "Noted.", "kitchen", vector)


def entry(text: str, kind: str = "health", turn: str = "t0001") -> ProfileEntry:
    return ProfileEntry(0, kind, text, 0.8, MONDAY, turn)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "memory.db"


@pytest.fixture
def kept(file: Path) -> Path:
    """A closed memory that holds one turn."""
    store = Store(file, KEY)
    told(store, "t0001", "I am allergic to peanuts.", direction(1))
    store.close()
    return file


def test_what_was_told_is_there_after_a_restart(kept: Path) -> None:
    store = Store(kept, KEY)
    ((turn, similarity),) = store.nearest_turns(direction(1), 5)
    assert (turn.turn_id, turn.heard, turn.reply, turn.location) == (
        "t0001", "I am allergic to peanuts.", "Noted.", "kitchen",
    )  # fmt: skip
    assert turn.time == MONDAY
    assert similarity == pytest.approx(1.0, abs=1e-6)
    store.close()


def test_another_key_is_refused_and_the_file_stays_as_it_is(kept: Path) -> None:
    before = kept.read_bytes()
    with pytest.raises(BadMemory, match=r"memory\.db: not a memory file, or another key"):
        Store(kept, OTHER)
    assert kept.read_bytes() == before
    assert sorted(p.name for p in kept.parent.iterdir()) == ["memory.db"]
    Store(kept, KEY).close()


@pytest.mark.parametrize("kind", ["text", "plain SQLite", "cut short", "garbled"])
def test_a_file_that_is_no_memory_is_refused_and_left_alone(kind: str, kept: Path) -> None:
    import sqlite3

    whole = kept.read_bytes()
    if kind == "text":
        kept.write_text("Dear diary, " * 500)
    elif kind == "plain SQLite":
        kept.unlink()
        plain = sqlite3.connect(kept)
        plain.execute("CREATE TABLE x (y)")
        plain.commit()
        plain.close()
    elif kind == "cut short":
        kept.write_bytes(whole[:1000])
    else:
        kept.write_bytes(bytes(b ^ 0x5A for b in whole[:4096]) + whole[4096:])
    before = kept.read_bytes()
    with pytest.raises(BadMemory, match=r"memory\.db"):
        Store(kept, KEY)
    assert kept.read_bytes() == before


def test_a_folder_is_no_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.db").mkdir()
    with pytest.raises(BadMemory, match=r"memory\.db"):
        Store(tmp_path / "memory.db", KEY)


def test_a_memory_that_somebody_writes_all_the_while_is_told_as_in_use(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_MS", 10)
    with connection.open_alone(kept, KEY) as writer:
        writer.execute("PRAGMA locking_mode = NORMAL")
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(BadMemory, match="another OS-1 is using it"):
            Store(kept, KEY, embedder="minilm")


def test_a_memory_of_a_newer_release_is_refused_unchanged(kept: Path) -> None:
    db = sqlcipher3.connect(str(kept))
    db.execute(f"PRAGMA key = \"x'{KEY.hex()}'\"")
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = kept.read_bytes()
    with pytest.raises(BadMemory, match="newer release"):
        Store(kept, KEY)
    assert kept.read_bytes() == before


def test_no_word_can_be_read_from_the_file(file: Path) -> None:
    store = Store(file, KEY)
    told(store, "t0001", "peanuts make me ill", direction(1))
    store.add_profile(entry("The wearer is allergic to peanuts."), direction(1))
    store.add_context(RealtimeContext(1.0, "a peanut butter jar", "peanuts", "kitchen", "eating"), MONDAY)
    raw = b"".join(p.read_bytes() for p in file.parent.iterdir())  # with the write-ahead log
    store.close()
    raw += file.read_bytes()
    for word in (b"peanut", b"kitchen", b"allergic", b"Noted", b"SQLite format", b"CREATE TABLE"):
        assert word not in raw, word


def test_a_turn_is_kept_whole_or_not_at_all(file: Path) -> None:
    store = Store(file, KEY)
    with pytest.raises(sqlcipher3.DatabaseError):
        told(store, "t0001", "half", np.zeros(3, np.float32))  # the vector does not fit
    assert store._rows("SELECT count(*) FROM turns") == [(0,)]
    told(store, "t0002", "whole", direction(1))
    assert [t.heard for t, _ in store.nearest_turns(direction(1), 5)] == ["whole"]
    store.close()


def test_a_profile_line_is_kept_whole_or_not_at_all(file: Path) -> None:
    store = Store(file, KEY)
    first = store.add_profile(entry("The wearer likes tea.", "preference"), direction(1))
    with pytest.raises(sqlcipher3.DatabaseError):
        store.add_profile(entry("The wearer likes tea.", "mood"), direction(1), supersedes=[first])
    assert [e.id for e in store.profile()] == [first]
    assert [e.id for e, _ in store.nearest_profile(direction(1), 5)] == [first]
    store.close()


def test_a_turn_that_fails_at_the_very_end_leaves_the_memory_usable(file: Path) -> None:
    """COMMIT itself can fail: on a full disk, or as here on a rule that is checked only then."""
    store = Store(file, KEY)
    store.add_profile(entry("The wearer likes tea.", "preference"), direction(1))

    def write_badly() -> None:
        with store.transaction() as db:
            told(store, "t0001", "lost", direction(1))
            db.execute("PRAGMA defer_foreign_keys = ON")
            db.execute("UPDATE profile SET superseded_by = 999")

    with pytest.raises(sqlcipher3.IntegrityError):
        write_badly()
    assert [e.text for e in store.profile()] == ["The wearer likes tea."]
    told(store, "t0002", "kept", direction(1))
    store.close()
    store = Store(file, KEY)
    assert [t.heard for t, _ in store.nearest_turns(direction(1), 5)] == ["kept"]
    store.close()


def test_a_disk_that_runs_full_costs_that_turn_and_no_other(file: Path) -> None:
    store = Store(file, KEY)
    pages = store._rows("PRAGMA page_count")[0][0]
    store._rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlcipher3.OperationalError, match="full"):
        told(store, "t0001", "much " * 10_000, direction(1))
    store._rows("PRAGMA max_page_count = 100000")
    told(store, "t0002", "kept", direction(1))
    assert [t.heard for t, _ in store.nearest_turns(direction(1), 5)] == ["kept"]
    store.close()


def test_the_nearest_turn_comes_first(file: Path) -> None:
    store = Store(file, KEY)
    for turn_id, vector in (("far", direction(0, 1)), ("near", direction(3, 1)), ("mid", direction(1, 1))):
        told(store, turn_id, turn_id, vector)
    found = store.nearest_turns(direction(1), 3)
    assert [t.turn_id for t, _ in found] == ["near", "mid", "far"]
    assert [s for _, s in found] == pytest.approx([3 / 10**0.5, 0.5**0.5, 0.0], abs=1e-3)
    assert [t.turn_id for t, _ in store.nearest_turns(direction(1), 1)] == ["near"]
    store.close()


def test_a_line_said_again_replaces_the_old_one_and_keeps_it_as_history(file: Path) -> None:
    store = Store(file, KEY)
    old = store.add_profile(entry("The wearer likes tea.", "preference"), direction(1))
    new = store.add_profile(entry("The wearer likes green tea.", "preference", "t0007"), direction(1), [old])
    assert [(e.id, e.source_turn) for e in store.profile()] == [(new, "t0007")]
    assert [e.id for e, _ in store.nearest_profile(direction(1), 5)] == [new]
    history = store._rows("SELECT text, superseded_by FROM profile WHERE id = ?", old)
    assert history == [("The wearer likes tea.", new)]
    store.close()


def test_contexts_come_back_in_the_order_of_the_wearers_day(file: Path) -> None:
    store = Store(file, KEY)
    late = RealtimeContext(90.0, "A desk.", "", "office", "working")
    spoken = RealtimeContext(5.0, "A cup.", "Hello.", "kitchen", "unknown")
    silent = RealtimeContext(5.0, "A cup.", "", "kitchen", "unknown")
    for context, hours in ((late, 2), (spoken, 0), (silent, 0)):
        store.add_context(context, MONDAY + timedelta(hours=hours))
    assert [c for c, _ in store.contexts()] == [silent, spoken, late]
    assert store.contexts()[2][1] == MONDAY + timedelta(hours=2)
    store.close()


def test_many_threads_write_without_losing_a_turn(file: Path) -> None:
    store = Store(file, KEY)

    def write(who: int) -> None:
        for i in range(10):
            told(store, f"{who}-{i}", "x", direction(1))

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store._rows("SELECT count(*) FROM turns") == [(40,)]
    store.close()


def test_the_first_start_makes_a_key_that_only_the_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "memory.key"
    key = load_or_make(path)
    assert len(key) == KEY_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert load_or_make(path) == key
    assert load_or_make(tmp_path / "other.key") != key


def test_a_second_process_in_the_middle_of_making_the_key_gets_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, others = tmp_path / "memory.key", []

    def interrupted(size: int) -> str:
        monkeypatch.undo()
        others.append(load_or_make(path))
        return "ab" * size

    monkeypatch.setattr("os1_edge.remember.key.secrets.token_hex", interrupted)
    assert [load_or_make(path)] == others
    assert others != [b"\xab" * KEY_BYTES]
    assert [p.name for p in tmp_path.iterdir()] == ["memory.key"]


def test_processes_that_start_at_once_share_every_key(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from os1_edge.remember.key import load_or_make\n"
        "folder = Path(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
        "print([load_or_make(folder / f'{i}.key').hex() for i in range(200)])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    (first, error), (second, _) = (process.communicate(timeout=60) for process in both)
    assert first == second, error
    assert len(list(tmp_path.iterdir())) == 200


def test_a_crash_while_the_key_is_made_leaves_no_half_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.key"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as crash:
        crash.setattr("os1_edge.remember.key.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            load_or_make(path)
    assert list(tmp_path.iterdir()) == []
    assert len(load_or_make(path)) == KEY_BYTES


def test_what_a_killed_process_left_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "memory.key"
    for name in (".memory.key.", ".memory.key.tmp", ".memory.key.abcd1234"):
        (tmp_path / name).write_text("half a k")
    key = load_or_make(path)
    assert load_or_make(path) == key
    assert path.stat().st_nlink == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused_with_the_cure(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "memory.key"
    load_or_make(path)
    path.chmod(mode)
    with pytest.raises(BadKey, match="chmod 600"):
        load_or_make(path)
    path.chmod(0o600)
    load_or_make(path)


@pytest.mark.parametrize("text", [b"", b"abc", b"zz" * 32, b"00" * 31, b"00" * 33, b"\xff" * 64])
def test_a_spoilt_key_is_refused_and_never_replaced(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "memory.key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(BadKey, match="not a key"):
        load_or_make(path)
    assert path.read_bytes() == text


def test_the_key_file_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "my.key"))
    assert default_key_file() == tmp_path / "my.key"
    monkeypatch.delenv("OS1_KEY_FILE")
    assert default_key_file().name == "memory.key"
