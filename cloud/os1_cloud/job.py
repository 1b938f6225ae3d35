"""One question at work, whether or not anybody reads along.

core imports it. Times are seconds of `now`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from os1_cloud.admission import Refused, class_of, deadline_s, late_at_its_turn
from os1_cloud.engines import BadImage, BadSchema, Engine, EngineError, Piece, Prompt, TooLong
from os1_cloud.events import Accepted, Ask, Delta, Done, Event, Progress, Record
from os1_cloud.failing import refused_by
from os1_cloud.places import Places
from os1_cloud.ring import Ring

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """What an answer keeps to."""

    heartbeat_s: float = 0.5
    """Longest silence while a question is in work."""
    grace_s: float = 2.0
    """How long an answer goes on that nobody reads any more: a link that breaks is back by then, or the
    glasses answer by themselves."""
    spread_s: float = 0.001
    """Between two messages of one answer, for each answer at work: 1,000 messages a second, half of what one
    event loop can write. Alone, an answer's words leave as they come; among 200 they leave in clauses."""


class Job:
    """One admitted question: waits for its place, asks the engine, keeps the events."""

    def __init__(
        self,
        ask: Ask,
        engine: Engine,
        places: Places,
        pace: Pace,
        now: Callable[[], float],
        at_end: Callable[[Job], None],
    ) -> None:
        """`at_end` is called once, when the engine is free again."""
        self.ask, self.engine = ask, engine
        self.kind = class_of(ask.task, ask.background)
        self.record = Record(ask.request_id, ask.caller, ask.task, self.kind, engine.name, now(), ask.trace)
        self.ring = Ring()
        self._places, self._pace, self._now, self._at_end = places, pace, now, at_end
        self._why: Refused | None = None
        self._gone: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._deadline = self._heard + deadline_s(ask.budget, self.kind)
        load = places.load(ask.task, self._deadline, first=self.kind == "reply")
        known = (
            None if load.wait_s is None or load.first_token_s is None else load.wait_s + load.first_token_s
        )
        self._waiter, self._begun = places.enter(self.kind, self._deadline), False
        self._add(Accepted(engine.name, load.ahead, known))
        self._task = asyncio.ensure_future(self._run())
        self._alarms = [
            self._loop.call_later(pace.heartbeat_s, self._beat),
            self._loop.call_later(max(0.0, ask.budget.total_s), self._expire),
        ]

    @property
    def ended(self) -> bool:
        """Whether its last event is there and its engine is free."""
        return self._task.done()

    def forget(self) -> None:
        """Lets go of what was asked; the answer stays."""
        self.ask = replace(self.ask, prompt=Prompt((), 0))

    def cancel(self, why: Refused) -> bool:
        """Stops it; whether it was at work until now. The engine is free when `ended`."""
        if self._why is not None or self._task.done() or self.ring.ended:
            return False
        self._why, self.record.stop_asked = why, self._now()
        self.ring.end(why)
        if self._begun:  # else it would end without its `finally`
            self._task.cancel()
        return True

    async def follow(
        self, from_seq: int, pace_s: Callable[[], float]
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """See `Ring.follow`. When the last reader leaves, the answer goes on for the grace."""
        if self._gone is not None:
            self._gone.cancel()
            self._gone = None
        try:
            async with aclosing(self.ring.follow(from_seq, pace_s)) as events:
                async for numbered in events:
                    yield numbered
        finally:
            if not self.ring.ended and not self.ring.readers:
                self._gone = self._loop.call_later(self._pace.grace_s, self._leave)

    def _leave(self) -> None:
        if not self.ring.readers and self.cancel(Refused("cancelled", "its client went away")):
            self.record.outcome = "gone"

    def _expire(self) -> None:
        self.cancel(Refused("expired", "the budget ran out during the answer"))

    def _beat(self) -> None:
        silence = self._loop.time() - self._heard
        if silence >= self._pace.heartbeat_s and not self.ring.ended:
            self._add(Progress(self._now() - self.record.arrived, self.record.placed is None))
            silence = 0.0
        self._alarms[0] = self._loop.call_later(self._pace.heartbeat_s - silence, self._beat)

    def _add(self, event: Event) -> None:
        self._heard = self._loop.time()
        if not self.ring.ended:
            self.ring.add(event)

    async def _run(self) -> None:
        record, error, self._begun = self.record, None, True
        try:
            if self._why is not None:
                self._places.leave(self._waiter)
                raise self._why
            async with self._places.place(self._waiter):
                record.placed = self._now()
                late = late_at_its_turn(self.ask.budget, record.placed - record.arrived)
                if late is not None:
                    raise late
                await self._answer(record.placed)
            record.outcome = "read" if self.ask.prime else "answered"
        except Refused as e:
            error, record.outcome = e, record.outcome or e.why
        except asyncio.CancelledError:
            # Not passed on: nothing awaits this task but those who want to know that it has ended.
            error = self._why or Refused("draining", "this server ends")
            record.outcome = record.outcome or error.why
        except Exception as e:
            # Only the kind: an error's words may quote the prompt.
            log.error("ask %s: %s", record.request_id, type(e).__name__)
            error, record.outcome = Refused("engine_failed", f"{self.engine.name} failed"), "failed"
        finally:
            for alarm in (*self._alarms, self._gone):
                if alarm is not None:
                    alarm.cancel()
            record.ended = self._now()
            self.ring.end(error)
            self._at_end(self)

    async def _answer(self, placed: float) -> None:
        record = self.record
        try:
            async with aclosing(self.engine.generate(self.ask.prompt)) as parts:
                async for part in parts:
                    now = self._now()
                    record.first = now if record.first is None else record.first
                    if isinstance(part, Piece):
                        record.pieces += 1
                        if not self.ask.prime:
                            self._add(Delta(part.text))
                        continue
                    record.finished = part
                    if not self.ask.prime:
                        self._places.learn(self.ask.task, record.first - placed, now - placed)
                    self._add(
                        Done(part, placed - record.arrived, record.first - placed, now - record.arrived)
                    )
        except TooLong as e:
            raise Refused("too_long", str(e)) from e
        except BadSchema as e:
            raise Refused("bad_schema", str(e)) from e
        except BadImage as e:
            raise Refused("bad_image", str(e)) from e
        except EngineError as e:
            log.error("ask %s: %s", record.request_id, e)
            raise refused_by(e) from e
