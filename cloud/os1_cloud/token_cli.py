"""`os1 token`: makes, lists and withdraws what wearers show to a server. The file holds hashes only."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click
from filelock import FileLock

from os1_cloud.auth import NAME, BadTokens, Token, read_tokens

BYTES = 32
"""Of randomness in a token: no salt is needed, nobody tries them all."""
FILE = click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The server's --tokens.",
)


@click.group()
def token() -> None:
    """Who may call an offload server."""


@token.command()
@click.argument("name")
@FILE
@click.option("--days", type=click.IntRange(1), help="It ends after so many days  [it does not]")
def create(name: str, path: Path, days: int | None) -> None:
    """Make a token for the wearer NAME and print it, once."""
    if not NAME.fullmatch(name):
        raise click.BadParameter("1 to 64 letters, digits, '.', '_', '@', '-'", param_hint="NAME")
    made = secrets.token_urlsafe(BYTES)
    until = None if days is None else time.time() + days * 86_400
    new = Token(name, hashlib.sha256(made.encode()).hexdigest(), until)
    with _locked(path):
        _write(path, [*_read(path), new])
    click.echo(made)


@token.command("list")
@FILE
def list_(path: Path) -> None:
    """Show whose tokens there are: name, the hash's beginning, until when."""
    for each in _read(path):
        ends = (
            "no end"
            if each.until is None
            else f"{datetime.fromtimestamp(each.until, UTC):%Y-%m-%d %H:%M} UTC"
        )
        over = " (over)" if each.until is not None and each.until <= time.time() else ""
        click.echo(f"{each.name}  {each.sha256[:12]}  {ends}{over}")


@token.command()
@click.argument("name")
@FILE
def revoke(name: str, path: Path) -> None:
    """Withdraw the tokens of NAME, or the one whose hash begins with NAME (8 digits at least)."""
    with _locked(path):
        tokens = _read(path)
        kept = [t for t in tokens if t.name != name and not (len(name) >= 8 and t.sha256.startswith(name))]
        gone = len(tokens) - len(kept)
        if not gone:
            raise click.ClickException(f"{path} holds no token of {name}")
        _write(path, kept)
    click.echo(f"{gone} withdrawn; a running server notices within a second")


def _locked(path: Path) -> FileLock:
    return FileLock(f"{path}.lock")


def _read(path: Path) -> list[Token]:
    if not path.exists():
        return []
    try:
        return read_tokens(path)
    except BadTokens as e:
        raise click.ClickException(str(e)) from e


def _write(path: Path, tokens: Iterable[Token]) -> None:
    """In one step: a server that reads meanwhile finds the old file or the new one."""
    beside = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("# written by os1 token; SHA-256 of each, not the tokens themselves\n")
            file.writelines(f"{each.line}\n" for each in tokens)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as e:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise click.ClickException(f"{path} cannot be written ({e.strerror}); nothing has changed") from e
