"""Answers questions: admission, queue, engine, heartbeats and deadlines, whatever the transport.

Knows no gRPC; servicer puts it on the wire. All times are seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from os1_cloud.admission import Budget, Gate, Load, Refused, late_at_its_turn, refusal
from os1_cloud.engines import BadSchema, Engine, EngineError, Finished, Piece, Prompt, TooLong

log = logging.getLogger(__name__)
QUEUE = 4
"""Questions that may wait. Behind more than four others, a spoken answer is late whatever the model."""
HEARTBEAT_S = 0.5
"""Longest silence while a question is in work."""
Task = Literal["reply", "caption", "context", "plan", "consolidate"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One question that is well formed."""

    request_id: str
    task: Task
    budget: Budget
    prompt: Prompt


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


class Answerer:
    """One engine and the queue before it."""

    def __init__(
        self,
        engine: Engine,
        *,
        queue: int = QUEUE,
        heartbeat_s: float = HEARTBEAT_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine, self.queue = engine, queue
        self._heartbeat_s, self._now = heartbeat_s, now
        self._gate = Gate()
        self._draining = False

    @property
    def load(self) -> Load:
        """How busy it is now."""
        return self._gate.load

    @property
    def draining(self) -> bool:
        """Whether new questions are refused because the server ends."""
        return self._draining

    async def drain(self, grace_s: float) -> bool:
        """Refuses new questions and waits for the admitted ones; False if some were left after `grace_s`."""
        self._draining = True
        try:
            await asyncio.wait_for(self._gate.empty(), grace_s)
        except TimeoutError:
            return False
        return True

    async def ask(self, ask: Ask) -> AsyncGenerator[Event, None]:
        """`Accepted`, then `Delta` and `Progress` in any number, then `Done`.

        Closing the iterator stops the engine and frees the place before it returns.

        Raises:
            Refused: on arrival, at its turn, or in the middle when the budget runs out.
        """
        no = refusal(ask.budget, self.load, self.queue, self._draining)
        if no is not None:
            log.info("ask %s %s: refused, %s", ask.request_id, ask.task, no.why)
            raise no
        began, load, outcome = self._now(), self.load, "cancelled"
        try:
            with self._gate.question():
                async with aclosing(self._admitted(ask, began, load)) as events:
                    async for event in events:
                        yield event
            outcome = "answered"
        except Refused as e:
            outcome = e.why
            raise
        except Exception:
            outcome = "failed"
            raise
        finally:
            log.info("ask %s %s: %s in %.2f s", ask.request_id, ask.task, outcome, self._now() - began)

    async def _admitted(self, ask: Ask, began: float, load: Load) -> AsyncGenerator[Event, None]:
        """The work's events, with heartbeats between them, until the budget runs out.

        `load` is what was there before the question.
        """
        wait_s = load.wait_s
        known = None if wait_s is None or load.first_token_s is None else wait_s + load.first_token_s
        state = _State(queued=True)
        work = self._work(ask, began, state)
        # Begun before anybody is told: a reader who is slow to take `Accepted` keeps its turn in the queue.
        step = asyncio.ensure_future(anext(work))
        try:
            yield Accepted(self.engine.name, load.busy + load.waiting, known)
            while True:
                left = ask.budget.total_s - (self._now() - began)
                await asyncio.wait({step}, timeout=max(0.0, min(self._heartbeat_s, left)))
                if step.done():
                    event = step.result()
                    yield event
                    if isinstance(event, Done):
                        return
                    step = asyncio.ensure_future(anext(work))
                elif self._now() - began >= ask.budget.total_s:
                    raise Refused("expired", "the budget ran out during the answer")
                else:
                    yield Progress(self._now() - began, state.queued)
        finally:
            await _end(step)
            await work.aclose()

    async def _work(self, ask: Ask, began: float, state: _State) -> AsyncGenerator[Event, None]:
        """Waits for a place, then the engine's answer."""
        async with self._gate.place():
            state.queued = False
            placed = self._now()
            late = late_at_its_turn(ask.budget, placed - began)
            if late is not None:
                raise late
            first: float | None = None
            try:
                async with aclosing(self.engine.generate(ask.prompt)) as parts:
                    async for part in parts:
                        first = self._now() if first is None else first
                        if isinstance(part, Piece):
                            yield Delta(part.text)
                            continue
                        ended = self._now()
                        self._gate.learn(first - placed, ended - placed)
                        yield Done(part, placed - began, first - placed, ended - began)
            except TooLong as e:
                raise Refused("too_long", str(e)) from e
            except BadSchema as e:
                raise Refused("bad_schema", str(e)) from e
            except EngineError as e:
                log.error("ask %s: %s", ask.request_id, e)
                raise Refused("engine_failed", str(e)) from e


@dataclass(slots=True)
class _State:
    """What the work tells its heartbeat."""

    queued: bool


async def _end(step: asyncio.Task[Event]) -> None:
    """Stops one step of the work and waits until it has let go of what it held."""
    step.cancel()
    await asyncio.wait({step})
    if not step.cancelled():
        step.exception()  # fetched, so that asyncio does not report it as lost
