"""A second memory file out of an open one, while it is in use."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from os1_edge.remember.connection import BadMemory, unlock
from os1_edge.remember.files import THERE, draft_folder, place_new, sweep, sync_file
from os1_edge.remember.key import SALT_BYTES, from_passphrase
from os1_edge.remember.rows import now
from os1_edge.remember.store import Store

KNOWN = 50
"""Backups that the memory keeps track of, to tell the wearer where forgotten things may still lie."""


@dataclass(frozen=True, slots=True)
class Lock:
    """What a new file is locked with."""

    key: bytes
    salt: bytes = b""
    """Of a passphrase; otherwise SQLCipher draws one."""

    @staticmethod
    def of(passphrase: str) -> Lock:
        """A passphrase, with a salt of its own.

        Raises:
            BadKey: it is empty.
        """
        salt = secrets.token_bytes(SALT_BYTES)
        return Lock(from_passphrase(passphrase, salt), salt)


def backup(store: Store, to: Path, lock: Lock) -> int:
    """Copies the memory as it stands to the new file ``to``; writers need not wait. Returns its bytes.

    Raises:
        FileExistsError: there is something at ``to``; it stays.
        BadMemory: the copy could not be read back; there is none.
    """
    if to.exists():
        raise FileExistsError(17, THERE, str(to))
    to.parent.mkdir(parents=True, exist_ok=True)
    for earlier in backups(store):
        sweep(Path(earlier))
    with draft_folder(to) as folder:
        draft = folder / "copy"
        with store.transaction() as db:  # its own writers wait, other processes' do not
            db.execute("INSERT OR REPLACE INTO meta VALUES ('backups', ?)", (_with(store, to),))
        with store.reading() as db:
            copy(db, draft, lock, with_trash=False)
        if not place_new(draft, to):
            raise FileExistsError(17, THERE, str(to))
    return to.stat().st_size


def copy(db: Any, draft: Path, lock: Lock, *, with_trash: bool = True) -> None:
    """Writes all of ``db`` to the new file ``draft`` under another lock, and reads it back.

    ``with_trash``: also what was forgotten and can be undone yet; a copy that is kept would keep it for ever.

    Raises:
        BadMemory: what was written is not what was read.
    """
    target = unlock(draft, lock.key, create=True, salt=lock.salt)
    try:
        db.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        if not with_trash and target.execute("SELECT count(*) FROM trash").fetchone()[0]:
            target.execute("PRAGMA secure_delete = ON")
            target.execute("DELETE FROM trash")
            target.execute("DELETE FROM trash_batches")
            target.execute("INSERT INTO items_fts (items_fts) VALUES ('rebuild')")
            target.execute("VACUUM")
        bad = list(target.execute("PRAGMA cipher_integrity_check"))
        if bad or list(target.execute("PRAGMA quick_check")) != [("ok",)]:
            raise BadMemory(f"the copy of the memory could not be read back ({len(bad)} pages); try again")
    finally:
        target.close()
    draft.chmod(0o600)
    sync_file(draft)


def backups(store: Store) -> list[str]:
    """Where copies of this memory were put, oldest first, as far as this memory knows."""
    return [str(entry["file"]) for entry in json.loads(store.meta("backups") or "[]")]


def _with(store: Store, to: Path) -> str:
    known = json.loads(store.meta("backups") or "[]")
    known = [entry for entry in known if entry["file"] != str(to.absolute())]
    return json.dumps([*known, {"file": str(to.absolute()), "time": now().isoformat()}][-KNOWN:])
