"""An older memory file is brought forward, with a copy kept; what cannot be done leaves it as it was."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlcipher3
import sqlite_vec
from memories import KEY, MONDAY, event, meaning, say, see, texts

from os1_edge.remember import migrate as migrating
from os1_edge.remember.forget import carry_out, foresee
from os1_edge.remember.mend import compare
from os1_edge.remember.migrate import statements
from os1_edge.remember.schema import FIRST, SECOND, STEPS
from os1_edge.remember.store import BadMemory, Store
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo

SAID = ("I am allergic to peanuts.", "I like tea.", "I do not like tea.", "Who is that?")


def opened(path: Path) -> Any:
    db = sqlcipher3.connect(str(path), isolation_level=None)
    db.execute(f"PRAGMA key = \"x'{KEY.hex()}'\"")
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    return db


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A file of the first release, as that release wrote it."""
    path = tmp_path / "memory.db"
    db = opened(path)
    db.execute("PRAGMA journal_mode = WAL")
    for statement in statements(FIRST):
        db.execute(statement)
    db.execute("PRAGMA user_version = 1")
    for number, heard in enumerate(SAID, 1):
        when = (MONDAY + timedelta(hours=number)).isoformat()
        db.execute(
            "INSERT INTO turns (turn_id, revision, time, heard, reply) VALUES (?,0,?,?,'ok')",
            (f"t{1 + number % 2}", when, heard),  # the first release numbered anew in every run
        )
        db.execute("INSERT INTO turn_vectors (rowid, embedding) VALUES (?,?)", (number, meaning(heard)))
    for number, (text, turn) in enumerate((("likes tea", 2), ("does not like tea", 3)), 1):
        when = (MONDAY + timedelta(hours=turn)).isoformat()
        db.execute(
            "INSERT INTO profile (kind, text, confidence, learned, source_turn) "
            "VALUES ('preference',?,0.8,?,?)",
            (f"The wearer {text}.", when, f"t{1 + turn % 2}"),
        )
        db.execute("INSERT INTO profile_vectors (rowid, embedding) VALUES (?,?)", (number, meaning(text)))
    db.execute("UPDATE profile SET superseded_by = 2 WHERE id = 1")
    db.execute("DELETE FROM profile_vectors WHERE rowid = 1")
    seen = (3.5, MONDAY.isoformat(), "A desk.", "hm", "office", "busy")
    db.execute("INSERT INTO contexts VALUES (1,?,?,?,?,?,?)", seen)
    db.close()
    return path


def test_everything_of_the_first_release_is_there_and_found(first: Path) -> None:
    store = Store(first, KEY)
    assert [t.heard for t in store.turns()] == list(SAID)
    for heard in SAID:
        ((turn, similarity), *_) = store.nearest_turns(meaning(heard), 1)
        assert (turn.heard, similarity) == (heard, pytest.approx(1, abs=1e-3))
    (entry,) = store.profile()
    assert (entry.text, entry.valid_from) == ("The wearer does not like tea.", MONDAY + timedelta(hours=3))
    assert [s.quote for s in store.sources(entry.id)] == ["I do not like tea."]
    old = store.profile_history()[0]
    assert (old.superseded_by, old.valid_to) == (entry.id, entry.valid_from)
    assert [c.scene for c, _ in store.contexts()] == ["A desk."]
    by_words = "SELECT i.text FROM items i JOIN items_fts f ON f.rowid = i.id WHERE items_fts MATCH 'peanut'"
    assert store.rows(by_words) == [(SAID[0],)]
    with store.reading() as db:
        assert not compare(db)
    store.close()


