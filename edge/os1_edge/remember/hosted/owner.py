"""What a collection says of itself, sealed: which of the wearer's devices it belongs to (one writes to it,
until another takes it over), and how many rows it holds."""

from __future__ import annotations

from os1_edge.remember.hosted.seal import NotSealed, Seal
from os1_edge.remember.hosted.shelf import WRITE_S, NotReached, SealedRow, Shelf
from os1_edge.remember.index import Index

_OWNER, _ROWS, _NOWHERE = "owner", "rows", -2
"""The row that says whose the collection is, that which says how many others there are, and their shelf."""

NO_MEMORIES = (_OWNER, _ROWS)
"""Names of the rows that are no row of a memory."""


def owner(shelf: Shelf, seal: Seal, timeout_s: float = WRITE_S) -> str | None:
    """The device that the collection belongs to; ``None``: nobody's yet.

    Raises:
        NotReached: another wearer's, or the key is another.
    """
    row_id = seal.row_id(_OWNER)
    row = shelf.get([row_id], timeout_s).get(row_id)
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


def claim(shelf: Shelf, seal: Seal, device: str, rows: int) -> None:
    """The collection is this device's from now on, and holds at least that many rows of its memory."""
    shelf.put([(_said(seal, _OWNER, device), None), (_said(seal, _ROWS, str(rows)), None)])


def say_rows(shelf: Shelf, seal: Seal, rows: int) -> None:
    """The collection holds at least that many rows of the memory; said after rows were added, and before
    rows are deleted, so that it is true whenever the power fails."""
    shelf.put([(_said(seal, _ROWS, str(rows)), None)])


def said_rows(shelf: Shelf, seal: Seal) -> int | None:
    """How many rows of the memory there have to be at least; ``None``: the server has lost that too."""
    row_id = seal.row_id(_ROWS)
    row = shelf.get([row_id]).get(row_id)
    try:
        return int(seal.open(row_id, row.shelf, row.sealed)) if row is not None else None
    except NotSealed:
        return None


def _said(seal: Seal, name: str, what: str) -> SealedRow:
    row_id = seal.row_id(name)
    return SealedRow(row_id, _NOWHERE, seal.seal(row_id, _NOWHERE, what.encode()))


def require_ours(store: Index, seal: Seal, shelf: Shelf, timeout_s: float = WRITE_S) -> None:
    """Asked before whatever changes the collection or relies on it: a connection stays open for days, and
    what this device deletes another may hold only there.

    Raises:
        NotReached: another device has taken the memory over, or the server cannot be asked.
    """
    if owner(shelf, seal, timeout_s) != store.meta("device"):
        raise NotReached(
            "the memory on the server was taken over by another device of the wearer; "
            "nothing is sent from this one"
        )
