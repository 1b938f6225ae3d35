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
"""Between the beginnings of two primes: the words of a second are read quickly, a call has its price."""


class Ahead:
    """At most one prime at a time. Use it in one loop."""

    def __init__(
        self, far: Far, clock: Clock, leave: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        """``leave`` is given what is to be done without anybody's waiting for it."""
        self._far, self._clock, self._leave = far, clock, leave
        self._task: asyncio.Task[None] | None = None
        self._began = float("-inf")

    def begin(self, messages: Sequence[Message]) -> None:
        """Has the server read ``messages``, unless it reads still: what it has is the beginning of these. A
        server that is busy, or gone, is asked nothing of; nobody hears of it."""
        now = self._clock.now()
        if (self._task is not None and not self._task.done()) or now - self._began < PAUSE_S:
            return
        self._began = now
        self._task = self._leave(self._read(messages))

    def stop(self) -> None:
        """The question is there, or nothing may leave any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _read(self, messages: Sequence[Message]) -> None:
        question = Question(uuid.uuid4().hex, messages, 1, Budget(LONGEST_S, LONGEST_S), prime=True)
        try:
            async with aclosing(self._far.ask(question)) as steps:
                async for _ in steps:
                    pass
        except FarError:
            pass
        except asyncio.CancelledError:
            self._leave(self._far.cancel(question.request_id, ""))
            raise
