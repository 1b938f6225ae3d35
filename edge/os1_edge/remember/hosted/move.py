"""Moves a wearer's memory to a server and back. Cut off at any point, the same command goes on: nothing
leaves where it was before it was read back from where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.erase import clear, note_traces
from os1_edge.remember.hosted.content import KEPT, Content, canonical, sql_name
from os1_edge.remember.hosted.courier import send_all
from os1_edge.remember.hosted.open import reach
from os1_edge.remember.hosted.owner import NO_MEMORIES, claim, owner, require_ours, said_rows
from os1_edge.remember.hosted.seal import NotSealed, Seal
from os1_edge.remember.hosted.shelf import BATCH, MilvusShelf, NotReached, NotThere, Shelf
from os1_edge.remember.hosted.state import (
    Place,
    counts,
    give_up,
    intended,
    least,
    mark_away,
    place_of,
    settle,
    unsettle,
)
from os1_edge.remember.hosted.window import Incomplete, Tell, bring_home, compare, let_go
from os1_edge.remember.store import Store


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did."""

    rows: int
    """On the server, or come home."""
    away: int
    """Of these, rows that are on the server only."""
    left: str
    """Why traces of what left may still be where it was; "": there are none."""


def move_out(
    store: Store,
    place: Place,
    now: datetime,
    tell: Tell = lambda _: None,
    settled: Callable[[Place], None] = lambda _: None,
) -> Moved:
    """Sends the whole memory to ``place``, reads all of it back, and takes out of the device's file what
    ended longer ago than ``place.keep_days``.

    Args:
        store: the memory; it may lie there in part already, when an earlier move was cut off.
        place: where to. Of a memory that was moved before, its secret and whether vectors are turned count
            as they are noted in the file.
        now: the wearer's local time.
        tell: called with lines of progress.
        settled: called once the place and its secret are noted in the file, before anything is sent.

    Raises:
        NotReached: no server, or its collection is another's; the memory is here.
        Incomplete: the server did not keep what it was sent; the memory is here.
    """
    noted = place_of(store)
    if noted is not None and (noted.url, noted.wearer) != (place.url, place.wearer):
        raise BadMemory(
            f"the memory lies at {noted.url} as {noted.wearer!r}; first: os1 memory move --to local"
        )
    if noted is not None:
        place = replace(noted, token_file=place.token_file, ca_file=place.ca_file, keep_days=place.keep_days)
    else:
        place = intended(store, place)
    seal, device = place.seal(), str(store.meta("device"))
    shelf = MilvusShelf(place, make=True)
    try:
        if (holder := owner(shelf, seal)) not in (None, device):
            raise NotReached(f"another device of the wearer ({holder}) keeps its memory there")
        claim(shelf, seal, device, 0 if noted is None else least(store))
        place = replace(place, generation=shelf.generation)
        settle(store, place)
        settled(place)
        send_all(store, seal, shelf, tell)
        names = _names(store)
        held = compare(store, seal, shelf, names)
        missing = [name for name in names if not held[name]]
        _, away = counts(store)
        if missing or shelf.count() < len(names) + away + len(NO_MEMORIES):
            raise Incomplete(
                f"{len(missing)} of {len(names)} rows are not on the server as they were sent; the memory is "
                "whole on this device. Run the command again"
            )
        tell(f"{len(names)} rows read back from the server, each as it is here")
        let_go(store, seal, shelf, now - timedelta(days=place.keep_days), tell)
    finally:
        shelf.close()
    return Moved(len(names) + away, counts(store)[1], clear(store))


