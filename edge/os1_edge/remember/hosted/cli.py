"""`os1 memory move`, `hosted`, `adopt`: a memory on a server, and home again. A skin."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from os1_edge.remember.cli_common import PATH, Access, access, as_json, put, say
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.files import new_text
from os1_edge.remember.key import load
from os1_edge.remember.rows import now
from os1_edge.remember.store import Store

if TYPE_CHECKING:  # the commands of a memory at home start without cryptography
    from os1_edge.remember.hosted.state import Place

_MILVUS = "milvus:"


@click.command()
@access
@click.option("--to", required=True, help="milvus:URL of a server, or local: home again.")
@click.option(
    "--wearer", default="", help="Names the wearer on the server; default: this memory's device id."
)
@click.option(
    "--keep-days", type=click.FloatRange(0, 36_500), default=30.0, show_default=True,
    help="What happened in these days stays on this device too.",
)  # fmt: skip
@click.option("--recovery", type=PATH, help="Also write the key of what is hosted to this new file.")
@click.option("--token-file", type=PATH, help="The server's token, in a file of mode 0600.")
@click.option("--ca-file", type=PATH, help="PEM of the authority that signed the server's certificate.")
@click.option("--plain-vectors", is_flag=True, help="Send vectors as they are, not turned (docs/hosted.md).")
@click.option("--as-is", is_flag=True, help="With local: give up what the server lost.")
@as_json
def move(
    memory: Access,
    to: str,
    wearer: str,
    keep_days: float,
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
                _write_recovery(place.secret, recovery)
            done = move_out(store, place, now(), _tell)
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
    if recovery is not None:
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
@click.option("--keep-days", type=click.FloatRange(0, 36_500), default=30.0, show_default=True)
@click.option("--token-file", type=PATH)
@click.option("--ca-file", type=PATH)
@click.option("--plain-vectors", is_flag=True, help="As it was moved there.")
@click.option("--as-is", is_flag=True, help="Take what is there, though the server lost some of it.")
def adopt(
    memory: Access,
    from_: str,
    wearer: str,
    recovery: Path,
    keep_days: float,
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
            _url(from_), wearer, load(recovery), not plain_vectors, _absolute(token_file), _absolute(ca_file),
            keep_days=keep_days,
        )  # fmt: skip
        done = take_over(store, place, _tell, as_is=as_is)
    say(f"{done.rows} rows are on this device and on the server")


COMMANDS = (move, hosted, adopt)


def _place(
    store: Store, to: str, wearer: str, keep_days: float, token_file: Path | None, ca_file: Path | None,
    turned: bool,
) -> Place:  # fmt: skip
    from os1_edge.remember.hosted import state

    if (there := state.place_of(store)) is not None and (not wearer or wearer == there.wearer):
        if there.url != _url(to):
            raise BadMemory(f"the memory lies at {there.url}; first: os1 memory move --to local")
        return there
    name = wearer or str(store.meta("device"))
    return state.Place(
        _url(to), name, state.new_secret(), turned, _absolute(token_file), _absolute(ca_file),
        keep_days=keep_days,
    )  # fmt: skip


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


def _absolute(path: Path | None) -> str:
    return "" if path is None else str(path.absolute())


def _write_recovery(secret: bytes, path: Path) -> None:
    with new_text(path) as file:
        file.write(secret.hex() + "\n")
    say(f"whoever has {path} can read what is hosted; keep it where this device is not")


def _tell(line: str) -> None:
    click.echo(line, err=True)
