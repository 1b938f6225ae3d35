"""Locks a memory with another key. At any instant the file opens with the old key or with the new one, and
``find_key`` finds which: the new key is safe before the file changes, and the file changes by one rename."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from os1_edge.remember.backup import Lock, copy
from os1_edge.remember.connection import BadMemory, NotThisKey, open_alone, opens
from os1_edge.remember.files import draft_folder, replace, sync_folder, write_whole
from os1_edge.remember.key import (
    SHORTEST_PASSPHRASE,
    BadKey,
    KeySource,
    default_key_file,
    key_from,
    load_of,
    load_or_make,
    make_keyring_key,
    read_source,
    source_file,
    wearers_key,
)


def find_key(memory: Path, ask: Callable[[str], str] | None = None, source: KeySource | None = None) -> bytes:
    """The key that opens ``memory``; for a memory that is not there yet, the wearer's key, made if need be.

    Args:
        memory: the memory file.
        ask: asks a person for a passphrase.
        source: where the key comes from, if the wearer says so; default: what stands beside the memory.

    Raises:
        BadKey: the key cannot be had.
        BadMemory: none of the keys opens it, or it is in use.
    """
    if source is not None:
        return key_from(source, memory, ask)
    now, coming = source_file(memory), _coming(memory)
    old, new = read_source(now), read_source(coming)
    if not memory.exists() and old is None:
        return wearers_key()
    if new is None:
        return _old_key(old, memory, ask)
    # A change of keys was cut off; the file itself says how far it had come.
    key = key_from(new, memory, ask)
    if opens(memory, key):
        coming.replace(now)
        return key
    key = _old_key(old, memory, ask)
    if not opens(memory, key):
        raise NotThisKey(f"{memory}: neither its old key nor the new one opens it; nothing was changed")
    return key


def _old_key(source: KeySource | None, memory: Path, ask: Callable[[str], str] | None) -> bytes:
    """The key of a memory that is there: a lost one is told, for a new one could never open it."""
    return load_of(memory, default_key_file()) if source is None else key_from(source, memory, ask)


def new_lock(source: KeySource, memory: Path, passphrase: str | None = None) -> tuple[Lock, KeySource]:
    """Makes a new key, kept safe before anything is locked with it; a key that exists already is never
    replaced, for older copies of the memory may need it.

    Args:
        source: the kind of key; a file or keyring account without a name gets a new one.
        memory: the memory that it is for.
        passphrase: for that kind, what it is.

    Raises:
        BadKey: it cannot be kept, or the passphrase is too short.
        FileExistsError: the key file named is there already.
    """
    if source.kind == "passphrase":
        if passphrase is None or len(passphrase) < SHORTEST_PASSPHRASE:
            raise BadKey(f"a passphrase has {SHORTEST_PASSPHRASE} characters or more")
        return Lock.of(passphrase), KeySource("passphrase")
    label = source.name or f"{memory.name}-{secrets.token_hex(4)}"
    if source.kind == "keyring":
        return Lock(make_keyring_key(label)), KeySource("keyring", label)
    path = (Path(source.name) if source.name else memory.resolve().with_name(f"{label}.key")).absolute()
    if path.exists():
        raise FileExistsError(17, "this key file is there already; name another", str(path))
    return Lock(load_or_make(path)), KeySource("file", str(path))


def rekey(memory: Path, key: bytes, lock: Lock, source: KeySource) -> None:
    """Locks ``memory`` with ``lock`` instead of ``key``; ``source`` tells where the new key can be had.

    It is written anew beside the old one, read back, and then takes its place, so twice the room is needed
    for a moment. Copies made before keep the old key.

    Raises:
        BadMemory: the key is wrong, another process uses the memory, or the new file could not be read back;
            nothing was changed.
    """
    memory = memory.resolve()  # of a link, the file takes the new one, not the link
    with open_alone(memory, key) as db, draft_folder(memory) as folder:
        draft = folder / "new"
        copy(db, draft, lock)
        if not opens(draft, lock.key):
            raise BadMemory(f"{memory}: the new file could not be read back; nothing was changed")
        write_whole(_coming(memory), source.text())
        replace(draft, memory)
        # Who was just opening the file that has lost its name cannot write to it: SQLite notices.
    _coming(memory).replace(source_file(memory))
    sync_folder(memory.parent)


def _coming(memory: Path) -> Path:
    now = source_file(memory)
    return now.with_name(f"{now.name}.new")
