"""Has the server read a prompt ahead, while the wearer still speaks."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from os1_edge.clock import Clock
from os1_edge.offload.budget import Budget
from os1_edge.offload.engine import Message
from os1_edge.offload.far import Far, FarError, Question

LONGEST_S = 30.0
"""A server is not left reading for longer: the wearer has asked by then, or asks nothing."""

PAUSE_S = 1.0
"""Between the beginnings of two primes: a call has its price."""

SLOW_S = 2.0
"""A server that reads for longer is a slow one; before that nobody can tell."""

UNSAID = Message("user", "?")
"""In place of what the wearer is saying: whether that is for OS-1 is known when it has ended."""


class Ahead:
    """At most one prime at a time. Use it in one loop."""

    def __init__(
        self, far: Far, clock: Clock, leave: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        """``leave`` is given what is to be done without anybody's waiting for it."""
        self._far, self._clock, self._leave = far, clock, leave
        self._task: asyncio.Task[None] | None = None
        self._began = float("-inf")
        self._known: tuple[Message, ...] = ()
        """Read to its end."""

    @property
    def reading_s(self) -> float:
        """For how long a slow server has been reading its first prompt; 0: it has read one, or reads none.
        The first is read from its beginning, which may take half a minute."""
        if self._known or self._task is None or self._task.done():
            return 0.0
        began = self._clock.now() - self._began
        return began if began > SLOW_S else 0.0

    def begin(self, messages: Sequence[Message]) -> None:
        """Has the server read ``messages`` but the last, unless it has, or reads still. Nobody hears of a
        server that is busy, or gone."""
        now, prompt = self._clock.now(), (*messages[:-1], UNSAID)
        if prompt == self._known or len(prompt) == 1:
            return
        if (self._task is not None and not self._task.done()) or now - self._began < PAUSE_S:
            return
        self._began = now
        self._task = self._leave(self._read(prompt))

    def stop(self) -> None:
        """The question is there, or nothing may leave any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _read(self, messages: tuple[Message, ...]) -> None:
        question = Question(uuid.uuid4().hex, messages, 1, Budget(LONGEST_S, LONGEST_S), prime=True)
        try:
            async with aclosing(self._far.ask(question)) as steps:
                async for _ in steps:
                    pass
            self._known = messages
        except FarError:
            pass
        except asyncio.CancelledError:
            self._leave(self._far.cancel(question.request_id, ""))
            raise
