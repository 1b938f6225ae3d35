"""The newest events of one answer, for whoever reads along, comes back, or comes late.

job imports it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from os1_cloud.admission import Refused
from os1_cloud.events import Delta, Event, Progress

BYTES = 64 * 1024
"""Of text: many times the longest answer (1024 tokens), little beside a picture."""
TOGETHER = 16 * 1024
"""Bytes of text in one message for a reader who is behind: far below what a message may hold."""
OVERHEAD = 16
"""Bytes that an event counts beyond its text."""


class Ring:
    """One writer, any number of readers. Events are numbered from 1 without a gap.

    Text that nobody has taken yet grows into one event, up to a bound: the slower the reader, the fewer and
    the bigger its messages, without a buffer beside this one.
    """

    def __init__(self, most_bytes: int = BYTES) -> None:
        self._events: deque[Event] = deque()  # bounded by most_bytes
        self._most, self._bytes = most_bytes, 0
        self.last = 0
        """Number of the newest event."""
        self._taken = 0
        self._ended = False
        self._error: Refused | None = None
        self._readers: set[asyncio.Event] = set()

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self._ended

    @property
    def error(self) -> Refused | None:
        """How it failed, once it has ended."""
        return self._error

    @property
    def readers(self) -> int:
        """How many read along."""
        return len(self._readers)

    def add(self, event: Event) -> None:
        """One more event."""
        events = self._events
        newest = events[-1] if events and self.last > self._taken else None
        if (
            isinstance(newest, Delta)
            and isinstance(event, Delta)
            and _length(newest.text) + _length(event.text) <= TOGETHER
        ):
            events[-1] = Delta(newest.text + event.text)
            self._bytes += _length(event.text)
        elif isinstance(newest, Progress) and isinstance(event, Progress):
            events[-1] = event
        else:
            self.last += 1
            events.append(event)
            self._bytes += _size(event)
        while self._bytes > self._most and len(events) > 1:
            self._bytes -= _size(events.popleft())
        self._wake()

    def end(self, error: Refused | None) -> None:
        """Nothing more comes; `error` is how it failed. The first call counts."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    def _wake(self) -> None:
        for reader in self._readers:
            reader.set()

    async def follow(
        self, from_seq: int = 1, pace_s: Callable[[], float] = lambda: 0.0
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """Events from `from_seq` on, old and new, with their numbers.

        Args:
            from_seq: the first one wanted.
            pace_s: seconds to wait after a text before the next is taken.

        Raises:
            Refused: the answer failed, or (`lost`) an event that is wanted is no longer there.
        """
        loop, news, at = asyncio.get_running_loop(), asyncio.Event(), max(from_seq, 1)
        self._readers.add(news)
        try:
            while True:
                first = self.last - len(self._events) + 1
                if at < first or at > self.last + 1:
                    raise Refused("lost", f"events {first} to {self.last} are kept, not {at}")
                if at <= self.last:
                    event = self._events[at - first]
                    self._taken = max(self._taken, at)
                    took = loop.time()
                    yield at, event
                    at += 1
                    if isinstance(event, Delta) and (wait := pace_s() - (loop.time() - took)) > 0:
                        await asyncio.sleep(wait)
                elif self._ended:
                    if self._error is not None:
                        raise self._error
                    return
                else:
                    news.clear()
                    await news.wait()
        finally:
            self._readers.discard(news)


def _size(event: Event) -> int:
    return OVERHEAD + (_length(event.text) if isinstance(event, Delta) else 0)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
