"""Who may ask, and when: pure decisions about budgets and load, and the gate that keeps the queue.

Knows neither gRPC nor engines; core imports it. All times are seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Literal

Why = Literal[
    "bad_request",
    "no_vision_model",
    "too_long",
    "bad_schema",
    "expired",
    "too_late",
    "queue_full",
    "draining",
    "engine_failed",
]
LONGEST_S = 120.0
"""The bound of an answer whose budget names none: past two minutes no wearer waits."""
FALLBACK_RETRY_S = 1.0
"""When to come back while nothing is known about how long answers take."""
WEIGHT = 0.25
"""Of the newest answer in the smoothed times: four answers make a new picture."""


class Refused(Exception):
    """A question that is not, or no longer, answered. The message holds nothing that was said."""

    def __init__(self, why: Why, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.why, self.retry_after_s = why, retry_after_s


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left of the client's patience when the question arrives. None: no bound."""

    first_token_s: float | None
    total_s: float


def budget_left(first_ms: int, total_ms: int, elapsed_ms: int, deadline_s: float | None) -> Budget:
    """The budget of a request, with what is spent taken off and the call's own deadline (seconds) applied.

    Zero milliseconds mean that the client names no bound. May be negative.
    """
    spent = elapsed_ms / 1000
    total = total_ms / 1000 - spent if total_ms else LONGEST_S
    total = min(total, LONGEST_S, LONGEST_S if deadline_s is None else deadline_s)
    return Budget(min(first_ms / 1000 - spent, total) if first_ms else None, total)


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the server is. Times are None while nothing is known."""

    busy: int
    waiting: int
    answer_s: float | None
    """Of one answer in the engine, smoothed."""
    first_token_s: float | None
    """From a place in the engine to the first text, smoothed."""

    @property
    def wait_s(self) -> float | None:
        """How long a new question waits: everybody ahead takes one whole answer."""
        ahead = self.busy + self.waiting
        return 0.0 if not ahead else None if self.answer_s is None else ahead * self.answer_s


def refusal(budget: Budget, load: Load, queue: int, draining: bool) -> Refused | None:
    """Why a question is refused on arrival, or None if it may wait for its place.

    An idle server tries whatever it guesses: only a new answer can correct a bad guess.

    Args:
        budget: what is left of it.
        load: how busy the server is.
        queue: questions that may wait.
        draining: whether the server ends soon.
    """
    if draining:
        return Refused("draining", "this server ends soon; ask another")
    if budget.total_s <= 0 or (budget.first_token_s is not None and budget.first_token_s <= 0):
        return Refused("expired", "the budget was spent before the question arrived")
    if load.busy and load.waiting >= queue:
        retry = FALLBACK_RETRY_S if load.answer_s is None else load.answer_s
        return Refused("queue_full", f"{load.waiting} questions wait already", retry)
    if not load.busy or load.wait_s is None:
        return None
    bound = budget.total_s if budget.first_token_s is None else budget.first_token_s
    expected = load.wait_s + (load.first_token_s or 0.0)
    if expected > bound:
        message = f"the first text is expected in {expected:.1f} s, the budget leaves {bound:.1f} s"
        return Refused("too_late", message, load.wait_s)
    return None


def late_at_its_turn(budget: Budget, waited_s: float) -> Refused | None:
    """Why a question that waited is dropped when its turn comes, or None."""
    bound = budget.total_s if budget.first_token_s is None else budget.first_token_s
    if waited_s < bound:
        return None
    return Refused("expired", f"the budget ran out after {waited_s:.1f} s in the queue")


def smoothed(old: float | None, sample: float) -> float:
    """The smoothed time after one more answer took `sample`."""
    return sample if old is None else old + WEIGHT * (sample - old)


class Gate:
    """Counts the questions that are in, and lets one at a time to the engine, first come first served."""

    def __init__(self) -> None:
        self._place = asyncio.Lock()
        self._in = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._answer_s: float | None = None
        self._first_token_s: float | None = None

    @property
    def load(self) -> Load:
        """How busy it is now."""
        busy = min(self._in, 1)
        return Load(busy, self._in - busy, self._answer_s, self._first_token_s)

    @contextmanager
    def question(self) -> Iterator[None]:
        """Counts one question from the moment of its admission, so that the next one sees it."""
        self._in += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._in -= 1
            if not self._in:
                self._empty.set()

    async def empty(self) -> None:
        """Waits until no question is in."""
        await self._empty.wait()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Waits for the place at the engine and keeps it until the block ends."""
        async with self._place:
            yield

    def learn(self, first_token_s: float, answer_s: float) -> None:
        """Takes the times of one complete answer into account."""
        self._first_token_s = smoothed(self._first_token_s, first_token_s)
        self._answer_s = smoothed(self._answer_s, answer_s)
