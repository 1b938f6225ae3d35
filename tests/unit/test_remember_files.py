"""Files that appear whole or not at all, and what a kill in the middle leaves: nothing that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memories import KEY, new, say

from os1_edge.remember import files
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.files import draft_folder, new_text, sweep
from os1_edge.remember.store import Store


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def killed(folder: Path, code: str) -> None:
    """Runs ``code`` in a process of its own until it says so, and kills it there."""
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


WRITING = """
import sys, time; from pathlib import Path
from os1_edge.remember.files import draft_folder, new_text
folder = Path(sys.argv[1])
with {how} as out:
    {write}
    print("ready", flush=True); time.sleep(60)
"""


def test_an_export_that_is_killed_leaves_no_plain_text(tmp_path: Path) -> None:
    write = "out.write('my secret ' * 9999); out.flush()"
    killed(tmp_path, WRITING.format(how='new_text(folder / "all.jsonl")', write=write))
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_an_export_where_files_need_a_name_is_swept_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = "out.write('my secret ' * 9999); out.flush()"
    nameless = "import os; os.O_TMPFILE = os.O_DIRECTORY\n"  # refused, as by an older kernel
    killed(tmp_path, nameless + WRITING.format(how='new_text(folder / "all.jsonl")', write=write))
    assert len(left(tmp_path)) == 1
    monkeypatch.setattr(files.os, "O_TMPFILE", os.O_DIRECTORY)
    with new_text(tmp_path / "all.jsonl") as out:
        out.write("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["all.jsonl"]
    assert (tmp_path / "all.jsonl").read_text() == "whole"
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600


def test_what_a_kill_left_beside_a_memory_is_gone_when_it_is_next_opened(tmp_path: Path) -> None:
    write = "(out / 'new').write_bytes(b'half a memory')"
    for name in ("memory.db", "memory.db.v1.bak"):
        killed(tmp_path, WRITING.format(how=f'draft_folder(folder / "{name}")', write=write))
    (tmp_path / ".memory.db.notes").write_text("somebody's own")
    assert len(left(tmp_path)) == 3
    new(tmp_path).close()
    assert left(tmp_path) == [".memory.db.notes"]


def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path: Path) -> None:
    for name in (".[a]*.db.x.draft", ".a.db.x.draft"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "new").write_text("half")
    sweep(tmp_path / "[a]*.db")
    assert left(tmp_path) == [".a.db.x.draft"]


def test_a_backup_that_was_killed_is_swept_by_the_next_wherever_that_goes(tmp_path: Path) -> None:
    store = new(tmp_path)
    say(store, "t1", "It rains.")
    (tmp_path / "a").mkdir()
    backup(store, tmp_path / "a" / "copy.db", Lock(KEY))
    how = 'draft_folder(folder / "copy.db")'
    killed(tmp_path / "a", WRITING.format(how=how, write="(out / 'copy').touch()"))
    assert len(left(tmp_path / "a")) == 1
    backup(store, tmp_path / "copy.db", Lock(KEY))
    assert left(tmp_path / "a") == []
    store.close()


def test_a_draft_that_somebody_works_on_is_left_alone(tmp_path: Path) -> None:
    with draft_folder(tmp_path / "memory.db") as folder:
        (folder / "new").write_text("half")
        sweep(tmp_path / "memory.db")
        new(tmp_path).close()
        assert (folder / "new").read_text() == "half"
    assert left(tmp_path) == []


def test_a_folder_that_may_be_new_is_left_for_a_minute(tmp_path: Path) -> None:
    (tmp_path / ".memory.db.x.draft").mkdir()
    sweep(tmp_path / "memory.db")
    assert len(left(tmp_path)) == 1
    long_ago = time.time() - 2 * files.NEW_S
    os.utime(tmp_path / ".memory.db.x.draft", (long_ago, long_ago))
    sweep(tmp_path / "memory.db")
    assert left(tmp_path) == []


def test_a_link_named_like_a_draft_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("Dear")
    (tmp_path / ".memory.db.x.draft").symlink_to(tmp_path / "mine")
    Store(tmp_path / "memory.db", KEY).close()
    assert (tmp_path / "mine" / "letter").read_text() == "Dear"
