"""The night shift: one chore at a time from the file's job list, when nobody needs the machine.

Work lies in the ``jobs`` table until its result is kept, in the same transaction, so that it goes on after
power loss where it was. A chore that a language model writes makes way the moment somebody speaks. One that
fails, or takes the process with it, is tried ``ATTEMPTS`` times with the model, once by plain rules, and then
given up: nothing can block what waits behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from time import perf_counter
from typing import Literal, Protocol, TypeVar

from os1_edge.remember import derived
from os1_edge.remember.chores import CHORES, Answer, Busy, Chore, Draft, Embed, Writer, chore_of
from os1_edge.remember.habits import end_stale_habits
from os1_edge.remember.rows import Job, seconds
from os1_edge.remember.sessions import GAP_S
from os1_edge.remember.store import Store
from os1_edge.remember.timeline import Timeline
from os1_edge.remember.trash import end_due, to_clear

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 2
"""Times that a model is asked for one piece of work; each asks the engine twice at most."""

SWEEP_DAYS = 3
"""Days looked back on for conversations that nobody summarised: a long weekend without power."""

BACK_OFF_S = 0.5
"""Wait after a chore had to make way though nobody spoke: the engine answers somebody else."""

SLICE_S = 0.05
"""Work by plain rules that is done at one go, in one transaction: recall may have to wait for it. One chore a
transaction costs twice as much of a night."""

IDLE_S = 300.0
"""Silence after which the file may be written anew. Recall goes on beside it, but it takes the machine 10 s
after ten years; speech breaks it off."""

TIDY_S = 600.0
"""How often to look for what ended by nothing more happening."""

KINDS = tuple(dict.fromkeys(kind for kind, _ in CHORES))


class Quiet:
    """Whether nobody needs the machine now. Who hears speech clears it, and sets it when the turn is over."""

    def __init__(self, quiet: bool = True) -> None:
        self._quiet, self._busy = asyncio.Event(), asyncio.Event()
        (self._quiet if quiet else self._busy).set()

    def is_set(self) -> bool:
        """Whether it is quiet."""
        return self._quiet.is_set()

    def set(self) -> None:
        """Nobody needs the machine."""
        self._busy.clear()
        self._quiet.set()

    def clear(self) -> None:
        """Somebody does: what runs makes way."""
        self._quiet.clear()
        self._busy.set()

    async def wait(self) -> None:
        """Until it is quiet."""
        await self._quiet.wait()

    async def wait_busy(self) -> None:
        """Until it is not."""
        await self._busy.wait()


class Desk(Protocol):
    """What the shift needs of ``Memory``."""

    store: Store
    timeline: Timeline
    session_gap_s: float
    news: asyncio.Event
    vectors_missing: bool

    @property
    def embed(self) -> Embed:
        """Text -> embedding."""
        ...

    def embed_missing(self) -> int:
        """Makes some of the vectors that are missing; returns how many, 0: none was."""
        ...

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Does ``work`` in the memory's thread."""
        ...

    async def clear(self, stop: Callable[[], bool]) -> str:
        """Leaves nothing deleted in the file, unless told to ``stop``."""
        ...


