"""A language engine over two: the device's own model, and a bigger one on a server within the budget.

A thin shell: ``route.decide`` says where, ``hedge.race`` who was first, ``watch.Watch`` what is known of the
link. Every question is answered within its budget, whatever the network does, as far as the device's own
model is able to. What leaves the device is decided in ``route.stays``, nowhere else.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from os1_edge.clock import Clock
from os1_edge.offload.ahead import Ahead
from os1_edge.offload.answer import Sides, carried
from os1_edge.offload.broken import Broken, Mend, mend
from os1_edge.offload.budget import Allowance, Budget, budgets
from os1_edge.offload.engine import EngineError, LanguageEngine, Message, Schema, Task
from os1_edge.offload.far import Far, FarError, Question
from os1_edge.offload.hedge import Asked, Outcome, race
from os1_edge.offload.journal import Journal, stamp
from os1_edge.offload.ladder import Pictures, Reencode, told
from os1_edge.offload.link import Link
from os1_edge.offload.near import LETTERS, Near
from os1_edge.offload.offers import PRIME
from os1_edge.offload.route import Decision, Job, Rules, State, decide, lacks, reads_ahead, sooner, stays
from os1_edge.offload.taken import Taken
from os1_edge.offload.watch import Watch

LOCAL = Decision("local", "no offload server is configured")
"""Why nothing is asked for elsewhere without one."""

CLOSING = 16
"""Lost sides that may still be ending; more means that something never ends, and questions stay here."""

ENVELOPE = 300
"""Bytes of a question beside its words: names of fields, metadata, TLS records."""


class Router:
    """See ``LanguageEngine``. Use it in one loop, and ``close`` it."""

    def __init__(
        self,
        near: LanguageEngine,
        far: Far | None,
        clock: Clock,
        rules: Rules | None = None,
        times: Mapping[Task, Budget] | None = None,
        *,
        metered: Sequence[str] = (),
        reencode: Reencode | None = None,
        journal: Journal | None = None,
        chance: random.Random | None = None,
        today: Callable[[], datetime] = datetime.now,
    ) -> None:
        """Args:
        near: the device's model.
        far: the server; None: everything is answered here.
        clock: injected time.
        rules: what the wearer allows.
        times: the budgets by task.
        metered: interfaces that cost by the byte, as shell patterns.
        reencode: makes pictures smaller; None: they leave as they are.
        journal: where decisions are kept.
        chance: for back-off; a seeded one makes a run repeatable.
        today: the date and time that stands in the journal.
        """
        self.name = near.name
        self._near, self._far, self._clock = Near(near, clock), far, clock
        self._times, self._today = times or budgets(), today
        self.rules = rules or Rules()
        """What the wearer allows; may be changed at any time."""
        self._pictures = Pictures(reencode)
        self.journal = journal or Journal()
        self.allowance = Allowance()
        self.watch = Watch(far, clock, chance or random.Random(), metered) if far is not None else None
        self._watching: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._behind: set[asyncio.Task[None]] = set()
        """Lost sides that are ending, and the journal's newest write; bounded by ``CLOSING``."""
        self._ahead = Ahead(far, clock, self._leave) if far is not None else None
        self._writing = False
        self.private = False
        """Nothing leaves while this is set."""
        self.low_battery = False
        """Works as with ``prefer-battery`` while this is set."""
        self.decision = LOCAL
        """Where the newest answer that somebody waits for was made, and why; set with its first text."""

    async def prime(self, messages: Sequence[Message]) -> None:
        """See ``LanguageEngine.prime``; on the side, or sides, that ``route.reads_ahead`` says."""
        self._begin_watching()
        if self._read_ahead(messages):
            await self._near.prime(messages)

    async def open(self, messages: Sequence[Message]) -> None:
        """See ``RoutedEngine.open``."""
        self._begin_watching()
        if self._opening is None and self._watching is not None:
            self._opening = asyncio.create_task(self._open_there(messages))
        await self._near.open(messages)

    async def _open_there(self, messages: Sequence[Message]) -> None:
        """Has the server read it too, as soon as there is a way: a bigger model takes the longer for it."""
        await self._watched.comes_up()
        self._read_ahead(messages)

    def wearer_speaks(self) -> None:
        """A question may follow: the link is looked at while the wearer speaks."""
        self._begin_watching()
        if self.watch is not None:
            self.watch.wearer_speaks()

    async def close(self) -> None:
        """Ends the watch and all that is still ending, and closes the server's channels."""
        for task in (self._opening, self._watching):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))
        if self._behind:
            await asyncio.wait(self._behind, timeout=2.0)
        for task in self._behind:
            task.cancel()
        if self._far is not None:
            await self._far.close()

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine.stream``. No text is given twice, whichever side dies."""
        self._begin_watching()

        def here() -> AsyncGenerator[str, None]:
            return self._near.stream(messages, max_tokens, schema=schema, background=background, task=task)

        job = self.job(messages, task, background, schema=schema is not None)
        budget = self._times[task]
        if not background:
            self.allowance.asked()
        state = self.state(job)
        decision = self._decide(state, job, budget)
        if self._ahead is not None and not background and (decision.route == "cloud" or stays(state, job)):
            self._ahead.stop()  # else it may go on with what is still to be read
        taken = self._taken(state, job, budget, decision)
        if self._far is None or decision.route == "local":
            answer = self._local(here, decision, taken, background)
        else:
            question = Question(uuid.uuid4().hex, messages, max_tokens, budget, task, schema)
            answer = self._both(self._far, question, here, job, decision, taken)
        try:
            async with aclosing(answer):
                async for text in answer:
                    yield text
        finally:
            if self._far is not None and not background:
                self._keep(taken)

    async def _local(
        self,
        here: Callable[[], AsyncGenerator[str, None]],
        decision: Decision,
        taken: Taken,
        background: bool,
    ) -> AsyncGenerator[str, None]:
        began = self._clock.now()
        async with aclosing(here()) as near:
            async for text in near:
                if taken.first_s is None:
                    taken.first_s, taken.answered = self._clock.now() - began, "local"
                    if not background:
                        self.decision = decision
                yield text

    async def _both(
        self,
        far: Far,
        question: Question,
        here: Callable[[], AsyncGenerator[str, None]],
        job: Job,
        decision: Decision,
        taken: Taken,
    ) -> AsyncGenerator[str, None]:
        """The answer of whichever side has the first word."""
        began = self._clock.now()
        small = await self._pictures.shrunk(question.messages, decision.rung)
        spent = self._clock.now() - began  # by the encoder
        question = replace(question, messages=small, hedged=decision.hedge_at is not None, spent_s=spent)
        asked = Asked(far, question, self._clock, alone=decision.hedge_at is None)
        try:
            outcome = await race(asked, here, sooner(decision, spent), self._clock, self._leave)
        except EngineError:  # the device failed too
            if asked.failure is not None:
                self._failed(asked.failure, job, question)
            raise
        taken.first_s, taken.answered = self._clock.now() - began, outcome.winner
        self._learn(asked, outcome, job, decision, question, taken)
        sides = Sides(
            far,
            asked,
            question,
            began,
            here,
            self._near,
            self._clock,
            self._leave,
            self._mend,
            self._watched.failed,
            partial(self._raced, taken),
            taken,
        )
        if outcome.winner == "local" and outcome.near is not None:
            self.decision = Decision("local", f"{taken.outcome}; {decision.reason}")
            async with aclosing(outcome.near) as near:
                yield outcome.text or ""
                async for text in near:
                    yield text
            return
        self.decision = Decision("cloud", decision.reason)
        async with aclosing(carried(sides, outcome.text)) as answer:
            async for text in answer:
                yield text

    def _learn(
        self, asked: Asked, out: Outcome, job: Job, decision: Decision, question: Question, taken: Taken
    ) -> None:
        """What a race showed goes into the estimates and into the record."""
        watch, high, middle = self._watched, decision.cloud_high_s or 0.0, decision.cloud_middle_s or 0.0
        if out.both:
            self._raced(taken)
        up = job.text_bytes + sum(len(image) for m in question.messages for image in m.images)
        if asked.taken_s is not None:
            watch.took(asked.taken_s, up)
        other = taken.local_s if out.winner == "cloud" else taken.cloud_s
        if other is not None and taken.first_s is not None:
            taken.regret_s = round(max(0.0, taken.first_s - other), 3)
        if asked.failure is not None:
            self._failed(asked.failure, job, question)
            taken.outcome = f"the server failed ({asked.failure.kind})"
        elif out.winner == "local":
            overdue = asked.taken_s is None and out.first_s >= (decision.accept_by or float("inf"))
            watch.missed(
                job.task, out.first_s, out.first_s - middle, overdue=overdue, inside=out.first_s < high
            )
            taken.outcome = f"the server had said nothing after {out.first_s:.2f} s"
        elif asked.first_s is not None:
            watch.answered(
                job.task,
                job.text_bytes // LETTERS,
                asked.first_s - (asked.taken_s or 0.0),
                asked.first_s - middle,
                inside=asked.first_s <= high,
                missed=asked.first_s > question.budget.first_token_s,
            )
            taken.outcome = "the server was first, though the device had begun" if out.both else ""

    def _raced(self, taken: Taken) -> None:
        taken.both = True
        self.allowance.spent()

    def _mend(self, broken: Broken, question: Question, messages: Sequence[Message]) -> Mend:
        job = self.job(messages, question.task, schema=question.schema is not None)
        return mend(broken, self.state(job), job, self._watched.offers)

    def _failed(self, failure: FarError, job: Job, question: Question) -> None:
        self._watched.failed(failure.kind, failure.retry_after_s)
        if failure.kind == "late":
            expected = max(failure.retry_after_s, question.budget.first_token_s)
            self._watched.refused(job.task, job.text_bytes // LETTERS, expected)

    @property
    def _watched(self) -> Watch:
        assert self.watch is not None
        return self.watch

    def _read_ahead(self, messages: Sequence[Message]) -> bool:
        """Has the server read a prompt ahead if that is of use; whether the device should."""
        if self._ahead is None:
            return True
        job = self.job(messages, "reply")
        here, there = reads_ahead(self.state(job), job, self._times["reply"])
        if there and not job.images and self._watched.knows(PRIME) and len(self._behind) < CLOSING:
            self._ahead.begin(messages)
        elif not there:
            self._ahead.stop()
        return here

    def _begin_watching(self) -> None:
        """Probes as long as something may leave: not even a probe does otherwise."""
        private = self.private or self.rules.policy == "prefer-private"
        if self._watching is not None and (private or self._watching.done()):
            self._watching.cancel()
            self._watching = None
        if self.watch is not None and self._watching is None and not private:
            self._watching = asyncio.create_task(self.watch.run())

    def _leave(self, rest: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Has ``rest`` ended without anybody's waiting for it."""
        task = asyncio.create_task(rest)
        self._behind.add(task)
        task.add_done_callback(self._left)
        return task

    def _left(self, task: asyncio.Task[None]) -> None:
        self._behind.discard(task)
        if not task.cancelled():
            task.exception()  # seen; an engine that failed while it was ending has nothing to say any more

    def _decide(self, state: State, job: Job, budget: Budget) -> Decision:
        if self._far is None:
            return LOCAL
        if len(self._behind) >= CLOSING:
            return Decision("local", f"{len(self._behind)} questions are still ending")
        return decide(state, job, budget)

    def job(
        self, messages: Sequence[Message], task: Task, background: bool = False, *, schema: bool = False
    ) -> Job:
        """A question without its words."""
        images = [len(image) for m in messages if m.images for image in m.images]
        return Job(
            task=task,
            tokens=self._near.unread(messages),
            text_bytes=sum([len(m.text) for m in messages]) + ENVELOPE,
            images=len(images),
            rungs=self._pictures.rungs(images, task),
            background=background,
            turns=len(messages),
            schema=schema,
        )

    def state(self, job: Job) -> State:
        """All else that a decision rests on."""
        watch, local = self.watch, self._near.forecast
        if watch is None:
            return State(self.rules, Link.OFFLINE, local)
        return State(
            rules=self.rules,
            link=watch.state,
            local=local,
            cloud=watch.cloud(job.task, job.text_bytes // LETTERS, self._reading_s(job)),
            no_way=watch.no_way,
            metered=watch.metered,
            breaker_open=watch.breaker.open or watch.in_doubt,
            draining=watch.draining,
            serves=watch.serves(job.task),
            lacks=lacks(watch.offers, job),
            may_hedge=self.allowance.allows,
            too_often=self.allowance.owed,
            private=self.private,
            low_battery=self.low_battery,
        )

    def _reading_s(self, job: Job) -> float:
        """For how long the server has been at the beginning of such prompts; see ``Ahead``."""
        return self._ahead.reading_s if self._ahead is not None and job.task == "reply" else 0.0

    def _taken(self, state: State, job: Job, budget: Budget, decision: Decision) -> Taken:
        local = state.local.p95_s(job)
        return Taken(
            at=stamp(self._today()),
            task=job.task,
            link=state.link.value,
            route=decision.route,
            why=decision.reason,
            within_s=budget.first_token_s,
            local_s=None if local == float("inf") else round(local, 3),
            cloud_s=None if decision.cloud_high_s is None else round(decision.cloud_high_s, 3),
            picture=told(decision.rung, job.images),
        )

    def _keep(self, taken: Taken) -> None:
        if taken.first_s is not None:
            taken.first_s = round(taken.first_s, 3)
        self.journal.note(taken, self._watched.told() | {"allowance": round(self.allowance.left, 2)})
        if self.journal.file is not None and not self._writing:
            self._writing = True
            self._leave(self._write())

    async def _write(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.journal.write)
        finally:
            self._writing = False
