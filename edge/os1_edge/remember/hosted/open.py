"""What the rest of the memory asks of this room: the search, the courier and the way home."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from os1_edge.remember.hosted.courier import Courier, send_all
from os1_edge.remember.hosted.owner import require_ours
from os1_edge.remember.hosted.search import HostedSearch, Line
from os1_edge.remember.hosted.shelf import REACH_S, MilvusShelf, Shelf
from os1_edge.remember.hosted.state import Place, place_of
from os1_edge.remember.hosted.window import bring_home, newest_away
from os1_edge.remember.index import Index
from os1_edge.remember.schema import TABLES
from os1_edge.remember.store import Store

CONNECT_S = 2.0
"""Time for each request that reaches the server before a question; commands have longer."""


def hosted_search(store: Store) -> HostedSearch:
    """The search of a memory of which part may be away."""
    return HostedSearch(store, _place(store).seal(), Line(lambda: reach(store, CONNECT_S)))


def courier(store: Store) -> Courier | None:
    """Sends what changes from now on; ``None``: the memory is on this device only."""
    place = place_of(store)
    return None if place is None else Courier(store, place.seal(), lambda: reach(store))


_BEGINS = {"turn": "time", "context": "time", "event": "start_time", "summary": "start_time"}


def complete(store: Index, since: datetime | None, rows: Iterable[tuple[str, int]] = ()) -> None:
    """Brings home what is only on the server, unless all of it ended before ``since``, or before the first of
    ``rows`` (kind, id) began: what is away is connected with nothing that came after it (``window``).

    Raises:
        NotReached, Incomplete: it cannot be had now; what came is here, nothing else changed.
    """
    newest = newest_away(store)
    since = since or _earliest(store, rows)
    if not newest or (since is not None and newest < since.isoformat()):
        return
    seal, shelf = _place(store).seal(), reach(store)
    try:
        bring_home(store, seal, shelf)
        send_all(store, seal, shelf)
    finally:
        shelf.close()


def _earliest(store: Index, rows: Iterable[tuple[str, int]]) -> datetime | None:
    """When the first of ``rows`` began; ``None``: there is no telling."""
    times: list[tuple[str]] = []
    for kind, row in rows:
        if kind not in _BEGINS:
            return None  # a profile line may rest on anything
        times += store.rows(f"SELECT {_BEGINS[kind]} FROM {TABLES[kind]} WHERE id = ?", row)
    return datetime.fromisoformat(min(times)[0]) if times else None


def reach(store: Index, timeout_s: float = REACH_S) -> Shelf:
    """The server that holds the memory.

    Raises:
        NotReached: it is not there, or another device has taken the memory over.
    """
    place = _place(store)
    shelf = MilvusShelf(place, timeout_s)
    try:
        require_ours(store, place.seal(), shelf, timeout_s)
        shelf.drop_before()  # where a kill left it
    except BaseException:
        shelf.close()
        raise
    return shelf


def _place(store: Index) -> Place:
    place = place_of(store)
    assert place is not None  # whoever calls has seen the mark
    return place
