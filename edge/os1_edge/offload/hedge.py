"""Who says the first word: the server, or from the last responsible moment on the device. The other is told
to stop. What has been said is never said again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from os1_edge.clock import Clock
from os1_edge.offload.engine import EngineError
from os1_edge.offload.far import Accepted, Alive, Failure, Far, FarError, Question, Step, Text
from os1_edge.offload.route import Decision

AGAIN_S = 0.1
"""Between two tries to resume."""

HEARTBEAT_S = 0.5
"""A server at work says so at least this often."""

GAP_S, GAPS = 0.4, 4.0
"""An answer is broken off when nothing has come for a heartbeat and ``GAP_S``, or ``GAPS`` usual gaps."""

TICK_S = 0.001
"""Waits below this are over: less may not move a clock on."""


ELSEWHERE: tuple[Failure, ...] = ("unreachable", "ending", "gone")
"""Failures that another server may not share."""


class Silent(EngineError):
    """The device has nothing to say."""


class Asked:
    """One question at a server, over as many calls as it takes."""

    def __init__(self, far: Far, question: Question, clock: Clock, *, alone: bool = False) -> None:
        """``alone``: the device cannot answer it, so it is asked once more where another server may."""
        self._far, self._question, self._clock, self._alone = far, question, clock, alone
        self._began = clock.now()
        self._steps = far.ask(question)
        self._seq = 0
        self._gap_s = 0.1
        self._ahead: Step | None = None
        """Read by ``resume`` already."""
        self.node = ""
        self.taken_s: float | None = None
        """Seconds until the server had taken the question."""
        self.first_s: float | None = None
        """Seconds until its first text."""
        self.over = False
        """Nothing is under way at the server any more."""
        self.failure: FarError | None = None
        """Why there is no answer."""

    async def first(self) -> str | None:
        """The first text; ``None``: the answer is empty.

        Raises:
            FarError: there is none.
        """
        try:
            text = await self._next()
        except FarError as e:
            if not self._alone or e.kind not in ELSEWHERE:
                raise
            # By the same id: nothing of it was given, so what is there already is welcome.
            spent_s = self._question.spent_s + self._clock.now() - self._began
            self._steps = self._far.ask(replace(self._question, attempt=1, spent_s=spent_s))
            self._seq, self.over, self.failure = 0, False, None
            text = await self._next()
        self.first_s = self._clock.now() - self._began
        return text

    async def more(self) -> str | None:
        """The next text; ``None``: the answer is complete.

        Raises:
            FarError: it broke off.
            TimeoutError: the server fell silent.
        """
        began = self._clock.now()
        text = await self._next(max(HEARTBEAT_S + GAP_S, GAPS * self._gap_s))
        self._gap_s += 0.25 * (self._clock.now() - began - self._gap_s)
        return text

    async def resume(self, within_s: float) -> None:
        """Picks up an answer that broke off.

        Raises:
            FarError: the server does not go on with it within ``within_s``.
        """
        began = self._clock.now()
        while (left := began + within_s - self._clock.now()) > TICK_S:
            self._steps = self._far.resume(self._question.request_id, self.node, self._seq + 1)
            try:
                # Read here, so that a server that does not know the answer any more is found out now.
                self._ahead = await asyncio.wait_for(anext(self._steps), left)
                return
            except (TimeoutError, StopAsyncIteration):
                break
            except FarError as e:
                if e.kind != "unreachable":
                    raise
            await asyncio.sleep(min(AGAIN_S, left))  # the other connection is being made anew
        raise FarError("unreachable", f"{self._far.name}: the answer is not picked up again")

    async def _next(self, patience_s: float | None = None) -> str | None:
        while True:
            step = await self._step(patience_s)
            if step.seq <= self._seq:
                continue
            self._seq = step.seq
            match step.event:
                case Accepted(node=node):
                    self.node = node
                    if self.taken_s is None:
                        self.taken_s = self._clock.now() - self._began
                case Text(text=text):
                    return text
                case Alive():
                    pass
                case _:
                    self.over = True
                    await self._steps.aclose()
                    return None

    async def _step(self, patience_s: float | None) -> Step:
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        try:
            return await asyncio.wait_for(anext(self._steps), patience_s)
        except StopAsyncIteration:
            raise FarError("broken", f"{self._far.name}: the answer has no end") from None
        except FarError as e:
            self.over, self.failure = e.kind != "unreachable", e
            raise

    async def drop(self) -> None:
        """Nobody wants it any more: ends the call, and the server's work at once."""
        with suppress(FarError):
            await self._steps.aclose()
        if not self.over:
            self.over = True
            await self._far.cancel(self._question.request_id, self.node)


