"""What the router needs of a server, and what may happen to a question there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from os1_edge.offload.budget import Budget
from os1_edge.offload.engine import EngineError, Message, Schema, Task
from os1_edge.offload.network import Around
from os1_edge.offload.offers import Offers

Failure = Literal["unreachable", "busy", "ending", "late", "refused", "unfit", "lost", "gone", "broken"]
"""Of a call: no way to the server; it has too much to do; it ends soon; it cannot keep the budget; it does
not know this wearer; it does not take this question; it has no such answer, or no longer; the machine behind
it that had the question is gone; its engine failed."""


Stranger = Literal["", "forged", "outdated", "barred"]
"""Who answers at the server's address, where no call comes through: nobody, or nothing is wrong; somebody
else (a captive portal); the server, on a day for which its certificate was not made; the server, hanging up
on a device without a certificate that it knows."""


class FarError(EngineError):
    """A call failed. Its words never quote the prompt."""

    def __init__(self, kind: Failure, words: str, retry_after_s: float = 0.0) -> None:
        super().__init__(words)
        self.kind: Failure = kind
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a server."""

    request_id: str
    """The same for every attempt: nothing is computed twice."""
    messages: Sequence[Message] = field(repr=False)
    max_tokens: int
    budget: Budget
    task: Task = "reply"
    schema: Schema | None = None
    hedged: bool = False
    """Whether the device may answer at the same time."""
    spent_s: float = 0.0
    """Seconds of the budget that were spent before it is asked."""
    prime: bool = False
    """Only to be read: a question that begins like it may follow."""
    prefix: str = field(default="", repr=False)
    """What the wearer has of the answer already: it is gone on with and not said again."""
    attempt: int = 0
    """How often it was asked before; then not over a connection that failed, nor at its address if there is
    another."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server has taken the question."""

    node: str = ""
    """Which of several servers has it."""


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Alive:
    """Still at it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete."""


@dataclass(frozen=True, slots=True)
class Step:
    """An event of an answer with its number, from 1 on without a gap."""

    seq: int
    event: Accepted | Text | Alive | Finished


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """How soon one kind of question would be answered; seconds."""

    wait_s: float
    first_token_s: float
    deviation_s: float


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe's answer."""

    rtt_s: float
    """Wall time of the call, upload of the padding included."""
    padding: int
    draining: bool = False
    loads: Mapping[Task, TaskLoad] = field(default_factory=dict)
    offers: Offers | None = None
    """What the server is, once it was asked; it is not with the first probe of a connection."""


class Far(Protocol):
    """A server, or several that stand for each other, behind two channels: questions with their pictures on
    one, the small things on the other."""

    name: str
    around: Around

    def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        """The answer's events. Closing it drops the call, which a server may take for a lost link: ``cancel``
        frees it at once.

        Raises:
            FarError: there is no answer, or none beyond what was given.
        """
        ...

    def resume(self, request_id: str, node: str, from_seq: int) -> AsyncGenerator[Step, None]:
        """The events of a question that was asked before, from ``from_seq`` on. See ``ask``."""
        ...

    async def cancel(self, request_id: str, node: str) -> None:
        """Nobody wants that answer any more; never raises."""
        ...

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        """Measures the way there and back.

        Args:
            padding: bytes sent along.
            timeout_s: then there is no way.
            fresh: over a new connection, which questions take too if it works; calls on the old one go on.
                An old one's own timers may sleep for minutes after an outage (grpc#32435, #25540).

        Raises:
            FarError: there is no way.
        """
        ...

    async def diagnose(self, timeout_s: float) -> Stranger:
        """Why there is no way to the server, as far as a handshake shows."""
        ...

    async def close(self) -> None:
        """Ends everything."""
        ...
