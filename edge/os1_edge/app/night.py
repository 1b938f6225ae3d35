"""The night shift: work on the memory while nobody needs the machine, and forgetting what was kept long."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

from os1_edge.app.trace import tell_failure
from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config, Remember
from os1_edge.converse.jobs import MemoryWriter
from os1_edge.faculties import Faculties
from os1_edge.remember.choices import load_choices
from os1_edge.remember.consolidate import Consolidator, Quiet
from os1_edge.remember.retention import Retention, expire
from os1_edge.remember.shorten import days_of

SWEEP_S = 6 * 3600.0
"""How often to look for what has been kept long enough; rules count days."""


class Night:
    """Background work of one companion. ``wake`` when the wearer speaks, ``rest`` when all is answered."""

    def __init__(self, config: Config, faculties: Faculties, clock: Clock, calendar: Calendar) -> None:
        self._memory = faculties.memory
        self._clock, self._calendar = clock, calendar
        writer = MemoryWriter(faculties.llm) if config.remember.written_by_model else None
        self._consolidator = Consolidator(faculties.memory, writer)
        self._rules = retention(config.remember)
        self._quiet = Quiet()

    def keep(self, rules: Retention) -> None:
        """How long to keep what, from the next sweep on."""
        self._rules = rules

    def wake(self) -> None:
        """Somebody needs the machine: what runs makes way, and goes on later."""
        self._quiet.clear()

    def rest(self) -> None:
        """Nobody needs the machine."""
        self._quiet.set()

    async def run(self) -> None:
        """Works whenever it is quiet, until cancelled. What fails is logged, and tried again at the next
        sweep."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_S):
                    await self._forget()
                    await self._consolidator.run(self._quiet, lambda: self._calendar.at(self._clock.now()))
            except TimeoutError:
                continue
            except Exception as e:
                tell_failure("work on the memory", e)
                await asyncio.sleep(SWEEP_S)

    async def _forget(self) -> None:
        if self._rules == Retention():
            return
        await self._quiet.wait()
        now = self._calendar.at(self._clock.now())
        # the file is written anew, which may take seconds, when nobody has spoken for long (`Consolidator`)
        await self._memory.run(self._let_go, now)

    def _let_go(self, now: datetime) -> None:
        store = self._memory.store
        # an undo, by whatever way, may have made it longer than this companion was told
        kept = load_choices(store)
        rules = replace(self._rules, **days_of(kept)) if kept is not None else self._rules
        expire(store, rules, now, clear_file=False)


def retention(remember: Remember) -> Retention:
    """How long the settings want what to be kept."""
    size = remember.max_mb
    return Retention(
        turn_days=remember.keep_turns_days,
        context_days=remember.keep_contexts_days,
        event_days=remember.keep_events_days,
        summary_days=remember.keep_summaries_days,
        max_bytes=None if size is None else round(size * 1_000_000),
    )
