"""Real-time contexts on their way into the memory: those that a language model is to place wait until nobody
needs it; a reply waits for none of them."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from os1_edge.clock import Calendar
from os1_edge.converse.context import ContextAgent, Guess
from os1_edge.events import RealtimeContext
from os1_edge.remember.memory import Memory
from os1_edge.see.place import PlaceGuess

WAITING = 8
"""Contexts that wait for a model; a ninth has the oldest kept as the rules guessed it. The memory takes what
comes a minute late, and a camera gives eight frames a minute outside of talk."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    at_s: float
    scene: str
    utterance: str
    guess: Guess


class Contexts:
    """Keeps what was seen and said. Use it in one loop."""

    def __init__(self, memory: Memory, calendar: Calendar, agent: ContextAgent | None) -> None:
        """Without an ``agent`` the rules' guess is kept at once."""
        self._memory, self._calendar, self._agent = memory, calendar, agent
        memory.settle = self.flush
        self._waiting: deque[_Waiting] = deque()
        self.place = ""
        """Where the wearer was last and what they did, as far as it is known."""
        self.something = asyncio.Event()
        """Some context waits."""

    async def keep(self, at_s: float, scene: str, utterance: str, place: PlaceGuess) -> None:
        """What was seen and said at session second ``at_s`` is remembered, at once or once it is placed."""
        said = place.reason.startswith("the wearer named")
        one = _Waiting(at_s, scene, utterance, Guess(place.location, place.activity, said))
        if self._agent is None:
            await self._store(one, place.location, place.activity)
            return
        self._waiting.append(one)
        self.something.set()
        if len(self._waiting) > WAITING:
            oldest = self._waiting.popleft()
            await self._store(oldest, oldest.guess.location, oldest.guess.activity)

    async def place_one(self) -> bool:
        """Has a model place the oldest that waits; whether one waited. Cancelled or refused, it waits on.

        Raises:
            Busy: somebody needs the engine.
        """
        if not self._waiting or self._agent is None:
            self.something.clear()
            return False
        one = self._waiting[0]
        found = await self._agent.infer(one.scene, one.utterance, one.guess)
        if self._waiting and self._waiting[0] is one:
            self._waiting.popleft()
            await self._store(one, found.location, found.activity)
        return True

    async def flush(self) -> None:
        """Keeps what still waits, as the rules guessed it."""
        while self._waiting:
            one = self._waiting.popleft()
            await self._store(one, one.guess.location, one.guess.activity)

    async def _store(self, one: _Waiting, location: str, activity: str) -> None:
        self.place = f"{location}, {activity}"
        context = RealtimeContext(one.at_s, one.scene, one.utterance, location, activity)
        await self._memory.keep_context(context, self._calendar.at(one.at_s))
