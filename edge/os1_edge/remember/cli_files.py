"""The commands that copy, move, check and lock the memory as a whole."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from os1_edge.remember import repair as repairs
from os1_edge.remember.backup import Lock
from os1_edge.remember.backup import backup as copy_to
from os1_edge.remember.cli_common import (
    PATH,
    Access,
    access,
    as_json,
    ask_new_passphrase,
    counted,
    embed_missing,
    embedder,
    put,
    say,
)
from os1_edge.remember.export import export as write_lines
from os1_edge.remember.files import THERE, new_text, write_whole
from os1_edge.remember.key import KeySource, default_key_file, read_source, salt_of, source_file
from os1_edge.remember.locomo import import_locomo
from os1_edge.remember.merge import import_lines
from os1_edge.remember.rekey import new_lock
from os1_edge.remember.rekey import rekey as lock_anew
from os1_edge.remember.rows import now


@click.command()
@access
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--vectors", is_flag=True, help="With the embeddings, three times the size.")
@click.option("--force", is_flag=True, help="In place of a FILE that is there already.")
def export(memory: Access, file: Path, vectors: bool, force: bool) -> None:
    """Write everything to FILE (default: standard output) as JSON Lines, in plain text.

    Whoever has the file can read it. For an encrypted copy: os1 memory backup.
    """
    if str(file) != "-":
        _may_take(file, memory, force)
    with memory.opened() as store:
        if str(file) == "-":
            counts = write_lines(store, sys.stdout, vectors=vectors)
        else:
            with new_text(file, force=force) as out, _progress("export") as tell:
                counts = write_lines(store, out, vectors=vectors, tell=tell)
    click.echo(f"{sum(counts.values())} rows, in plain text: whoever has the file can read it", err=True)


_THERE = f"{THERE} (--force writes over a file)"


def _may_take(file: Path, memory: Access, force: bool) -> None:
    """Whether an export may be written to ``file``.

    Raises:
        OSError: there is something of that name, or it is part of the memory itself, which not even ``force``
            gives up.
    """
    if file.is_dir():
        raise IsADirectoryError(21, "is a folder; name a file in it", str(file))
    if not file.parent.is_dir():
        raise FileNotFoundError(2, "there is no such folder", str(file.parent))
    if file.resolve() in {path.resolve() for path in _parts(memory)}:
        raise FileExistsError(17, "belongs to the memory itself; name another file", str(file))
    if os.path.lexists(file) and not (force and file.is_file()):
        raise FileExistsError(17, _THERE, str(file))


def _parts(memory: Access) -> Iterator[Path]:
    """The files without which the memory is lost."""
    beside, whole = source_file(memory.file), memory.file.resolve()
    coming = beside.with_name(f"{beside.name}.new")
    yield from (memory.file, beside, coming, default_key_file())
    yield from (whole.with_name(f"{whole.name}{end}") for end in ("-wal", "-shm", "-journal"))
    for source in (memory.source, read_source(beside), read_source(coming)):
        if source is not None and source.kind == "file" and source.name:
            yield whole.parent / source.name  # an absolute name stays as it is


@click.command("import")
@access
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format", "format_", type=click.Choice(("os1", "locomo")), default="os1", show_default=True,
    help="os1: what `os1 memory export` writes; locomo: a LoCoMo conversation file.",
)  # fmt: skip
@click.option("--embed/--no-embed", default=True, help="Make missing vectors now, or leave them for later.")
@as_json
def import_(memory: Access, file: Path, format_: str, embed: bool, as_json: bool) -> None:
    """Lay the memories of FILE over this memory: all of them, or on a bad line none.

    What both have is one memory; where they differ, the later knowledge counts. Doing it twice changes
    nothing.
    """
    with memory.opened(make=True) as store:
        if format_ == "locomo":
            with _progress("import") as tell:
                new = import_locomo(store, file, None, tell)
            done: dict[str, object] = {"new": {"turn": new}}
        else:
            with _lines(file) as lines, _progress("import") as tell:
                merged = import_lines(store, lines, str(file), tell)
            done = {
                "new": merged.new, "changed": merged.changed, "known": merged.known,
                "forgotten_here": merged.forgotten, "forgotten_there": merged.forgotten_there,
                "profile_ended": merged.profile_ended,
            }  # fmt: skip
    model = embedder() if embed else None
    if model is not None:  # found by words at once, whatever ends this
        with memory.opened() as store:
            (total,) = store.rows(
                "SELECT (SELECT count(*) FROM items) - (SELECT count(*) FROM item_vectors)"
            )[0]
            with _progress("embed") as tell:
                embed_missing(store, model, lambda n: tell(n, total))
    if as_json:
        put(done)
        return
    for what, counts in done.items():
        if counts:
            text = counted(counts) if isinstance(counts, dict) else str(counts)
            say(f"{what.replace('_', ' ')}: {text}")
    if embed and model is None:
        say("found by words only until the embedding model is there: os1 models pull minilm-l6")


@click.command()
@access
@click.argument("file", type=PATH)
@click.option("--new-passphrase", is_flag=True, help="Lock the copy with a passphrase of its own.")
@as_json
def backup(memory: Access, file: Path, new_passphrase: bool, as_json: bool) -> None:
    """Copy the memory, encrypted, to the new FILE; it may be in use meanwhile.

    The copy opens with the same key, or with --new-passphrase. Use it with --memory FILE.
    """
    with memory.opened() as store:
        if new_passphrase:
            lock, source = Lock.of(ask_new_passphrase()), KeySource("passphrase")
        else:
            lock = Lock(memory.key(), salt_of(memory.file))
            source = memory.source or read_source(source_file(memory.file)) or KeySource("file")
        size = copy_to(store, file, lock)
    if source.kind != "file" or source.name:
        write_whole(source_file(file), source.text())
    if as_json:
        put({"file": str(file), "bytes": size})
        return
    opens = "a passphrase; open it with --passphrase" if new_passphrase else "the same key as the memory"
    say(f"{file}: {size / 1e6:.1f} MB, locked with {opens}")


@click.command()
@access
@as_json
def check(memory: Access, as_json: bool) -> None:
    """Read every page and row; exit code 1 if something is wrong."""
    health = repairs.check(memory.file, memory.key())
    if as_json:
        put({"ok": not health.problems, "problems": health.problems, "index_only": health.index_only})
    elif health.problems:
        for line in health.problems:
            say(line)
        say("put it right with: os1 memory repair")
    else:
        say(f"{memory.file} is sound")
    sys.exit(1 if health.problems else 0)


@click.command()
@access
@as_json
def repair(memory: Access, as_json: bool) -> None:
    """Save what can be read into a new file, which takes the old one's place; the old one is kept aside."""
    done = repairs.repair(memory.file, memory.key(), now())
    if as_json:
        put(
            {"repaired": False}
            if done is None
            else {
                "repaired": True,
                "kept_aside": str(done.kept_aside) if done.kept_aside else None,
                "saved": done.saved,
                "unreadable": done.unreadable,
            }
        )
    elif done is None:
        say(f"{memory.file} is sound; nothing was done")
    elif done.kept_aside is None:
        say("the index was made again; no memory was lost")
    else:
        say(f"the file as it was: {done.kept_aside}")
        say("saved: " + ", ".join(f"{n} {table}" for table, n in done.saved.items() if n))
        lost = {t: n for t, n in done.unreadable.items() if t not in ("items", "item_vectors")}
        say("lost, at most: " + (", ".join(f"{n} {table}" for table, n in lost.items()) or "nothing"))