def test_the_same_row_gets_the_same_uid_wherever_it_is_brought_forward(first: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    twin = tmp_path / "elsewhere" / "memory.db"
    twin.write_bytes(first.read_bytes())
    uids = []
    for path in (first, twin):
        store = Store(path, KEY)
        uids.append(store.rows("SELECT uid FROM turns UNION ALL SELECT uid FROM profile ORDER BY 1"))
        store.close()
    assert uids[0] == uids[1]
    assert len(set(uids[0])) == len(SAID) + 2


def test_a_copy_of_the_old_file_is_kept_and_opens_with_the_key(first: Path) -> None:
    before = first.read_bytes()
    (first.parent / "memory.db.v0.bak").write_text("an older one")
    Store(first, KEY).close()
    copy = first.parent / "memory.db.v1.bak"
    assert copy.read_bytes() == before
    assert copy.stat().st_mode & 0o077 == 0
    assert sorted(p.name for p in first.parent.iterdir()) == ["memory.db", "memory.db.v1.bak"]
    Store(first, KEY).close()  # once only
    assert copy.read_bytes() == before


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A file as the release before the third step wrote it."""
    path = tmp_path / "memory.db"
    with pytest.MonkeyPatch.context() as older:
        older.setattr(migrating, "STEPS", (FIRST, SECOND))
        store = Store(path, KEY)
    say(store, "t1", "I am allergic to peanuts.")
    event(store, [see(store, "gym", 10)], "Trained.", 10)
    store.close()
    return path


def test_everything_of_the_second_step_is_there_and_can_be_forgotten_for_a_while(second: Path) -> None:
    before = second.read_bytes()
    store = Store(second, KEY)
    assert store.rows("PRAGMA user_version") == [(len(STEPS),)]
    assert (second.parent / "memory.db.v2.bak").read_bytes() == before
    kept = texts(store)
    assert kept == ["I am allergic to peanuts.", "Trained.", "key of Trained."]
    rows = [("turn", 1), ("event", 1)]
    carry_out(store, foresee(store, rows), undo=Window(MONDAY, MONDAY + timedelta(hours=1)))
    assert texts(store) == []
    undo(store)
    assert texts(store) == kept
    store.close()


@pytest.mark.parametrize("cut", ["CREATE TABLE trash (", "CREATE INDEX trash_by_batch"])
def test_a_third_step_that_is_cut_off_is_done_the_next_time(
    cut: str, second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        third = STEPS[2].replace(cut, f"SELECT no_such_function(); {cut}")
        broken.setattr(migrating, "STEPS", (FIRST, SECOND, third))
        with pytest.raises(BadMemory):
            Store(second, KEY)
    db = opened(second)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'trash%'").fetchone() == (0,)
    db.close()
    Store(second, KEY).close()


def test_the_copy_holds_what_lay_in_the_log_only(first: Path) -> None:
    db = opened(first)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("UPDATE turns SET heard = 'in the log' WHERE id = 1")
    log = first.with_name("memory.db-wal").read_bytes()
    whole = first.read_bytes()
    db.close()
    first.write_bytes(whole)
    first.with_name("memory.db-wal").write_bytes(log)  # as a power loss leaves them
    Store(first, KEY).close()
    copy = opened(first.parent / "memory.db.v1.bak")
    assert copy.execute("SELECT heard FROM turns WHERE id = 1").fetchone() == ("in the log",)
    copy.close()


def test_a_step_that_fails_leaves_the_old_memory(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(migrating, "STEPS", (FIRST, STEPS[1] + "SELECT no_such_function();"))
        with pytest.raises(BadMemory):
            Store(first, KEY)
    db = opened(first)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM turns").fetchone() == (len(SAID),)
    db.close()
    store = Store(first, KEY)
    assert len(store.turns()) == len(SAID)
    store.close()


def test_no_room_for_the_copy_leaves_the_old_memory(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(migrating, "copy_whole", full)
        with pytest.raises(BadMemory, match="No space"):
            Store(first, KEY)
    db = opened(first)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def test_a_new_memory_has_no_copy_and_is_for_its_owner_only(tmp_path: Path) -> None:
    Store(tmp_path / "memory.db", KEY).close()
    assert [p.name for p in tmp_path.iterdir()] == ["memory.db"]
    assert (tmp_path / "memory.db").stat().st_mode & 0o777 == 0o600


def test_a_start_that_is_cut_off_leaves_no_half_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(migrating, "STEPS", (FIRST, STEPS[1] + "SELECT no_such_function();"))
        with pytest.raises(BadMemory):
            Store(tmp_path / "memory.db", KEY)
    assert list(tmp_path.iterdir()) == []
    Store(tmp_path / "memory.db", KEY).close()


def test_statements_of_a_script_are_cut_outside_triggers_only() -> None:
    script = "CREATE TABLE a (b);\nCREATE TRIGGER t AFTER DELETE ON a BEGIN\n SELECT 1;\nEND;\n"
    assert [s.split()[1] for s in statements(script)] == ["TABLE", "TRIGGER"]


def test_of_two_that_bring_a_file_forward_at_once_the_second_finds_it_done(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_of = migrating._step

    def another_is_faster(db: Any) -> int:
        step = step_of(db)
        monkeypatch.setattr(migrating, "_step", step_of)
        Store(first, KEY).close()
        return step

    monkeypatch.setattr(migrating, "_step", another_is_faster)
    store = Store(first, KEY)
    assert [t.heard for t in store.turns()] == list(SAID)
    store.close()
