"""A damaged memory: told in words, saved as far as it can be read, and never worked on without a copy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE

import pytest
from memories import KEY, MONDAY, OTHER, event, know, meaning, say, see, summary, texts

from os1_edge.remember import key as keys
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.forget import carry_out, foresee
from os1_edge.remember.key import from_passphrase, salt_of
from os1_edge.remember.repair import Health, check, repair
from os1_edge.remember.schema import STEPS
from os1_edge.remember.store import BadMemory, Store
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo

PAGE = 4096


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed memory of 120 turns."""
    path = tmp_path / "memory.db"
    store = Store(path, KEY)
    with store.transaction():
        for n in range(120):
            row = say(store, f"t{n}", f"Number {n} " + "and more " * 30, n)
            if n % 10 == 0:
                event(store, [see(store, "gym", n)], f"Event {n}", n)
                summary(store, f"s{n}", f"Summary {n}", 1, n)
                know(store, f"Line {n}", [row], n)
    store.close()
    return path


def spoil(path: Path, pages: list[int]) -> None:
    whole = bytearray(path.read_bytes())
    for page in pages:
        whole[page * PAGE + 200 : page * PAGE + 260] = bytes(60)
    path.write_bytes(whole)


def heard(path: Path, key: bytes = KEY) -> set[str]:
    store = Store(path, key)
    try:
        return {t.turn_id for t in store.turns()}
    finally:
        store.close()


def test_a_sound_memory_is_left_alone(file: Path) -> None:
    before = file.read_bytes()
    assert check(file, KEY).problems == []
    assert repair(file, KEY, MONDAY) is None
    assert file.read_bytes() == before
    assert [p.name for p in file.parent.iterdir()] == ["memory.db"]


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("DELETE FROM items WHERE id = 3", "1 memories cannot be searched"),
        ("UPDATE items SET text = 'other' WHERE id = 3", "1 entries lead nowhere"),
        ("DELETE FROM item_bits WHERE rowid = 3", "1 vectors do not fit"),
        ("INSERT INTO items_fts (rowid, text) VALUES (3, 'word')", "its words are not"),
    ],
)
def test_an_index_that_is_wrong_is_put_right_without_loss(harm: str, told: str, file: Path) -> None:
    store = Store(file, KEY)
    before = texts(store)
    store.rows(harm)
    store.close()
    health = check(file, KEY)
    assert any(told in problem for problem in health.problems)
    assert health.index_only
    done = repair(file, KEY, MONDAY)
    assert done is not None
    assert done.kept_aside is None
    assert check(file, KEY).problems == []
    store = Store(file, KEY)
    assert texts(store) == before
    store.close()


def test_damaged_pages_cost_what_stood_on_them_and_nothing_else(file: Path) -> None:
    pages = file.stat().st_size // PAGE
    told = lost = 0
    for page in range(8, pages, 23):
        whole = file.read_bytes()
        spoil(file, [page])
        health = check(file, KEY)
        told += bool(health.problems)
        done = repair(file, KEY, MONDAY)
        assert done is not None
        assert done.kept_aside == file.with_name("memory.db.damaged-20260302-080000")
        assert done.kept_aside.read_bytes()[page * PAGE + 200 : page * PAGE + 260] == bytes(60)
        assert check(file, KEY).problems == []
        lost = max(lost, 120 - len(heard(file)))
        assert 120 - len(heard(file)) <= done.unreadable.get("turns", 0)
        file.write_bytes(whole)
    assert told == len(range(8, pages, 23))
    assert lost < 20  # a leaf holds about a dozen turns