@click.command()
@access
@click.option("--to-key-file", "to_file", type=PATH, help="A new key in this new file, for its owner only.")
@click.option("--to-keyring", is_flag=True, help="A new key in the OS keyring.")
@click.option("--to-passphrase", is_flag=True, help="A passphrase (OS1_NEW_PASSPHRASE, or asked for).")
@as_json
def rekey(memory: Access, to_file: Path | None, to_keyring: bool, to_passphrase: bool, as_json: bool) -> None:
    """Lock the memory with another key; without an option, a new key file beside it.

    Copies made before keep their key: do not throw the old key away while you need them.
    """
    if sum(map(bool, (to_file, to_keyring, to_passphrase))) > 1:
        raise click.UsageError("give one of --to-key-file, --to-keyring and --to-passphrase")
    key = memory.key()
    source = KeySource("file", str(to_file.absolute()) if to_file else "")
    words = None
    if to_keyring:
        source = KeySource("keyring")
    if to_passphrase:
        source = KeySource("passphrase")
        words = ask_new_passphrase()
    with memory.opened():  # a memory that cannot be opened gets no new key
        pass
    lock, source = new_lock(source, memory.file, words)
    lock_anew(memory.file, key, lock, source)
    if as_json:
        put({"kind": source.kind, "name": source.name})
        return
    where = {"file": f"the key in {source.name}", "keyring": f"the key {source.name} in the OS keyring"}
    say(f"{memory.file} opens with {where.get(source.kind, 'the passphrase')} now")


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A counter on standard error, where that is a terminal."""
    shown = sys.stderr.isatty()

    def tell(done: int, total: int) -> None:
        if shown:
            click.echo(f"\r{what}: {done} of {total}", nl=False, err=True)

    yield tell
    if shown:
        click.echo("", err=True)


@contextmanager
def _lines(file: Path) -> Iterator[TextIO]:
    """What is not UTF-8 comes through marked, so that the import can name its line."""
    if str(file) == "-":
        stdin = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape")
        try:
            yield stdin
        finally:
            stdin.detach()  # standard input itself stays open
        return
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        yield lines


COMMANDS = (export, import_, backup, check, repair, rekey)
