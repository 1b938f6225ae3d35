"""Sends what changed on the device to the server, sealed; what was sent is noted only when the server has it.

A kill at any point loses nothing: a change stays noted in the file until then, and sending it twice is the
same as once. While there is no link changes wait in the file (a name each); one log line an outage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from time import monotonic

import sqlcipher3

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.hosted.content import Content, canonical, read
from os1_edge.remember.hosted.owner import require_ours, say_rows
from os1_edge.remember.hosted.seal import Seal
from os1_edge.remember.hosted.shelf import BATCH, SealedRow, Shelf
from os1_edge.remember.hosted.state import has_traces, least, place_of, purged, sent, waiting
from os1_edge.remember.hosted.window import let_go
from os1_edge.remember.index import Index
from os1_edge.remember.rows import now
from os1_edge.remember.vectors import Vector, unpack

log = logging.getLogger(__name__)

LET_GO_S = 86_400.0
"""Between looks for what may leave the device: days are what is kept here."""

PURGE_S = 60.0
"""Until the server is asked anew to let go of what was forgotten, where it has not begun; then doubled."""

EVERY_S = 5.0
"""Between looks for what changed: a turn's rows then go in one request."""

CLOSE_S = 5.0
"""Time that the request in hand has when the memory is closed."""

LONGEST_S = 300.0
"""Between tries while the server cannot be reached; they begin at ``EVERY_S`` and double."""


def send(store: Index, seal: Seal, shelf: Shelf, limit: int = BATCH) -> int:
    """Sends the oldest changes; returns how many, 0: there were none.

    Raises:
        NotReached: the server did not take them, or is another device's now; they stay noted.
    """
    entries = waiting(store, limit)
    if not entries:
        return 0
    require_ours(store, seal, shelf)
    put: list[tuple[SealedRow, Vector | None]] = []
    gone: list[bytes] = []
    with store.reading() as db:
        found = [(canonical(name), read(db, name)) for _, name in entries]
    for name, content in found:
        if content is not None:
            put.append(sealed(seal, content))
            continue
        row_id = seal.row_id(name)
        if not store.rows("SELECT 1 FROM hosted_away WHERE row_id = ?", row_id):
            gone.append(row_id)
    shelf.put(put)
    if gone:
        say_rows(shelf, seal, least(store))
        shelf.delete(gone)
    # work that is done goes too; the server is asked to write its files anew only for what was forgotten
    sent(store, entries, forgot=any(c is not None and c.table == "forgotten" for _, c in found))
    return len(entries)


def send_all(store: Index, seal: Seal, shelf: Shelf, tell: Callable[[str], None] = lambda _: None) -> int:
    """Sends every change; returns how many.

    Raises:
        NotReached: the server did not take some; they stay noted.
    """
    done = 0
    while some := send(store, seal, shelf):
        done += some
        tell(f"{done} rows sent")
    if done:
        say_rows(shelf, seal, least(store))
    return done


def purge(store: Index, seal: Seal, shelf: Shelf) -> bool:
    """Has the server let go of what was forgotten, if anything was; returns whether nothing is left to ask.

    Raises:
        NotReached: it did not; it is asked again.
    """
    if has_traces(store):
        require_ours(store, seal, shelf)
        if (generation := shelf.purge()) is None:
            return False
        purged(store, generation)
        shelf.drop_before()
    return True


def sealed(seal: Seal, content: Content) -> tuple[SealedRow, Vector | None]:
    """A row as it goes to the server."""
    row_id, shelf = seal.row_id(content.name), content.shelf
    row = SealedRow(row_id, shelf, seal.seal(row_id, shelf, content.encode()))
    if shelf < 0 or content.item is None:
        return row, None
    return row, seal.leaving(unpack([content.item.vector])[0])


class Courier:
    """Sends in a thread of its own, so that neither a turn nor recall waits for the link."""

    def __init__(self, store: Index, seal: Seal, connect: Callable[[], Shelf]) -> None:
        """``connect`` opens a shelf of its own; `NotReached` is tried again later."""
        self._store, self._seal, self._connect = store, seal, connect
        self._shelf: Shelf | None = None
        self._next_look = self._next_purge = 0.0
        self._purge_wait = PURGE_S
        self._stop = Event()
        self._thread = Thread(target=self._run, name="memory courier", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; what was not sent yet stays noted. A request that hangs is not waited for."""
        self._stop.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        wait, told = EVERY_S, False
        while not self._stop.wait(wait):
            try:
                self.once()
                if told:
                    log.warning("the server that holds the memory takes what waited")
                wait, told = EVERY_S, False
            except BadMemory as e:
                if not told:
                    log.warning("%s; what changes waits on this device", e)
                wait, told = min(2 * wait, LONGEST_S), True
            except sqlcipher3.ProgrammingError:
                if not self._stop.is_set():
                    raise
                return  # the file was closed; what was sent is sent again at the next start
            except sqlcipher3.DatabaseError as e:  # the disk is full, or a command holds the file
                if not told:
                    log.warning("the memory file: %s; what changes waits on this device", type(e).__name__)
                wait, told = min(2 * wait, LONGEST_S), True
        self._disconnect()

    def once(self) -> None:
        """Sends what waits, and once a day takes out of the file what is old enough.

        Raises:
            BadMemory: the server does not take it.
            sqlcipher3.DatabaseError: the file cannot be read or written now; nothing was noted as sent.
        """
        place = place_of(self._store)
        if place is None:
            return  # home again
        due = monotonic() >= self._next_look
        purging = monotonic() >= self._next_purge and has_traces(self._store)
        if not (due or purging or waiting(self._store, 1)):
            return
        try:
            self._shelf = self._shelf or self._connect()
            send_all(self._store, self._seal, self._shelf)
            if due:
                let_go(self._store, self._seal, self._shelf, now() - timedelta(days=place.keep_days))
                self._next_look = monotonic() + LET_GO_S
            if purging:
                done = purge(self._store, self._seal, self._shelf)
                self._next_purge = monotonic() + self._purge_wait
                self._purge_wait = PURGE_S if done else min(2 * self._purge_wait, LET_GO_S)
        except BadMemory:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        shelf, self._shelf = self._shelf, None
        if shelf is not None:
            shelf.close()
