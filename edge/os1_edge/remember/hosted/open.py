"""What the rest of the memory asks of this room: the search, the courier and the way home."""

from __future__ import annotations

from datetime import datetime

from os1_edge.remember.hosted.courier import Courier, send
from os1_edge.remember.hosted.search import HostedSearch, Line
from os1_edge.remember.hosted.shelf import MilvusShelf
from os1_edge.remember.hosted.state import Place, place_of
from os1_edge.remember.hosted.window import bring_home, newest_away
from os1_edge.remember.store import Store

CONNECT_S = 2.0
"""Time to reach the server before a question; commands have longer."""


def hosted_search(store: Store) -> HostedSearch:
    """The search of a memory of which part may be away."""
    place = _place(store)
    return HostedSearch(store, place.seal(), Line(lambda: MilvusShelf(place, CONNECT_S)))


def courier(store: Store) -> Courier | None:
    """Sends what changes from now on; ``None``: the memory is on this device only."""
    place = place_of(store)
    return None if place is None else Courier(store, place.seal(), lambda: MilvusShelf(place))


def complete(store: Store, since: datetime | None) -> None:
    """Brings home what is only on the server, unless all of it ended before ``since``.

    Raises:
        NotReached, Incomplete: it cannot be had now; nothing was changed.
    """
    newest = newest_away(store)
    if not newest or (since is not None and newest < since.isoformat()):
        return
    place = _place(store)
    shelf = MilvusShelf(place)
    try:
        bring_home(store, place.seal(), shelf)
        while send(store, place.seal(), shelf):
            pass
    finally:
        shelf.close()


def _place(store: Store) -> Place:
    place = place_of(store)
    assert place is not None  # whoever calls has seen the mark
    return place
