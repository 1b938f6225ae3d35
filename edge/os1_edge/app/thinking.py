"""Thinking ahead: while nobody speaks, the agents work for the turn to come."""

from __future__ import annotations

import asyncio

from os1_edge.app.contexts import Contexts
from os1_edge.app.trace import tell_failure
from os1_edge.clock import Calendar, Clock
from os1_edge.converse.reply import Replier
from os1_edge.remember.chores import Busy
from os1_edge.remember.consolidate import Quiet

AGAIN_S = 0.5
"""Wait after the engine was needed elsewhere though nobody spoke."""


class Thinking:
    """The agents' background work of one companion. ``wake`` when the wearer speaks, ``rest`` when all is
    answered."""

    def __init__(self, replier: Replier, contexts: Contexts, clock: Clock, calendar: Calendar) -> None:
        self._replier, self._contexts = replier, contexts
        self._clock, self._calendar = clock, calendar
        self._quiet = Quiet(quiet=False)
        self._task: asyncio.Task[bool] | None = None

    def wake(self) -> None:
        """Somebody needs the machine: what runs is stopped, and begun again later."""
        self._quiet.clear()
        if self._task is not None:
            self._task.cancel()

    def rest(self) -> None:
        """Nobody needs the machine: there may be a new exchange to think about."""
        self._quiet.set()

    async def run(self) -> None:
        """Thinks whenever it is quiet, until cancelled; then what waits is kept as it is."""
        try:
            while True:
                await self._quiet.wait()
                self._task = asyncio.create_task(self._work())
                done = (await asyncio.gather(self._task, return_exceptions=True))[0]
                if isinstance(done, Exception):
                    tell_failure("thinking ahead", done)
                if done is True or isinstance(done, Exception):  # what failed would fail again at once
                    await self._until_there_is_more()
                else:
                    await asyncio.sleep(AGAIN_S)
        finally:
            if self._task is not None:
                self._task.cancel()
            await self._contexts.flush()

    async def _work(self) -> bool:
        """Whether nothing is left to do."""
        try:
            thought = await self._replier.think(self._calendar.at(self._clock.now()), self._contexts.place)
            while await self._contexts.place_one():
                pass
        except Busy:
            return False
        return thought

    async def _until_there_is_more(self) -> None:
        """Another exchange, or a context that waits."""
        more = asyncio.ensure_future(self._contexts.something.wait())
        spoken = asyncio.ensure_future(self._quiet.wait_busy())
        try:
            await asyncio.wait((more, spoken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            more.cancel()
            spoken.cancel()
