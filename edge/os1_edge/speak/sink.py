"""Where sound goes, and what happens when that breaks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from os1_edge.events import Samples

log = logging.getLogger(__name__)

OnPlayed = Callable[[Samples, float], None]
"""Is told each block as it begins to sound: 16 kHz samples, session second at which the first reaches the
ear. What has been told sounds to its end; what is not told is silence."""


class Sink(Protocol):
    """Where sound goes. No method may wait: a sink takes what is due a little later and plays it by
    itself."""

    @property
    def latency_s(self) -> float:
        """Seconds from the time at which a block is due to the ear."""
        ...

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """A reply begins; its first block follows. Raises when there is no device."""
        ...

    def write(self, block: Samples, at_s: float) -> None:
        """Takes mono float32 in -1..1, at the rate of ``begin``, due at session second ``at_s``. Blocks come
        in order and never overlap; what lies between them is silence. Never more than ``playback.AHEAD_S``
        early."""
        ...

    def drop(self, from_s: float) -> None:
        """Forgets the blocks due at ``from_s`` or later."""
        ...

    def end(self) -> str | None:
        """Nothing more comes for this reply; what was written still sounds. Returns the name of the file that
        keeps it, if one does."""
        ...


class Outlet:
    """A sink and a listener that may fail: that is logged once an outage, and the reply goes on in time.

    After a failure the sink is left alone until the next reply, which tries it again.
    """

    def __init__(self, sink: Sink, on_played: OnPlayed | None) -> None:
        self._sink = sink
        self._on_played = on_played
        self._open = False
        self._broken: set[str] = set()
        """What is failing and has been logged."""

    @property
    def latency_s(self) -> float:
        """See ``Sink``."""
        return self._sink.latency_s

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``Sink``."""
        self._open = self._works(lambda: self._sink.begin(turn_id, revision, rate))

    def write(self, block: Samples, at_s: float) -> None:
        """See ``Sink``."""
        self._open = self._open and self._works(lambda: self._sink.write(block, at_s))

    def drop(self, from_s: float) -> None:
        """See ``Sink``."""
        self._open = self._open and self._works(lambda: self._sink.drop(from_s))

    def end(self) -> str | None:
        """See ``Sink``."""
        file: list[str | None] = [None]

        def end() -> None:
            file[0] = self._sink.end()

        if self._works(end) and self._open:
            self._broken.discard("the speaker")
        self._open = False
        return file[0]

    def tell(self, played: Samples, at_s: float) -> None:
        """``OnPlayed``, if anyone listens."""
        if (on_played := self._on_played) is not None:
            self._works(lambda: on_played(played, at_s), "the listener to what is played")

    def _works(self, call: Callable[[], None], what: str = "the speaker") -> bool:
        try:
            call()
        except Exception as e:
            if what not in self._broken:
                self._broken.add(what)
                log.error("%s failed; replies go on without it: %s: %s", what, type(e).__name__, e)
            return False
        return True
