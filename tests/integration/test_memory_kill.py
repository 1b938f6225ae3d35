"""The writer is killed at any moment: what it had said to be kept is there, and the file is sound.

The full run: python -m os1_edge.bench.memory_store kill --rounds 200
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from os1_edge.bench.memory_store import KEY, kill_rounds
from os1_edge.remember.rekey import find_key
from os1_edge.remember.repair import check
from os1_edge.remember.store import Store


def test_nothing_that_was_kept_is_lost_to_a_kill(tmp_path: Path) -> None:
    done = kill_rounds(tmp_path / "memory.db", rounds=8, seed=11)
    assert done.acknowledged > 30
    assert (done.lost, done.back, done.unsound) == (0, 0, [])


def test_every_kept_turn_is_on_the_disk_before_it_is_said_to_be(tmp_path: Path) -> None:
    store = Store(tmp_path / "memory.db", KEY)
    assert store.rows("PRAGMA journal_mode") == [("wal",)]
    assert int(store.rows("PRAGMA synchronous")[0][0]) == 2  # the log is synced at every commit
    store.close()


CODE = """
import sys; from pathlib import Path
from os1_edge.remember.rekey import find_key, new_lock, rekey
from os1_edge.remember.key import KeySource
path = Path(sys.argv[1]); print('ready', flush=True)
while True:
    lock, source = new_lock(KeySource('file'), path)
    rekey(path, find_key(path), lock, source)
"""


def test_a_kill_while_the_memory_is_locked_anew_leaves_it_open_to_its_wearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "wearer.key"))
    path = tmp_path / "memory.db"
    store = Store(path, find_key(path))
    store.set_meta("note", "kept " * 2000)
    store.close()
    for number in range(6):
        process = subprocess.Popen([sys.executable, "-c", CODE, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.03 + 0.017 * number)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        key = find_key(path)
        assert check(path, key).problems == []
        store = Store(path, key)
        assert store.meta("note") == "kept " * 2000
        store.close()
