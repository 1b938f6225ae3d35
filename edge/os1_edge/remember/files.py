"""Files that appear whole or not at all, and never in place of another."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Makes the names in ``folder`` survive a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def place_new(draft: Path, path: Path) -> bool:
    """Gives the finished file ``draft`` the name ``path``, unless there is something of that name already:
    then nothing happens and the answer is ``False``. Of several processes at once, the first wins."""
    try:
        path.hardlink_to(draft)  # a link, unlike a rename, never replaces
    except FileExistsError:
        return False
    except OSError:  # FAT, exFAT and some network file systems know no links
        with _alone_in(path.parent):
            if os.path.lexists(path):
                return False
            draft.rename(path)
    sync_folder(path.parent)
    return True


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Makes what ``path`` holds survive a power loss."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(draft: Path, path: Path) -> None:
    """Gives ``draft`` the name ``path``; whatever ends the process, that name is the old file or the new."""
    sync_file(draft)
    draft.replace(path)
    sync_folder(path.parent)


def write_whole(path: Path, text: str) -> None:
    """Writes a small text file with mode 0600 that appears whole or not at all."""
    draft = path.with_name(f".{path.name}.tmp")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    replace(draft, path)


def copy_whole(source: Path, path: Path) -> None:
    """Copies the bytes of ``source`` to ``path`` with mode 0600; the copy appears whole or not at all."""
    draft = path.with_name(f".{path.name}.tmp")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as out, source.open("rb") as whole:
            while block := whole.read(1 << 20):
                out.write(block)
        replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
