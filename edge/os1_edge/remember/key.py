"""The key of the memory file: 32 random bytes in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import platformdirs

KEY_BYTES = 32


class BadKey(Exception):
    """The key file cannot be used; the message says what to do."""


def default_key_file() -> Path:
    """Where the wearer's key lies: ``$OS1_KEY_FILE``, or the user's data folder."""
    named = os.environ.get("OS1_KEY_FILE")
    return Path(named) if named else platformdirs.user_data_path("os1") / "memory.key"


def load_or_make(path: Path) -> bytes:
    """Reads the key at ``path``, or makes a new one there with mode 0600.

    The key appears whole or not at all, whatever ends the process meanwhile; of several processes at once,
    the first to finish gives the key and all others read it.

    Raises:
        BadKey: others can read the file, or it is not a key.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not os.path.lexists(path):
        _make(path)
    return _load(path)


def _make(path: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    draft = Path(name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # a link, unlike a rename, never replaces another process's key
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _load(path: Path) -> bytes:
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadKey(f"{path} can be read by others; run: chmod 600 {path}")
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKey(f"{path} is not a key of {KEY_BYTES} bytes in hex; move it away to start a new memory")
    return key
