"""The key of the memory file: 32 random bytes in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
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

    Raises:
        BadKey: others can read the file, or it is not a key.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _load(path)
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_hex(KEY_BYTES) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return _load(path)


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
