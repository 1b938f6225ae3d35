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
