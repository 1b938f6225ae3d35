"""`os1 memory move`, `hosted`, `adopt`: a memory on a server, and home again. A skin."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from os1_edge.remember.cli_common import PATH, Access, access, as_json, put, say
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.files import THERE, new_text
from os1_edge.remember.key import BadKey, load
from os1_edge.remember.rows import now
from os1_edge.remember.store import Store

if TYPE_CHECKING:  # the commands of a memory at home start without cryptography
    from os1_edge.remember.hosted.state import Place

_MILVUS = "milvus:"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_TOKEN = click.option("--token-file", type=_FILE, help="The server's token, in a file of mode 0600.")
_CA = click.option("--ca-file", type=_FILE, help="PEM of the authority that signed the server's certificate.")
_KEEP = click.option(
    "--keep-days", type=click.FloatRange(0, 36_500), help="What happened in these days stays on this device "
    "too; default: 30, or as it was moved.",
)  # fmt: skip


@click.command()
@access
@click.option("--to", required=True, help="milvus:URL of a server, or local: home again.")
@click.option(
    "--wearer", default="", help="Names the wearer on the server; default: this memory's device id."
)
@_KEEP
@click.option("--recovery", type=PATH, help="Also write the key of what is hosted to this new file.")
@_TOKEN
@_CA
@click.option("--plain-vectors", is_flag=True, help="Send vectors as they are, not turned (docs/hosted.md).")
@click.option("--as-is", is_flag=True, help="With local: give up what the server lost.")
@as_json
def move(
    memory: Access,
    to: str,
    wearer: str,
    keep_days: float | None,
    recovery: Path | None,
    token_file: Path | None,
    ca_file: Path | None,
    plain_vectors: bool,
    as_is: bool,
    as_json: bool,
) -> None:
    """Move the memory to a server, sealed by this device's key, or home again.

    Nothing leaves where it was before it was read back from where it goes. Cut off, the same command goes on.
    """
    from os1_edge.remember.hosted.move import move_home, move_out

    with memory.opened() as store:
        if to == "local":
            done = move_home(store, _tell, as_is=as_is)
            told = f"{done.rows} rows came home; the server holds nothing of them any more"
        else:
            place = _place(store, to, wearer, keep_days, token_file, ca_file, not plain_vectors)
            if recovery is not None:
                _require_free(place.secret, recovery)
            done = move_out(store, place, now(), _tell, lambda it: _write_recovery(it.secret, recovery))
            told = f"{done.rows} rows are on the server, {done.away} of them no more on this device"
            if recovery is None:
                told += "; if this device is lost, so are they: os1 memory hosted --recovery FILE"
    if as_json:
        put({"rows": done.rows, "away": done.away, "left": done.left})
    else:
        say(told)
        if done.left:
            say(done.left)


@click.command()
@access
@click.option("--recovery", type=PATH, help="Write the key of what is hosted to this new file.")
@as_json
def hosted(memory: Access, recovery: Path | None, as_json: bool) -> None:
    """Say what of the memory lies on a server, and what waits to be sent."""
    from os1_edge.remember.hosted import state
    from os1_edge.remember.hosted.shelf import collection_of

    with memory.opened() as store:
        place = state.place_of(store)
        if place is None:
            if recovery is not None:
                raise BadMemory("nothing of this memory is hosted")
            put({"hosted": False}) if as_json else say("the memory is on this device only")
            return
        waiting, away = state.counts(store)
    _write_recovery(place.secret, recovery)
    told = {
        "hosted": True,
        "url": place.url,
        "wearer": place.wearer,
        "collection": f"{collection_of(place.wearer)}_{place.generation}",
        "waiting": waiting,
        "away": away,
        "keep_days": place.keep_days,
    }
    if as_json:
        put(told)
        return
    for name, value in told.items():
        say(f"{name + ':':12}{value}")


@click.command()
@access
@click.option("--from", "from_", required=True, help="milvus:URL of the server that holds it.")
@click.option("--wearer", required=True, help="The wearer's name on the server.")
@click.option("--recovery", type=PATH, required=True, help="The key that its first device wrote.")
@_KEEP
@_TOKEN
@_CA
@click.option("--plain-vectors", is_flag=True, help="As it was moved there.")
@click.option("--as-is", is_flag=True, help="Take what is there, though the server lost some of it.")
def adopt(
    memory: Access,
    from_: str,
    wearer: str,
    recovery: Path,
    keep_days: float | None,
    token_file: Path | None,
    ca_file: Path | None,
    plain_vectors: bool,
    as_is: bool,
) -> None:
    """Take over a hosted memory on a new device; the old one sends nothing any more."""
    from os1_edge.remember.hosted.move import adopt as take_over
    from os1_edge.remember.hosted.state import Place

    with memory.opened(make=True) as store:
        place = Place(
            _url(from_), wearer, load(recovery), not plain_vectors, **_given(keep_days, token_file, ca_file)
        )
        done = take_over(store, place, _tell, as_is=as_is)
    say(f"{done.rows} rows are on this device and on the server")


COMMANDS = (move, hosted, adopt)


def _place(
    store: Store, to: str, wearer: str, keep_days: float | None, token_file: Path | None,
    ca_file: Path | None, turned: bool,
) -> Place:  # fmt: skip
    from os1_edge.remember.hosted import state

    given = _given(keep_days, token_file, ca_file)
    if (there := state.place_of(store)) is not None and (not wearer or wearer == there.wearer):
        if there.url != _url(to):
            raise BadMemory(f"the memory lies at {there.url}; first: os1 memory move --to local")
        if there.turned and not turned:
            raise BadMemory("its vectors lie turned on the server; first: os1 memory move --to local")
        return replace(there, **given)
    name = wearer or str(store.meta("device"))
    return state.Place(_url(to), name, state.new_secret(), turned, **given)


def _given(keep_days: float | None, token_file: Path | None, ca_file: Path | None) -> dict[str, Any]:
    """What was said of a place; the rest stays as it is."""
    said = {
        "keep_days": keep_days,
        "token_file": token_file and str(token_file.absolute()),
        "ca_file": ca_file and str(ca_file.absolute()),
    }
    return {name: value for name, value in said.items() if value is not None}


def _url(text: str) -> str:
    url = text.removeprefix(_MILVUS)
    if url == text or not url:
        raise click.UsageError("name the server as milvus:URL, such as milvus:https://memory.example:19530")
    if "://" not in url:
        return str(Path(url).absolute())  # a file of milvus-lite
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(parts.hostname or "")):
        raise click.UsageError("over a network the server is spoken to by https:// only")
    if parts.username is not None:
        raise click.UsageError("a token does not belong into a URL; give it in a file: --token-file")
    return url


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _require_free(secret: bytes, path: Path) -> bool:
    """Whether there is nothing at ``path`` yet; ``False``: a cut-off command has written the key there.

    Raises:
        BadMemory: there is something else, or no folder to write in.
    """
    if not path.parent.is_dir():
        raise BadMemory(f"{path.parent}: there is no such folder")
    if not os.path.lexists(path):
        return True
    try:
        same = load(path) == secret
    except BadKey:
        same = False
    if not same:
        raise BadMemory(f"{path}: {THERE}")
    return False


def _write_recovery(secret: bytes, path: Path | None) -> None:
    if path is None:
        return
    if _require_free(secret, path):
        with new_text(path) as file:
            file.write(secret.hex() + "\n")
    say(f"whoever has {path} can read what is hosted; keep it where this device is not")


def _tell(line: str) -> None:
    click.echo(line, err=True)
