"""Pulls that are killed, that meet each other, and that run into a really full disk. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import models_fakes as fakes
import pytest

import os1_models
from os1_models.errors import DiskFull
from os1_models.manifest import Manifest
from os1_models.puller import Puller
from os1_models.store import Store

FIRST, SECOND = fakes.noise(200_000, 1), fakes.noise(400_000, 2)
WHEEL = fakes.wheel("toy", "1.0", {"a.bin": FIRST})
DRIVER = """
import sys
from pathlib import Path
from os1_models.manifest import Manifest
from os1_models.progress import Silent
from os1_models.puller import Puller
from os1_models.store import Store
class Notes(Silent):
    def note(self, model, text):
        print(text, flush=True)
manifest, root, force = sys.argv[1:]
Puller(Manifest.model_validate_json(manifest), Store(Path(root)), Notes()).pull("toy", force=force == "force")
"""


def two_part_manifest(address: str) -> Manifest:
    first, second = f"url:{address}/first.whl", f"url:{address}/second.bin"
    return fakes.manifest(
        {
            "artefacts": [fakes.artefact(first, WHEEL), fakes.artefact(second, SECOND)],
            "files": [
                fakes.file("x.bin", FIRST + SECOND, {"origin": first, "member": "a.bin"}, {"origin": second})
            ],
        }
    )


def start(manifest: Manifest, store: Store, mode: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(os1_models.__file__).parents[1])}
    argv = [sys.executable, "-c", DRIVER, manifest.model_dump_json(), str(store.root), mode]
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_bytes(store: Store, size: int) -> None:
    """Until the puller has written that much of the held-up download."""
    for _ in range(600):
        if any(path.stat().st_size == size for path in store.work("toy").rglob("data")):
            return
        time.sleep(0.1)
    pytest.fail("the download never got that far")


@pytest.fixture
def server() -> Iterator[fakes.FileServer]:
    with fakes.serving({"/first.whl": WHEEL, "/second.bin": SECOND}) as server:
        yield server


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_pull_that_is_killed_goes_on_from_where_it_was(
    server: fakes.FileServer, store: Store, how: signal.Signals
) -> None:
    manifest = two_part_manifest(server.address)
    server.hold_after = {"/second.bin": 300_000}
    process = start(manifest, store)
    assert server.held.wait(60)
    wait_for_bytes(store, 300_000)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert store.state("toy") == "missing"
    server.release.set()
    Puller(manifest, store).pull("toy")
    assert store.path("toy").read_bytes() == FIRST + SECOND
    assert server.asked("/first.whl") == [None]
    assert server.asked("/second.bin")[1] == "bytes=300000-"
    assert not store.work("toy").exists()


@pytest.mark.parametrize("mode", ["", "force"])
def test_two_pulls_at_once_share_one_download(server: fakes.FileServer, store: Store, mode: str) -> None:
    manifest = two_part_manifest(server.address)
    server.hold_after = {"/first.whl": 1000}
    first = start(manifest, store, mode)
    assert server.held.wait(60)
    second = start(manifest, store, mode)
    assert second.stdout is not None
    assert "another pull is at work" in second.stdout.readline()
    server.release.set()
    for process in (first, second):
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert store.path("toy").read_bytes() == FIRST + SECOND
    assert server.asked("/first.whl") == [None]
    assert server.asked("/second.bin") == [None]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount a small tmpfs here (needs root)")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_said_plainly_and_leaves_the_old_model(
    server: fakes.FileServer, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os1_models.checks.SPACE_MARGIN_BYTES", -(10 << 20))
    with pytest.raises(DiskFull, match="the disk ran full"):
        Puller(two_part_manifest(server.address), Store(small_disk)).pull("toy")
