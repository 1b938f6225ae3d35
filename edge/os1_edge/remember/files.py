"""Files that appear whole or not at all, and never in place of another."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

_DRAFTS = ".draft"
"""End of the names of the folders in which files are written before they get theirs."""

NEW_S = 60.0
"""For how long an empty folder may be that of a writer who has just begun."""


@contextmanager
def draft_folder(path: Path) -> Iterator[Path]:
    """A hidden folder beside ``path``, its owner's only, in which what is to take that name is written; it is
    gone afterwards. One that a kill or a power loss left is swept away by the next."""
    sweep(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=_DRAFTS, dir=path.parent) as name:
        handle = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # shows ``sweep`` that somebody works in it
            yield Path(name)
        finally:
            os.close(handle)


def sweep(path: Path) -> None:
    """Takes away the drafts of ``path``, and of what is named after it, whose writers have been killed."""
    for folder in path.parent.glob(f".{glob.escape(path.name)}.*{_DRAFTS}"):
        with suppress(OSError):  # another's, or another process was faster
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new = time.time() - folder.stat().st_mtime < NEW_S and not any(folder.iterdir())
                if not new:  # else its writer may have no lock yet
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


@contextmanager
def new_text(path: Path, *, force: bool = False) -> Iterator[TextIO]:
    """A text file (UTF-8, mode 0600) to write, which gets the name ``path`` when it is whole.

    Where the file system can, it has no name before that: a kill leaves nothing of what may be in plain text.

    Raises:
        FileExistsError: there is something of that name, and not ``force``.
    """
    with draft_folder(path) as folder, _nameless(folder) as (out, name):
        yield out
        out.flush()
        draft = name(folder / "new")
        if force:
            replace(draft, path)
            return
        sync_file(draft)
        if not place_new(draft, path):
            raise FileExistsError(17, THERE, str(path))


@contextmanager
def _nameless(folder: Path) -> Iterator[tuple[TextIO, Callable[[Path], Path]]]:
    """A file without a name, and what gives it one in ``folder``."""
    where = os.open(folder, os.O_RDONLY)
    try:
        try:
            handle, named = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600), None
        except OSError:  # NFS, FAT and older kernels
            named = folder / "new"
            handle = os.open(named, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)

        def name(path: Path) -> Path:
            if named is None:  # as in open(2); Python follows the link only where a folder is given
                os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=where, follow_symlinks=True)
            return named or path

        with os.fdopen(handle, "w", encoding="utf-8") as out:
            yield out, name
    finally:
        os.close(where)


THERE = "there is something of that name already; it was left as it is"


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
    with draft_folder(path) as folder:
        handle = os.open(folder / "copy", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as out, source.open("rb") as whole:
            shutil.copyfileobj(whole, out, 1 << 20)
        replace(folder / "copy", path)
