"""Hashes and free space."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from os1_models.errors import DiskFull, WrongHash

CHUNK_BYTES = 1 << 20
SPACE_MARGIN_BYTES = 16 << 20
"""Left free for the receipt, directories, and whatever else writes meanwhile."""


def sha256_of(path: Path, report: Callable[[int], None] | None = None) -> str:
    """Hex SHA-256 of a file; `report` hears the bytes hashed so far."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as stream:
        while block := stream.read(CHUNK_BYTES):
            digest.update(block)
            done += len(block)
            if report is not None:
                report(done)
    return digest.hexdigest()


def require(path: Path, what: str, size: int | None, sha256: str | None) -> str:
    """Hash a file and compare; deletes it and raises `WrongHash` if size or hash differ.

    Returns the hex SHA-256. A `size` or `sha256` of None is not compared.
    """
    actual_size = path.stat().st_size
    if size is not None and actual_size != size:
        path.unlink()
        raise WrongHash(f"{what} has {actual_size} bytes instead of {size}; deleted")
    actual = sha256_of(path)
    if sha256 is not None and actual != sha256:
        path.unlink()
        raise WrongHash(f"{what} has sha256 {actual} instead of {sha256}; deleted")
    return actual


def require_space(directory: Path, needed: int) -> None:
    """Raise `DiskFull` unless `needed` bytes, and a margin, are free where `directory` is."""
    free = shutil.disk_usage(directory).free
    if needed + SPACE_MARGIN_BYTES > free:
        raise DiskFull(directory, needed, free)
