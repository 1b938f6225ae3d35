"""What an answer is made of, and what is noted about it: values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from os1_cloud.admission import Budget, Class, Task, Why
from os1_cloud.engines import Finished, Prompt


@dataclass(frozen=True, slots=True)
class Ask:
    """One question that is well formed."""

    request_id: str
    task: Task
    budget: Budget
    prompt: Prompt
    caller: str = ""
    """Whose it is; empty on a server that asks for no credential."""
    model: str = ""
    """The engine that is to answer; empty: the server chooses."""
    background: bool = False
    latest_only: bool = False
    prime: bool = False
    """Only the prompt is to be read: the answer has no text."""
    pictures: tuple[Picture, ...] = field(default=(), repr=False)
    """They belong to the last turn."""
    trace: str = ""
    """W3C traceparent."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it was sent: its bytes, or the hash of bytes that were sent before."""

    data: bytes = field(repr=False)
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    """The question is in the queue."""

    model: str
    ahead: int
    first_token_s: float | None


@dataclass(frozen=True, slots=True)
class Delta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Nothing to say yet."""

    elapsed_s: float
    queued: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is complete."""

    finished: Finished
    queue_s: float
    first_token_s: float
    total_s: float


Event = Accepted | Delta | Progress | Done


@dataclass(slots=True)
class Record:
    """What became of one question: times, counts and names, nothing that was said. Times are seconds of the
    server's clock; None: it did not come to that."""

    request_id: str
    caller: str
    task: Task
    kind: Class
    model: str
    arrived: float
    trace: str = ""
    placed: float | None = None
    first: float | None = None
    ended: float | None = None
    stop_asked: float | None = None
    """When it was cancelled."""
    pieces: int = 0
    finished: Finished | None = None
    outcome: Why | str = ""
    """"answered", "read" (a prime), "gone" (its client went away), "failed", or why it was refused."""


class Watcher(Protocol):
    """Is told what happens: metrics, spans, the log."""

    def refused(self, task: Task, why: Why) -> None:
        """A question was refused on arrival."""
        ...

    def ended(self, record: Record) -> None:
        """A question that was admitted came to its end."""
        ...

    def resumed(self, result: str) -> None:
        """An answer was picked up: "resumed", or why not."""
        ...
