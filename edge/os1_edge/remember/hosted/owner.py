"""Which of the wearer's devices a collection belongs to: one writes to it, until another takes it over."""

from __future__ import annotations

from os1_edge.remember.hosted.seal import NotSealed, Seal
from os1_edge.remember.hosted.shelf import NotReached, SealedRow, Shelf
from os1_edge.remember.index import Index

_OWNER, _NOWHERE = "owner", -2
"""The row that says whose the collection is, and its shelf."""


def owner(shelf: Shelf, seal: Seal) -> str | None:
    """The device that the collection belongs to; ``None``: nobody's yet.

    Raises:
        NotReached: another wearer's, or the key is another.
    """
    row_id = seal.row_id(_OWNER)
    row = shelf.get([row_id]).get(row_id)
    try:
        if row is not None:
            return seal.open(row_id, row.shelf, row.sealed).decode()
    except NotSealed:
        row = None
    if shelf.count():
        raise NotReached(
            "the collection on the server was filled under another key; name another --wearer, or adopt it "
            "with its recovery key"
        )
    return None


def claim(shelf: Shelf, seal: Seal, device: str) -> None:
    """The collection is this device's from now on."""
    row_id = seal.row_id(_OWNER)
    shelf.put([(SealedRow(row_id, _NOWHERE, seal.seal(row_id, _NOWHERE, device.encode())), None)])


def require_ours(store: Index, seal: Seal, shelf: Shelf) -> None:
    """Asked before whatever changes the collection or relies on it: a connection stays open for days, and
    what this device deletes another may hold only there.

    Raises:
        NotReached: another device has taken the memory over, or the server cannot be asked.
    """
    if owner(shelf, seal) != store.meta("device"):
        raise NotReached(
            "the memory on the server was taken over by another device of the wearer; "
            "nothing is sent from this one"
        )