def move_home(store: Store, tell: Tell = lambda _: None, *, as_is: bool = False) -> Moved:
    """Brings the whole memory home, and has the server drop it once all of it is here.

    Args:
        store: the memory.
        tell: called with lines of progress.
        as_is: what the server lost is given up; else it is waited for, and the server drops nothing.

    Raises:
        BadMemory: it is at home.
        NotReached, Incomplete: not all of it can be had; what is here is here, the server keeps all.
    """
    place = place_of(store)
    if place is None:
        raise BadMemory("the memory is on this device already")
    try:
        shelf = reach(store)
    except NotThere:
        if counts(store)[1] and not as_is:
            raise
        unsettle(store)  # all was here and dropped there, and then the power failed
        return Moved(0, 0, clear(store))
    try:
        rows = _bring_home(store, place.seal(), shelf, tell, as_is)
        require_ours(store, place.seal(), shelf)
        left = shelf.drop()
    finally:
        shelf.close()
    unsettle(store)
    with store.transaction() as db:
        note_traces(db)
    return Moved(rows, 0, "; ".join(filter(None, (left, clear(store)))))


def adopt(store: Store, place: Place, tell: Tell = lambda _: None, *, as_is: bool = False) -> Moved:
    """Takes a memory over on a new device, whose file is empty: all comes home, and stays on the server.

    Args:
        store: a memory with nothing in it.
        place: where it lies, with the secret that its first device gave out (``recovery``).
        tell: called with lines of progress.
        as_is: what is there is taken, though rows are missing or cannot be opened.

    Raises:
        BadMemory: there is something in the file already.
        NotReached: no server, or the secret is not that of the collection.
        Incomplete: there are fewer rows than the other device sent, or some that cannot be opened.
    """
    if place_of(store) is None and _names(store):
        raise BadMemory("this device has a memory already; take it over into a new one (--memory FILE)")
    seal = place.seal()
    shelf = MilvusShelf(place)
    try:
        if owner(shelf, seal) is None:
            raise NotReached("the collection on the server is empty")
        settle(store, replace(place, generation=shelf.generation))
        found, sent = _find_all(store, place, shelf, as_is), said_rows(shelf, seal)
        if not as_is and (sent is None or found < sent):
            raise Incomplete(
                f"the server gives {found} rows, and the other device sent it more ({sent or 'unknown'}). "
                "Ask its operator for a backup of the collection, or take what is there: --as-is"
            )
        rows = _bring_home(store, seal, shelf, tell, as_is)
        claim(shelf, seal, str(store.meta("device")), found)
    finally:
        shelf.close()
    return Moved(rows, 0, "")


def _bring_home(store: Store, seal: Seal, shelf: Shelf, tell: Tell, as_is: bool) -> int:
    away = counts(store)[1]
    try:
        return bring_home(store, seal, shelf, tell)
    except Incomplete:
        if not as_is:
            raise
        lost = give_up(store)
        tell(f"{lost} rows are lost")
        return away - lost


def _find_all(store: Store, place: Place, shelf: Shelf, as_is: bool) -> int:
    """Notes all rows of the memory that the server has as being only there, unless they came home before a
    cut; returns how many there are."""
    seal, some, seen = place.seal(), list[Content](), set[bytes]()
    known = {row[0] for row in store.rows("SELECT row_id FROM hosted_away")}
    known |= {seal.row_id(name) for name in _names(store)}
    aside = {seal.row_id(name) for name in NO_MEMORIES}
    for row in shelf.every():
        if row.row_id in aside:
            continue
        if row.row_id in seen:
            raise NotReached("the server gives the same rows again and again")
        try:
            content = seal.open(*row)
        except NotSealed:
            if as_is:
                continue
            raise Incomplete(
                "a row on the server cannot be opened; ask its operator for a backup, or take what can be: "
                "--as-is"
            ) from None
        seen.add(row.row_id)
        if row.row_id not in known:
            some.append(Content.decode(content))
        if len(some) == BATCH:
            _note_away(store, place, some)
    _note_away(store, place, some)
    return len(seen)


def _note_away(store: Store, place: Place, some: list[Content]) -> None:
    with store.transaction() as db:
        mark_away(db, place.seal(), some)
    some.clear()


def _names(store: Store) -> list[str]:
    return [
        canonical(name)
        for table in KEPT
        for (name,) in store.rows(f"SELECT {sql_name(table, 'r')} FROM {table} r")
    ]