def test_a_file_cut_short_gives_back_what_is_left(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 4 // 5 // PAGE * PAGE])
    cut = file.read_bytes()
    with pytest.raises(BadMemory, match="os1 memory repair"):
        Store(file, KEY)
    assert file.read_bytes() == cut
    done = repair(file, KEY, MONDAY)
    assert done is not None
    assert done.kept_aside is not None
    assert done.kept_aside.read_bytes() == cut
    assert check(file, KEY).problems == []
    assert 0 < len(heard(file)) < 120


def test_a_repaired_memory_still_opens_with_its_passphrase(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_SCRYPT_N", 1 << 8)
    store = Store(file, KEY)
    locked = file.with_name("locked.db")
    backup(store, locked, Lock.of("correct horse battery"))
    store.close()
    spoil(locked, [20])
    assert repair(locked, from_passphrase("correct horse battery", salt_of(locked)), MONDAY) is not None
    assert heard(locked, from_passphrase("correct horse battery", salt_of(locked)))


@pytest.mark.parametrize("what", [check, lambda path, key: repair(path, key, MONDAY)])
def test_a_wrong_key_or_a_lost_first_page_is_told_and_nothing_is_touched(
    what: Callable[[Path, bytes], object], file: Path
) -> None:
    before = file.read_bytes()
    with pytest.raises(BadMemory, match="another key"):
        what(file, OTHER)
    assert file.read_bytes() == before
    spoil(file, [0])
    spoilt = file.read_bytes()
    with pytest.raises(BadMemory, match="not a memory file"):
        what(file, KEY)
    assert file.read_bytes() == spoilt
    assert [p.name for p in file.parent.iterdir()] == ["memory.db"]


HOLD = """
import sys; from pathlib import Path; from os1_edge.remember.store import Store
store = Store(Path(sys.argv[1]), bytes(range(32))); print("open", flush=True); sys.stdin.read()
"""


def test_a_memory_in_use_is_not_replaced_under_its_user(file: Path) -> None:
    spoil(file, [30])
    user = subprocess.Popen([sys.executable, "-c", HOLD, str(file)], stdin=PIPE, stdout=PIPE, text=True)
    assert user.stdout is not None
    assert user.stdout.readline() == "open\n"
    before = file.read_bytes()
    with pytest.raises(BadMemory, match="another OS-1"):
        repair(file, KEY, MONDAY)
    assert file.read_bytes() == before
    user.communicate("")
    assert repair(file, KEY, MONDAY) is not None


def test_vectors_that_were_lost_are_made_again_from_the_words(file: Path) -> None:
    store = Store(file, KEY)
    with store.transaction() as db:
        db.execute("DELETE FROM item_vectors WHERE id <= 5")
    store.close()
    repair(file, KEY, MONDAY)
    store = Store(file, KEY)
    missing = store.without_vector(99)
    assert len(missing) == 5
    for item, text in missing:
        store.set_vector(item, meaning(text))
    assert store.without_vector(99) == []
    store.close()


@pytest.mark.parametrize("size", [0, 10])
def test_an_empty_or_tiny_file_is_no_memory_and_stays(size: int, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(bytes(size))
    with pytest.raises(BadMemory, match=r"memory\.db"):
        Store(path, KEY)
    assert path.read_bytes() == bytes(size)
    assert [p.name for p in tmp_path.iterdir()] == ["memory.db"]


def test_another_programs_database_under_the_same_key_is_refused(tmp_path: Path) -> None:
    from os1_edge.remember.connection import unlock

    path = tmp_path / "memory.db"
    db = unlock(path, KEY, create=True)
    db.execute("CREATE TABLE recipes (name)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(BadMemory, match="another program"):
        Store(path, KEY)
    assert path.read_bytes() == before


READ_ONLY = """
import os, sys; from pathlib import Path
import os1_edge.remember.repair
from os1_edge.remember.store import BadMemory, Store
if os.geteuid() == 0: os.seteuid(65534)  # root may write everything
try: Store(Path(sys.argv[1]), bytes(range(32)))
except BadMemory as e: print(e)
"""


def test_a_memory_that_may_only_be_read_is_told_and_stays() -> None:
    with tempfile.TemporaryDirectory() as name:  # where another user may look in, unlike pytest's own folder
        path = Path(name) / "memory.db"
        Store(path, KEY).close()
        path.parent.chmod(0o755)
        path.chmod(0o444)
        before = path.read_bytes()
        command = [sys.executable, "-c", READ_ONLY, str(path)]
        out = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "cannot be opened to write" in out.stdout, out.stderr
        assert path.read_bytes() == before
        assert [p.name for p in path.parent.iterdir()] == ["memory.db"]


def test_what_could_be_undone_can_be_undone_after_a_repair(file: Path) -> None:
    store = Store(file, KEY)
    window = Window(MONDAY, MONDAY + timedelta(hours=1))
    carry_out(store, foresee(store, [("turn", store.turns()[70].id)]), undo=window)
    store.close()
    spoil(file, [40])
    assert check(file, KEY).problems != []
    done = repair(file, KEY, MONDAY)
    assert done is not None
    assert done.saved["trash_batches"] == 1
    assert "t70" not in heard(file)
    store = Store(file, KEY)
    assert undo(store) is not None
    store.close()
    assert "t70" in heard(file)
    assert check(file, KEY).problems == []


def test_a_damaged_file_of_an_older_release_is_saved_and_brought_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with monkeypatch.context() as older:
        older.setattr("os1_edge.remember.migrate.STEPS", STEPS[:2])
        store = Store(path, KEY)
    for n in range(120):
        say(store, f"t{n}", f"Number {n} " + "and more " * 30, n)
    store.close()
    spoil(path, [40])
    with monkeypatch.context() as found:  # too damaged to be brought forward first
        found.setattr("os1_edge.remember.repair.check", lambda *_: Health(["page"], index_only=False))
        assert repair(path, KEY, MONDAY) is not None
    assert len(heard(path)) > 100
    assert check(path, KEY).problems == []


def test_a_repaired_memory_is_for_its_owner_only_and_stays_where_it_lies(file: Path) -> None:
    link = file.parent / "link.db"
    link.symlink_to(file)
    spoil(file, [file.stat().st_size // PAGE // 2])
    umask = os.umask(0o022)
    try:
        done = repair(link, KEY, MONDAY)
    finally:
        os.umask(umask)
    assert done is not None
    assert done.kept_aside is not None
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert check(file, KEY).problems == []
