"""Answers questions: admission, idempotency, resume, cancel, drain, whatever the transport.

Knows no gRPC; servicer puts it on the wire. All times are seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from os1_cloud.admission import FALLBACK_RETRY_S, Load, Refused, Task, class_of, deadline_s, refusal
from os1_cloud.engines import Engine, sees, slots
from os1_cloud.events import Ask, Event, Record, Watcher
from os1_cloud.job import Job, Pace
from os1_cloud.pictures import Pictures
from os1_cloud.places import Places
from os1_cloud.wearers import WearerLimits, Wearers

log = logging.getLogger(__name__)
QUEUE = 4
"""Questions that may wait for each place. Behind more than four others, a spoken answer is late whatever the
model."""
KEPT_S = 60.0
"""How long an answer can be picked up after its end."""
KEPT = 1024
"""Ended answers kept at most: 64 MB if all were as long as can be."""
UNBOUNDED = WearerLimits(calls=0, asks_per_minute=0)
Key = tuple[str, str]
"""Caller and request_id."""


class Answerer:
    """The engines, the queue before each, and the answers under way."""

    def __init__(
        self,
        engines: Engine | Sequence[Engine],
        *,
        queue: int | None = None,
        limits: WearerLimits = UNBOUNDED,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        watchers: Sequence[Watcher] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        engines: the first that can answer a question does.
        queue: questions that may wait for each engine; None: `QUEUE` for each of its slots.
        limits: what one wearer may ask.
        pace: heartbeat, grace and the like.
        watchers: are told what happens.
        now: seconds, for budgets and what is noted.
        """
        self.engines: tuple[Engine, ...] = tuple(engines) if isinstance(engines, Sequence) else (engines,)
        self.places = {
            e.name: Places(slots(e), QUEUE * slots(e) if queue is None else queue) for e in self.engines
        }
        self.wearers = Wearers(limits)
        self.watchers = tuple(watchers)
        self._pace, self._now = pace, now
        self._pictures = Pictures()
        self._jobs: OrderedDict[Key, Job] = OrderedDict()
        """At work, and those that ended in the last `KEPT_S`."""
        self._ended: OrderedDict[Key, float] = OrderedDict()
        self._live = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._sweep: asyncio.TimerHandle | None = None
        self._newest: dict[tuple[str, str, Task], Job] = {}
        """Of the questions that only the newest of is wanted; bounded by those at work."""
        self.draining = False

    @property
    def live(self) -> int:
        """Questions at work or waiting."""
        return self._live

    @property
    def kept(self) -> int:
        """Answers that can be picked up."""
        return len(self._jobs)

    def engine_for(self, task: Task, pictures: bool, model: str = "") -> Engine:
        """Who answers.

        Raises:
            Refused: no_such_model, no_vision_model.
        """
        named = [e for e in self.engines if model in ("", e.name)]
        if not named:
            raise Refused("no_such_model", "no model of this server has that name")
        if pictures or task == "caption":
            named = [e for e in named if sees(e)]
            if not named:
                raise Refused("no_vision_model", "this server has no vision model: it answers text only")
            return named[0]
        # A model that sees answers text only if there is no other: the two are kept apart.
        return next((e for e in named if not sees(e)), named[0])

    def load(self, task: Task = "reply", deadline: float | None = None) -> Load:
        """How busy it is for a new question of this kind."""
        return self.places[self.engine_for(task, False).name].load(task, deadline)

    async def ask(self, ask: Ask) -> AsyncGenerator[tuple[int, Event], None]:
        """`Accepted`, then `Delta` and `Progress` in any number, then `Done`, numbered from 1.

        A question with the id of one that runs, or that was answered a short while ago, joins it. Closing the
        iterator leaves the question at work for the grace.

        Raises:
            Refused: on arrival, at its turn, or in the middle.
        """
        key = (ask.caller, ask.request_id)
        job = self._jobs.get(key)
        if job is None or job.ring.error is not None:
            job = self._begin(ask, key)
        async with aclosing(job.follow(1, self._spread)) as events:
            async for numbered in events:
                yield numbered

    async def resume(
        self, caller: str, request_id: str, from_seq: int
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """The events of an answer from `from_seq` on.

        Raises:
            Refused: unknown_request, lost, or whatever the answer fails with.
        """
        job = self._jobs.get((caller, request_id))
        try:
            if job is None:
                raise Refused("unknown_request", "this server has no such question, or no longer")
            async with aclosing(job.follow(from_seq, self._spread)) as events:
                async for numbered in events:
                    yield numbered
        except Refused as e:
            for watcher in self.watchers:
                watcher.resumed(e.why)
            raise
        for watcher in self.watchers:
            watcher.resumed("resumed")

    def cancel(self, caller: str, request_id: str) -> bool:
        """Stops a question; whether it was at work until now."""
        job = self._jobs.get((caller, request_id))
        return job is not None and job.cancel(Refused("cancelled", "the question was cancelled"))

    async def drain(self, grace_s: float) -> bool:
        """Refuses new questions and waits for those at work; False if some were left after `grace_s`."""
        self.draining = True
        try:
            await asyncio.wait_for(self._idle.wait(), grace_s)
        except TimeoutError:
            return False
        return True

    async def cut(self, patience_s: float) -> None:
        """Ends what is at work, and waits until the engines are free, at most `patience_s`."""
        self.draining = True
        for job in list(self._jobs.values()):
            job.cancel(Refused("draining", "this server ends now; ask another"))
        await self.drain(patience_s)
        if self._sweep is not None:
            self._sweep.cancel()

    def _begin(self, ask: Ask, key: Key) -> Job:
        """Admits a question, or raises `Refused`."""
        try:
            engine = self.engine_for(ask.task, bool(ask.pictures), ask.model)
            places, kind = self.places[engine.name], class_of(ask.task, ask.background)
            deadline = asyncio.get_running_loop().time() + deadline_s(ask.budget, kind)
            load = places.load(ask.task, deadline, first=kind == "reply")
            no = refusal(ask.budget, load, places.room(kind), self.draining)
            if no is not None:
                raise no
            if ask.prompt.prefix and sees(engine):
                raise Refused("bad_request", "answer_prefix is not for a model that looks at pictures")
            ask = self._with_pictures(ask)
            no = self.wearers.admit(ask.caller, self._now())
            if no is not None:
                raise no
        except Refused as e:
            log.info("ask %s %s: refused, %s", ask.request_id, ask.task, e.why)
            for watcher in self.watchers:
                watcher.refused(ask.task, e.why)
            raise
        self._live += 1
        self._idle.clear()
        job = Job(ask, engine, places, self._pace, self._now, self._end)
        self._ended.pop(key, None)
        self._jobs[key] = job
        if ask.latest_only:
            self._supersede(job)
        if kind == "reply" and places.busy >= places.slots:
            self._make_way(engine)
        return job

    def _make_way(self, engine: Engine) -> None:
        """Ends one background question at work, if there is one: somebody waits."""
        for job in self._jobs.values():
            record = job.record
            if job.engine is engine and job.kind == "background" and record.placed and not record.ended:
                why = Refused("queue_full", "background work made way for a reply", FALLBACK_RETRY_S)
                if job.cancel(why):
                    return

    def _with_pictures(self, ask: Ask) -> Ask:
        if not ask.pictures:
            return ask
        images = self._pictures.resolve(ask.caller, ask.pictures, self._now())
        *before, last = ask.prompt.turns
        prompt = replace(ask.prompt, turns=(*before, replace(last, images=images)))
        return replace(ask, prompt=prompt, pictures=())

    def _supersede(self, job: Job) -> None:
        place = (job.ask.caller, job.ask.prompt.session, job.ask.task)
        old = self._newest.get(place)
        self._newest[place] = job
        if old is not None:
            old.cancel(Refused("superseded", "a newer question of this session took its place"))

    def _spread(self) -> float:
        return self._live * self._pace.spread_s

    def _end(self, job: Job) -> None:
        """A question has come to its end; its engine is free."""
        self._live -= 1
        if not self._live:
            self._idle.set()
        self.wearers.release(job.ask.caller)
        place = (job.ask.caller, job.ask.prompt.session, job.ask.task)
        if self._newest.get(place) is job:
            del self._newest[place]
        record = job.record
        _log(record)
        for watcher in self.watchers:
            watcher.ended(record)
        key = (job.ask.caller, job.ask.request_id)
        job.forget()
        if self._jobs.get(key) is job:
            self._ended[key] = asyncio.get_running_loop().time()
            while len(self._ended) > KEPT:
                self._jobs.pop(self._ended.popitem(last=False)[0], None)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(KEPT_S, self._forget)

    def _forget(self) -> None:
        """Drops the answers that are too old, and comes back for the next."""
        loop, self._sweep = asyncio.get_running_loop(), None
        while self._ended:
            key, ended = next(iter(self._ended.items()))
            if (left := ended + KEPT_S - loop.time()) > 0:
                self._sweep = loop.call_later(left, self._forget)
                break
            del self._ended[key]
            self._jobs.pop(key, None)
        self._pictures.forget(self._now())


def _log(record: Record) -> None:
    took = (record.ended or record.arrived) - record.arrived
    log.info("ask %s %s: %s in %.2f s", record.request_id, record.task, record.outcome, took)
