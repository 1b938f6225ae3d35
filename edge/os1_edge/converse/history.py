"""The running conversation as the prompt holds it: the newest exchanges as they were sent, what came before
them as a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from os1_edge.offload.engine import Message
from os1_edge.remember.rows import StoredTurn
from os1_edge.remember.sessions import extract

LETTERS = 4
"""Characters of English a token, about; a budget need not be exact."""

EARLIER = "Earlier in this conversation: "

SUMMARY = 400
"""Characters of the summary: a hundred tokens."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn as the model was given it, and the reply as it was heard."""

    message: str
    heard: str
    reply: str
    time: datetime

    @property
    def letters(self) -> int:
        """Its length in the prompt."""
        return len(self.message) + len(self.reply)


@dataclass(slots=True)
class Conversation:
    """The running exchange. Bounded: when it is full, or longer than its share of the prompt, its older half
    goes at once, because each going makes the model read the rest again; a summary of it stays. Only ``add``
    changes it: a turn that is worked on ahead of its end, and then withdrawn, leaves no trace."""

    limit: int
    gap_s: float = 1200.0
    """Idle time after which a turn opens a new conversation."""
    tokens: int = 800
    """Its share of the prompt."""
    _exchanges: list[Exchange] = field(default_factory=list)
    _earlier: str = ""
    """What went, in short."""
    _prepared: tuple[Exchange, str] | None = None
    """A summary of everything up to an exchange, made ahead of its going."""

    def messages(self, opening: Sequence[Message], asked: str, time: datetime) -> list[Message]:
        """The whole prompt for ``asked`` at ``time``, behind the ``opening`` that never changes."""
        out = [*opening]
        going_on = self._going_on(time)
        # In front of the next exchange: as one of its own it needs a word of the companion's, which a small
        # model then says to everything.
        earlier = f"{EARLIER}{self._earlier}\n" if self._earlier else ""
        for exchange in going_on:
            out += [Message("user", earlier + exchange.message), Message("assistant", exchange.reply)]
            earlier = ""
        return [*out, Message("user", asked)]

    def said(self, time: datetime) -> Sequence[str]:
        """What the wearer said in the exchanges that the prompt at ``time`` holds."""
        return [exchange.heard for exchange in self._going_on(time)]

    def goes_on(self, time: datetime) -> bool:
        """Whether a turn at ``time`` would go on with it."""
        return bool(self._going_on(time))

    def replied(self, time: datetime) -> str:
        """The replies of the exchanges that the prompt at ``time`` holds."""
        return "\n".join(exchange.reply for exchange in self._going_on(time))

    def add(self, message: str, heard: str, reply: str, time: datetime) -> None:
        """The exchange as it was sent, and as much of the reply as was heard."""
        self._exchanges = self._going_on(time)
        if not self._exchanges:
            self._earlier, self._prepared = "", None
        if self.limit == 0:
            return
        if self._is_full():
            self._shorten()
        self._exchanges.append(Exchange(message, heard, reply, time))

    def to_summarise(self) -> Sequence[Exchange]:
        """What goes next, when a summary of it should be made ahead; empty: not yet, or it is made."""
        going = self._exchanges[: (self.limit + 1) // 2]
        near = len(self._exchanges) + 1 >= self.limit or self._letters() * 4 > self.tokens * LETTERS * 3
        if not going or not near or (self._prepared is not None and self._prepared[0] is going[-1]):
            return ()
        return going

    def summarised(self, going: Sequence[Exchange], text: str) -> None:
        """``text`` says what ``going``, of ``to_summarise``, was about. It is used when that goes, not
        before: what the model has read stays as it is."""
        self._prepared = (going[-1], text)

    @property
    def earlier(self) -> str:
        """The summary of what the prompt no longer holds."""
        return self._earlier

    def _is_full(self) -> bool:
        return len(self._exchanges) >= self.limit or self._letters() > self.tokens * LETTERS

    def _letters(self) -> int:
        return sum(exchange.letters for exchange in self._exchanges)

    def _shorten(self) -> None:
        half = (min(self.limit, len(self._exchanges)) + 1) // 2
        going, self._exchanges = self._exchanges[:half], self._exchanges[half:]
        prepared, self._prepared = self._prepared, None
        text = prepared[1] if prepared is not None and prepared[0] is going[-1] else by_rule(going)
        joined = f"{self._earlier} {text}".strip()
        self._earlier = joined if len(joined) <= SUMMARY else text[:SUMMARY]

    def _going_on(self, time: datetime) -> list[Exchange]:
        last = self._exchanges[-1].time if self._exchanges else None
        idle = last is not None and (time - last).total_seconds() > self.gap_s
        return [] if idle else self._exchanges


def as_turns(exchanges: Sequence[Exchange]) -> list[StoredTurn]:
    """Exchanges in the form that the memory's summaries read."""
    return [StoredTurn(0, "", one.time, one.heard, one.reply, "") for one in exchanges if one.heard]


def by_rule(going: Sequence[Exchange]) -> str:
    """A summary without a language model: the wearer's most telling sentences."""
    return extract(as_turns(going))
