"""What the commands of `os1 memory` share: opening the file, naming a row, printing, asking."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import sqlcipher3

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.files import draft_folder, place_new
from os1_edge.remember.forget import Row
from os1_edge.remember.key import BadKey, KeySource, default_memory_file
from os1_edge.remember.reembed import embedding_missing
from os1_edge.remember.rekey import find_key
from os1_edge.remember.rows import now
from os1_edge.remember.schema import TABLES
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window, purge_due
from os1_edge.remember.vectors import Vector

BATCH = 64
"""Vectors made in one transaction: nobody waits for this process but the wearer."""

PATH = click.Path(path_type=Path)
KINDS = ("turn", "event", "summary", "profile", "context")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)[a-z]*", re.I)
_DIGITS = 18
"""Of a row number: SQLite has none of more."""
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True)
class Access:
    """Which memory, and how to open it."""

    file: Path
    source: KeySource | None

    def key(self) -> bytes:
        """The key of the file."""
        return find_key(self.file, ask_passphrase, self.source)

    @contextmanager
    def opened(self, *, make: bool = False) -> Iterator[Store]:
        """The open memory.

        Args:
            make: whether to begin one where there is none; it is there only when all has gone well.

        Raises:
            BadMemory: there is none, or it cannot be opened, read or written.
        """
        if self.file.exists():
            with self._opened(self.file, self.key()) as store:
                purge_due(store, now())
                yield store
            return
        if not make:
            raise BadMemory(f"{self.file}: there is no memory yet")
        key = self.key()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(self.file) as folder:
            with self._opened(folder / "new", key) as store:
                yield store
            if not place_new(folder / "new", self.file):
                raise BadMemory(f"{self.file}: another OS-1 has begun it meanwhile; try again")

    @contextmanager
    def _opened(self, file: Path, key: bytes) -> Iterator[Store]:
        store = Store(file, key)
        try:
            yield store
        except sqlcipher3.DatabaseError as e:
            hints = {"locked": "end the other OS-1 first", "full": "make room on the disk; nothing was lost"}
            hint = next((h for word, h in hints.items() if word in str(e)), "see: os1 memory check")
            raise BadMemory(f"{self.file}: {e}; {hint}") from None
        finally:
            store.close()


def access(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say which memory and key; the command gets them as ``memory``, an `Access`."""

    @click.option("--memory", "memory_file", type=PATH, help="The memory file; default: the wearer's own.")
    @click.option("--key-file", type=PATH, help="Open it with the key in this file.")
    @click.option("--keyring", help="Open it with the key of this account in the OS keyring.")
    @click.option(
        "--passphrase", is_flag=True, help="Open it with a passphrase: OS1_PASSPHRASE, or asked for."
    )
    @functools.wraps(command)
    def run(
        *args: Any,
        memory_file: Path | None,
        key_file: Path | None,
        keyring: str | None,
        passphrase: bool,
        **kwargs: Any,
    ) -> Any:
        named = [
            *([KeySource("file", str(key_file.absolute()))] if key_file else []),
            *([KeySource("keyring", keyring)] if keyring else []),
            *([KeySource("passphrase")] if passphrase else []),
        ]
        if len(named) > 1:
            raise click.UsageError("give one of --key-file, --keyring and --passphrase")
        source = named[0] if named else None
        return command(*args, memory=Access(memory_file or default_memory_file(), source), **kwargs)

    return run


def as_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")(command)


def undo_for(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--undo-for``; ``window`` reads it."""
    help_ = "How long os1 memory undo can take it back (10m, 7d at most); default: it is gone at once."
    return click.option("--undo-for", help=help_)(command)


def window(undo_for: str | None) -> Window | None:
    """Reads ``--undo-for``.

    Raises:
        click.BadParameter: it is no span of time, or too long.
    """
    if undo_for is None:
        return None
    try:
        return Window.of(now(), span(undo_for).total_seconds())
    except ValueError as e:
        raise click.BadParameter(str(e)) from None


def yes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--yes``."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def ask_passphrase(what: str) -> str:
    """Asks a person; what is typed is not shown.

    Raises:
        BadKey: there is nobody to ask, or no way not to show it.
    """
    _need_terminal("OS1_PASSPHRASE or OS1_PASSPHRASE_FILE")
    return str(click.prompt(what, hide_input=True, err=True))


def ask_new_passphrase() -> str:
    """A new passphrase: ``$OS1_NEW_PASSPHRASE``, or typed twice.

    Raises:
        BadKey: there is nobody to ask.
    """
    if given := os.environ.get("OS1_NEW_PASSPHRASE"):
        return given
    _need_terminal("OS1_NEW_PASSPHRASE")
    return str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True))


def _need_terminal(instead: str) -> None:
    if not sys.stdin.isatty():
        raise BadKey(f"a passphrase is needed and there is no terminal to ask on; set {instead}")


def row_of(text: str) -> Row:
    """Reads an id as the commands print it: ``turn:12``.

    Raises:
        click.BadParameter: it is none.
    """
    kind, _, number = text.partition(":")
    if kind not in TABLES or kind == "key" or not number.isdecimal() or len(number) > _DIGITS:
        raise click.BadParameter(f"{plain(text)!r} is no id; one looks like turn:12 (see: os1 memory list)")
    return kind, int(number)


def span(text: str) -> timedelta:
    """Reads ``90m``, ``2h``, ``1 day``.

    Raises:
        click.BadParameter: it is no span of time.
    """
    found = _SPAN.fullmatch(text.strip())
    if not found or not 0 < float(found[1]) * _UNITS[found[2].lower()] < 1e10:
        raise click.BadParameter(f"{plain(text)!r} is no span of time; write 30m, 2h, 3d")
    return timedelta(seconds=float(found[1]) * _UNITS[found[2].lower()])


def time_of(text: str | None) -> datetime | None:
    """Reads a time in ISO 8601: ``2026-03-02``, ``2026-03-02T08:30``; one with a UTC offset becomes local.

    Raises:
        click.BadParameter: it is none.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is None else time.astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{plain(text)!r} is no time; write 2026-03-02 or 2026-03-02T08:30"
        ) from None


def plain(text: str) -> str:
    """``text`` on one line without control characters: what was said must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def say(text: str) -> None:
    """Prints a line for a person."""
    click.echo(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def put(value: Any) -> None:
    """Prints JSON for a program."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def counted(counts: dict[str, int]) -> str:
    """ "3 turns, 1 event", or "nothing"."""
    names = {"summary": "summaries", "profile": "profile lines", "context": "contexts"}
    shown = [
        f"{n} {kind if n == 1 and kind != 'profile' else names.get(kind, kind + 's')}"
        for kind, n in counts.items()
        if n
    ]
    return ", ".join(shown).replace("1 profile lines", "1 profile line") or "nothing"


def embedder() -> Callable[[str], Vector] | None:
    """Text -> embedding; ``None`` where the model has not been pulled."""
    import os1_models
    from os1_edge.remember.embed import Embedder

    try:
        model = os1_models.path("minilm-l6")
        return Embedder(model, os1_models.path("minilm-l6", "tokenizer.json")).one
    except os1_models.ModelMissing:
        return None


def embed_missing(store: Store, embed: Callable[[str], Vector], tell: Callable[[int], None]) -> None:
    """Makes the vectors that are missing; ``tell`` is called with how many there are by then."""
    done = 0
    for some in embedding_missing(store, embed, BATCH):
        done += some
        tell(done)