class Consolidator:
    """Makes memories of what happened: summaries, index keys, importance, profile, habits."""

    def __init__(self, memory: Desk, writer: Writer | None = None) -> None:
        """
        Args:
            memory: whose.
            writer: the language jobs; ``None``: plain rules only.
        """
        self._memory = memory
        self._writer = writer
        self._last_kind = ""

    async def run(self, quiet: Quiet, now: Callable[[], datetime]) -> None:
        """Works whenever it is quiet, until cancelled; sleeps while there is nothing to do.

        Args:
            quiet: whether nobody needs the machine.
            now: the wearer's local time.
        """
        while True:
            await quiet.wait()
            self._memory.news.clear()
            await self._tidied(now(), quiet)
            await self._by_rule(quiet)
            while (done := await self._one(quiet)) != "nothing waits":
                if done == "later":
                    await asyncio.sleep(BACK_OFF_S)
                await self._by_rule(quiet)
                await quiet.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._memory.news.wait(), TIDY_S)

    async def finish(self, now: datetime | None = None, quiet: Quiet | None = None) -> int:
        """Does all that waits, and returns how many chores that were. Speech stops it early.

        Args:
            now: the wearer's local time; with it, what is over since long is closed first. ``None``: only
                what waits already.
            quiet: as for ``run``; ``None``: nobody will speak.
        """
        quiet = quiet or Quiet()
        if now is not None:
            await self._tidied(now, quiet)
        done = await self._by_rule(quiet)
        while quiet.is_set() and (did := await self._one(quiet)) != "nothing waits":
            if did == "later":
                await asyncio.sleep(BACK_OFF_S)
            done += (did == "done") + await self._by_rule(quiet)
        return done

    async def _tidied(self, now: datetime, quiet: Quiet) -> None:
        if await self._memory.run(self._tidy, now):
            await self._memory.clear(lambda: not quiet.is_set())

    def _tidy(self, now: datetime) -> bool:
        """Ends what nothing more can belong to, and what could be undone for a while; returns whether the
        file is to be written anew."""
        store = self._memory.store
        end_due(store, now)
        self._memory.timeline.close_stale(now)
        for (last,) in unsummarised(store, now, self._memory.session_gap_s):
            derived.add_job(store, "summarise", "turn", last)
        end_stale_habits(store, now)
        return _is_idle(store, now) and to_clear(store)

    async def _by_rule(self, quiet: Quiet) -> int:
        """Does all that waits where there is no writer, a slice at a time; returns how many chores that were.
        Of a slice in which one fails nothing is kept, and they are left to be done one by one."""
        done = 0
        if self._writer is None:
            with suppress(Exception):  # `_one` meets it again, tells it and counts it
                while some := await self._memory.run(self._slice, quiet):
                    done += some
        return done

    def _slice(self, quiet: Quiet) -> int:
        store, began, done = self._memory.store, perf_counter(), 0
        with store.transaction():
            while quiet.is_set() and perf_counter() - began < SLICE_S and (job := self._next()) is not None:
                chore = chore_of(job)
                draft = chore.read(store, job.target_id) if chore is not None else None
                if chore is not None and draft is not None:
                    chore.keep(store, self._memory.embed, draft, None)
                derived.job_done(store, job.id)
                done += 1
        return done

    async def _one(self, quiet: Quiet) -> Literal["done", "later", "failed", "nothing waits"]:
        """Does the next chore, one and no more."""
        run = self._memory.run
        job = await run(self._next)
        if job is None:
            return await run(self._embed_some)
        writer = self._writer if job.attempts < ATTEMPTS else None
        try:
            await self._do(job, writer, quiet)
        except Busy:
            await run(_put_back, self._memory.store, job)
            return "later"
        except Exception as e:
            # Only the error's type: its message may hold what was said.
            log.warning("memory work %s failed: %s", job.kind, type(e).__name__)
            await run(_failed, self._memory.store, job, writer is None)
            return "failed"
        return "done"

    def _embed_some(self) -> Literal["done", "nothing waits"]:
        """Last of all: vectors for what has none, a few at a time."""
        memory = self._memory
        if memory.vectors_missing and memory.embed_missing():
            return "done"
        memory.vectors_missing = False
        return "nothing waits"

    def _next(self) -> Job | None:
        """Like after like: a model that has read a prompt's examples need not read them again."""
        store = self._memory.store
        alike = derived.next_job(store, (self._last_kind,)) if self._last_kind else None
        job = alike or derived.next_job(store, KINDS)
        self._last_kind = job.kind if job is not None else ""
        return job

    async def _do(self, job: Job, writer: Writer | None, quiet: Quiet) -> None:
        run, store = self._memory.run, self._memory.store
        chore = chore_of(job)
        draft = await run(chore.read, store, job.target_id) if chore is not None else None
        if chore is None or draft is None:
            await run(derived.job_done, store, job.id)
            return
        answer: Answer = None
        if writer is not None and chore.write is not None:
            await run(_begin, store, job)
            answer = await _while_quiet(chore.write(writer, draft), quiet)
        if not await run(self._keep, job, chore, draft, answer):
            raise Busy

    def _keep(self, job: Job, chore: Chore, draft: Draft, answer: Answer) -> bool:
        """Keeps the result with the end of the job; ``False`` when the material is not what it was."""
        store = self._memory.store
        with store.transaction():
            if chore.read(store, job.target_id) != draft:
                return False
            chore.keep(store, self._memory.embed, draft, answer)
            derived.job_done(store, job.id)
        return True


def _is_idle(store: Store, now: datetime) -> bool:
    """Whether nobody has spoken for so long that nobody is likely to within seconds."""
    last = store.rows("SELECT max(time) FROM turns")[0][0]
    return last is None or abs(seconds(now) - seconds(datetime.fromisoformat(last))) > IDLE_S


def unsummarised(store: Store, now: datetime, gap_s: float = GAP_S) -> list[tuple[int]]:
    """The last turns of conversations of the last days that are over and have no summary, nor
    work for one that waits or was given up: to ask for that anew would try it for ever."""
    return [
        (int(row[0]),)
        for row in store.rows(
            "SELECT max(t.id) FROM turns t LEFT JOIN summaries s ON s.session_id = t.session_id "
            # "+": by time; the index over sessions would lead through all there ever were
            "WHERE t.time >= ? AND t.session_id <> '' AND t.superseded_by IS NULL GROUP BY +t.session_id "
            "HAVING max(t.time) < ? AND s.id IS NULL AND NOT EXISTS (SELECT 1 FROM jobs j "
            "JOIN turns o ON o.id = j.target_id WHERE j.kind = 'summarise' AND j.target_kind = 'turn' "
            "AND o.session_id = t.session_id)",
            (now - timedelta(days=SWEEP_DAYS)).isoformat(),
            (now - timedelta(seconds=gap_s)).isoformat(),
        )
    ]


async def _while_quiet(writing: Awaitable[T], quiet: Quiet) -> T:
    """What ``writing`` gives; when somebody speaks first, it is cancelled.

    Raises:
        Busy: somebody spoke.
    """
    task = asyncio.ensure_future(writing)
    spoken = asyncio.ensure_future(quiet.wait_busy())
    try:
        await asyncio.wait({task, spoken}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Busy
    finally:
        for left in (task, spoken):
            left.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await left


def _begin(store: Store, job: Job) -> None:
    """Counts the attempt before it is made: it may take the process with it."""
    with store.transaction() as db:
        db.execute("UPDATE jobs SET attempts = attempts + 1 WHERE id = ?", (job.id,))


def _put_back(store: Store, job: Job) -> None:
    with store.transaction() as db:
        db.execute("UPDATE jobs SET attempts = ? WHERE id = ?", (job.attempts, job.id))


def _failed(store: Store, job: Job, by_rule: bool) -> None:
    """The attempt counts; when not even the rules can do it, it is given up."""
    with store.transaction() as db:
        db.execute(
            "UPDATE jobs SET attempts = ?, state = ? WHERE id = ?",
            (job.attempts + 1, "failed" if by_rule else "waiting", job.id),
        )
