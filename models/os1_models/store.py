"""Where models live on disk, and how a finished one replaces another.

    ROOT/NAME/                  files and receipt.json of an installed model
    ROOT/.work/NAME/artefacts/  verified downloads of an unfinished pull, reused by the next
    ROOT/.work/NAME/stage/      files being assembled
    ROOT/.work/NAME/retired/    the former model, for the moment between two renames
    ROOT/.locks/NAME.lock       held by whoever changes any of these

All of it is on one file system, so that a move is a rename. Only a complete, fsynced directory is ever
renamed to ROOT/NAME.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs
from filelock import FileLock, Timeout

from os1_models.errors import ModelMissing
from os1_models.receipt import RECEIPT_NAME, Receipt, parse_receipt

State = Literal["installed", "missing", "damaged"]
RECOVER_WAIT_S = 10.0
"""Longest wait for a rename in another process; renames take microseconds, pulls do not pass here."""


def models_dir() -> Path:
    """`OS1_MODELS_DIR`, else `models` in the user's cache directory."""
    override = os.environ.get("OS1_MODELS_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir("os1")) / "models"


def fsync_path(path: Path) -> None:
    """Flush a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Store:
    """The directory of models. Reading needs no lock; whoever writes holds `lock(name)`."""

    root: Path

    def directory(self, name: str) -> Path:
        return self.root / name

    def work(self, name: str) -> Path:
        return self.root / ".work" / name

    def stage(self, name: str) -> Path:
        return self.work(name) / "stage"

    def retired(self, name: str) -> Path:
        return self.work(name) / "retired"

    def lock(self, name: str) -> FileLock:
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{name}.lock")

    def receipt(self, name: str) -> Receipt | None:
        """The receipt as it lies there, files not looked at; None if there is none or it is unreadable."""
        try:
            return parse_receipt((self.directory(name) / RECEIPT_NAME).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def state(self, name: str) -> State:
        """By receipt and file sizes alone; `verify` looks at every byte."""
        receipt = self.receipt(name)
        if receipt is None:
            return "damaged" if self.directory(name).exists() else "missing"
        return "damaged" if self._misfits(receipt) else "installed"

    def installed(self, name: str) -> Receipt | None:
        """The receipt of a model whose files are all there in full size."""
        if not self.directory(name).exists() and self.retired(name).exists():
            self._wait_for_swap(name)
        receipt = self.receipt(name)
        return None if receipt is None or self._misfits(receipt) else receipt

    def path(self, name: str, file: str | None = None) -> Path:
        """A file of an installed model, by default its main one; raises `ModelMissing`."""
        receipt = self.installed(name)
        if receipt is None:
            damaged = self.state(name) == "damaged"
            raise ModelMissing(name, "is damaged" if damaged else "is not here yet")
        wanted = receipt.main if file is None else file
        if receipt.record(wanted) is None:
            names = ", ".join(record.name for record in receipt.files)
            raise ModelMissing(name, f"from {receipt.source} has no file {wanted!r} (it has {names})")
        return self.directory(name) / wanted

    def install(self, name: str) -> None:
        """Make the staged directory the installed one. Call with the lock held.

        A directory cannot replace a full one in a single rename, so the old one steps aside first; whoever
        looks in between, or after a crash there, finds it in `retired` and `recover` puts it back.
        """
        stage, target, retired = self.stage(name), self.directory(name), self.retired(name)
        for path in stage.iterdir():
            fsync_path(path)
        fsync_path(stage)
        if target.exists():
            target.replace(retired)
        stage.replace(target)
        fsync_path(self.root)
        shutil.rmtree(self.work(name), ignore_errors=True)

    def recover(self, name: str) -> None:
        """Undo a half-done swap and drop stale staging. Call with the lock held."""
        target, retired = self.directory(name), self.retired(name)
        if retired.exists() and not target.exists():
            retired.replace(target)
            fsync_path(self.root)
        shutil.rmtree(retired, ignore_errors=True)
        shutil.rmtree(self.stage(name), ignore_errors=True)

    def _wait_for_swap(self, name: str) -> None:
        try:
            with self.lock(name).acquire(timeout=RECOVER_WAIT_S):
                self.recover(name)
        except (OSError, Timeout):
            return  # read-only store or a busy one: the caller sees the model as missing

    def _misfits(self, receipt: Receipt) -> bool:
        folder = self.directory(receipt.model)
        return any(_size(folder / record.name) != record.size for record in receipt.files)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