@dataclass(slots=True)
class Outcome:
    """How a race ended."""

    winner: Literal["cloud", "local"]
    text: str | None
    """The first; ``None``: an empty answer."""
    near: AsyncGenerator[str, None] | None
    """The device's answer, if it was begun."""
    first_s: float
    both: bool
    """Whether both were at work at the same time."""


class Answering(Protocol):
    """A server's side of a race."""

    @property
    def taken_s(self) -> float | None:
        """See ``Asked``."""
        ...

    async def first(self) -> str | None:
        """See ``Asked``."""
        ...

    async def drop(self) -> None:
        """See ``Asked``."""
        ...


async def race(
    asked: Answering,
    begin_near: Callable[[], AsyncGenerator[str, None]],
    decision: Decision,
    clock: Clock,
    behind: Callable[[Coroutine[Any, Any, None]], object],
) -> Outcome:
    """The first text of whichever side has one first. The loser is told to stop; ``behind`` is given what is
    left to do until it has.

    Raises:
        EngineError: neither has an answer.
    """
    began = clock.now()
    far = asyncio.create_task(asked.first())
    near: AsyncGenerator[str, None] | None = None
    near_first: asyncio.Task[str] | None = None
    both, won = False, None
    try:
        while won is None:
            failed = _error(far) is not None
            left = _left(decision, asked, clock.now() - began, failed=failed)
            if near_first is None and left is not None and left <= TICK_S:
                near = begin_near()
                near_first = asyncio.create_task(_text(near))
                both = not failed
            running = [t for t in (far, near_first) if t is not None and not t.done()]
            wait = left if near_first is None else None
            await asyncio.wait(running, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            won = _winner(far, near_first)
        text = far.result() if near_first is None or won == "cloud" else near_first.result()
        return Outcome(won, text, near, clock.now() - began, both)
    finally:
        if won != "cloud":
            far.cancel()
            behind(_ended(far, asked.drop))
        if won != "local" and near is not None and near_first is not None:
            near_first.cancel()
            behind(_ended(near_first, near.aclose))


def _winner(
    far: asyncio.Task[str | None], near: asyncio.Task[str] | None
) -> Literal["cloud", "local"] | None:
    """Who has said a word; nobody yet.

    Raises:
        EngineError: neither ever will.
    """
    for task, side in ((far, "cloud"), (near, "local")):
        if task is not None and task.done() and _error(task) is None:
            return "cloud" if side == "cloud" else "local"
    if near is not None and (error := _error(near)) is not None and _error(far) is not None:
        raise error
    return None


def _error(task: asyncio.Task[Any]) -> EngineError | None:
    """Why a side is out; None: it is not.

    Raises:
        Exception: one that no engine should raise.
    """
    error = task.exception() if task.done() else None
    if error is not None and not isinstance(error, EngineError):
        raise error
    return error


async def _ended(first: asyncio.Task[Any], rest: Callable[[], Awaitable[None]]) -> None:
    await asyncio.wait((first,))
    if not first.cancelled():
        first.exception()  # seen: nobody waits for it
    await rest()


def _left(decision: Decision, asked: Answering, waited_s: float, *, failed: bool) -> float | None:
    """Seconds until the device begins; ``None``: it does not."""
    if failed:
        return 0.0
    if decision.hedge_at is None:
        return None
    at = decision.hedge_at
    if asked.taken_s is None and decision.accept_by is not None:
        at = min(at, decision.accept_by)
    return at - waited_s


async def _text(near: AsyncGenerator[str, None]) -> str:
    try:
        return await anext(near)
    except StopAsyncIteration:
        raise Silent("the device has nothing to say") from None
