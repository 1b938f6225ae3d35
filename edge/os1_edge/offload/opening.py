"""What the model made of the prompt's beginning that never changes, kept from one start to the next.

Reading persona, rules and examples takes the device seconds; reading their state from a file takes
hundredths. One file, which the next one replaces. It holds nothing of the wearer: the opening does not. Its
name is a digest of all that the state rests on, so one of another model, build or prompt is not taken.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import struct
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

log = logging.getLogger(__name__)

_HEAD = struct.Struct("<8s32s32sd")
"""Magic, the digest of what it rests on, the digest of the rest, seconds that the reading took."""
_MAGIC = b"os1open1"

LARGEST = 256 * 2**20
"""Bytes of a file that are looked at: the opening of a 7B model has 100 MB."""

_ENDS = 2**20
"""Bytes at both ends of a model's file that its digest is made of: hashing it whole takes as long as the
opening's reading saves."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A state, as ``llama_state_seq_get_data`` gave it."""

    state: bytes
    read_s: float
    """How long the reading took that it saves."""


def default_file() -> Path:
    """``OS1_OPENING_FILE``, else a file in the user's cache directory."""
    named = os.environ.get("OS1_OPENING_FILE")
    return Path(named) if named else platformdirs.user_cache_path("os1") / "opening.kv"


def digest_of_model(model: Path) -> str:
    """What tells a model's file from another. Raises ``OSError``."""
    with model.open("rb") as file:
        about = os.fstat(file.fileno())
        digest = hashlib.sha256(f"{about.st_size} {about.st_mtime_ns}".encode())
        digest.update(file.read(_ENDS))
        file.seek(max(0, about.st_size - _ENDS))
        digest.update(file.read(_ENDS))
    return digest.hexdigest()


def key_of(model: str, build: str, context: int, threads: int, tokens: Sequence[int]) -> bytes:
    """The digest of all that a state rests on, 32 bytes."""
    return hashlib.sha256(json.dumps([model, build, context, threads, list(tokens)]).encode()).digest()


def kept(file: Path, key: bytes) -> Kept | None:
    """What ``file`` holds for ``key``; ``None`` where it is another's, damaged, or not there."""
    try:
        if not _HEAD.size < file.stat().st_size <= LARGEST:
            return None
        data = file.read_bytes()
        magic, of, check, read_s = _HEAD.unpack_from(data)
    except (OSError, struct.error):
        return None
    state = data[_HEAD.size :]
    if magic != _MAGIC or of != key or check != _check(read_s, state) or not 0 < read_s < 3600:
        return None
    return Kept(state, read_s)


def keep(file: Path, key: bytes, one: Kept) -> None:
    """Writes ``file`` anew, for its owner alone. Where it cannot, the next start reads again."""
    written: str | None = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, written = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        with os.fdopen(descriptor, "wb") as out:
            out.write(_HEAD.pack(_MAGIC, key, _check(one.read_s, one.state), one.read_s))
            out.write(one.state)
        Path(written).replace(file)
    except OSError as e:
        log.info("the prompt's opening is not kept for the next start (%s)", e.strerror)
        if written is not None:
            with suppress(OSError):
                Path(written).unlink()


def _check(read_s: float, state: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<d", read_s) + state).digest()
