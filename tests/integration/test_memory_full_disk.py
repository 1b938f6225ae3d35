"""The disk is full at any moment: a clear error, nothing of what was kept is lost, and all goes on once there
is room. A limit on the size of files (RLIMIT_FSIZE) stands for it: the system refuses the same writes."""

from __future__ import annotations

import io
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlcipher3
from click.testing import CliRunner

from os1_edge.cli import main
from os1_edge.remember import derived, forget
from os1_edge.remember import migrate as migrating
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.export import export
from os1_edge.remember.key import KeySource
from os1_edge.remember.merge import import_lines
from os1_edge.remember.rekey import find_key, new_lock, rekey
from os1_edge.remember.repair import check
from os1_edge.remember.rows import StoredSummary
from os1_edge.remember.store import BadMemory, Store
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo

BEGIN = datetime(2026, 3, 2, 8)
ERRORS = (BadMemory, OSError, sqlcipher3.DatabaseError)


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file grows beyond ``size`` bytes."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A memory of half a megabyte under the wearer's key."""
    for name in ("OS1_PASSPHRASE", "OS1_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "wearer.key"))
    monkeypatch.setenv("OS1_MEMORY", str(tmp_path / "memory.db"))
    path = tmp_path / "memory.db"
    store = Store(path, find_key(path))
    with store.transaction():
        for number in range(120):
            say(store, number)
        derived.put_summary(store, StoredSummary(0, "s", BEGIN, BEGIN, "About words.", "llm", 120), None)
    store.close()
    return path


def say(store: Store, number: int) -> int:
    heard = f"word{number} " + f"and {number} more of it " * 90
    when = BEGIN + timedelta(minutes=number)
    return store.add_turn(f"t{number}", 0, when, heard, "ok", "gym", None, session_id="s")


def content(path: Path) -> list[Any]:
    """All that the memory holds, once it has been found sound; nothing half written lies beside it."""
    key = find_key(path)
    assert check(path, key).problems == []
    store = Store(path, key)
    found = [
        store.rows(f"SELECT * FROM {table} ORDER BY 1, 2")
        for table in ("turns", "summaries", "forgotten", "trash", "trash_batches")
    ]
    store.close()
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []
    return found


def write_on(path: Path) -> None:
    store = Store(path, find_key(path))
    try:
        for number in range(1000, 1300):
            say(store, number)
    finally:
        store.close()


def forget_half(path: Path) -> None:
    store = Store(path, find_key(path))
    try:
        rows = [("turn", turn.id) for turn in store.turns()[:60]]
        receipt = forget.carry_out(store, forget.foresee(store, rows))
        if receipt.left:
            raise OSError(28, receipt.left)
    finally:
        store.close()


def forget_for_a_while(path: Path) -> None:
    store = Store(path, find_key(path))
    try:
        rows = [("turn", turn.id) for turn in store.turns()[:110]]
        window = Window(BEGIN, BEGIN + timedelta(hours=1))
        forget.carry_out(store, forget.foresee(store, rows), undo=window)
    finally:
        store.close()


def back_up(path: Path) -> None:
    store = Store(path, find_key(path))
    try:
        backup(store, path.with_name("copy.db"), Lock(find_key(path)))
    finally:
        store.close()


def lock_anew(path: Path) -> None:
    lock, source = new_lock(KeySource("file"), path)
    rekey(path, find_key(path), lock, source)


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("work", [back_up, lock_anew], ids=lambda work: work.__name__)
def test_a_copy_for_which_there_is_no_room_leaves_all_as_it_was(
    work: Callable[[Path], None], share: float, file: Path
) -> None:
    before = content(file)
    with full_at(int(file.stat().st_size * share)), pytest.raises(ERRORS):
        work(file)
    assert content(file) == before
    assert not file.with_name("copy.db").exists()
    work(file)
    assert content(file) == before


@pytest.mark.parametrize("more", [0, 40_000])
def test_what_was_kept_before_the_disk_was_full_is_there(more: int, file: Path) -> None:
    before = content(file)
    with full_at(file.stat().st_size + more), pytest.raises(ERRORS):
        write_on(file)
    after = content(file)
    assert after[0][: len(before[0])] == before[0]
    numbers = [row[3] for row in after[0][len(before[0]) :]]
    assert numbers == [f"t{1000 + n}" for n in range(len(numbers))]  # the first ones, none in between
    write_on(file)


@pytest.mark.parametrize("more", [-300_000, 0, 20_000])
@pytest.mark.parametrize("work", [forget_half, forget_for_a_while], ids=lambda work: work.__name__)
def test_a_forgetting_for_which_there_is_no_room_is_done_whole_or_not_at_all(
    work: Callable[[Path], None], more: int, file: Path
) -> None:
    before = content(file)
    try:
        with full_at(file.stat().st_size + more):
            work(file)
    except ERRORS:
        pass
    after = content(file)
    gone = len(before[0]) - len(after[0])
    assert gone in (0, 60 if work is forget_half else 110)
    if gone == 0:
        assert after == before
        work(file)
    if work is forget_for_a_while:
        store = Store(file, find_key(file))
        with full_at(int(file.stat().st_size * 0.3)), pytest.raises(ERRORS):
            undo(store)
        assert undo(store) is not None
        store.close()
        assert content(file)[0] == before[0]


@pytest.mark.parametrize("share", [0.6])
def test_an_export_and_an_import_without_room_change_nothing(share: float, file: Path) -> None:
    before = content(file)
    out = file.with_name("all.jsonl")
    with full_at(int(200_000 * share)):
        result = CliRunner().invoke(main, ["memory", "export", str(out)])
    assert result.exit_code != 0
    assert not isinstance(result.exception, sqlcipher3.Error)
    assert not out.exists()
    lines = io.StringIO()
    store = Store(file, find_key(file))
    export(store, lines)
    store.close()
    other = Store(file.with_name("other.db"), bytes(32))
    with full_at(int(500_000 * share)), pytest.raises(ERRORS):
        import_lines(other, lines.getvalue().splitlines(), "all.jsonl")
    assert other.rows("SELECT count(*) FROM turns") == [(0,)]
    import_lines(other, lines.getvalue().splitlines(), "all.jsonl")
    assert other.rows("SELECT count(*) FROM turns") == [(120,)]
    other.close()
    assert content(file) == before


@pytest.mark.parametrize("share", [0.3, 1.05])
def test_an_older_file_for_which_there_is_no_room_stays_as_it_was(
    share: float, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied first; then the step itself writes."""
    before = content(file)
    grown = "CREATE TABLE more (x BLOB);\nINSERT INTO more VALUES (randomblob(3000000));"
    with monkeypatch.context() as newer:
        newer.setattr(migrating, "STEPS", (*migrating.STEPS, grown))
        with full_at(int(file.stat().st_size * share)), pytest.raises(BadMemory):
            Store(file, find_key(file))
    assert content(file) == before
