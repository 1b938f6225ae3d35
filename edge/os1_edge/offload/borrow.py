"""Borrows the server's bigger model while it answers in time; else the device answers, as without a network.

The first step of the budgeted router: one budget for the first token, no hedge yet. A server that says
nothing (a link that swallows packets sends no reset) costs a turn at most ``first_token_s``, and the next
turns nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from os1_edge.clock import Clock
from os1_edge.offload.breaker import Breaker
from os1_edge.offload.engine import EngineError, LanguageEngine, Message, Schema, Task
from os1_edge.offload.route import Decision

log = logging.getLogger(__name__)

LOCAL = Decision("local", "no offload server is configured")
"""Why nothing is asked for elsewhere without one."""


class Borrowing:
    """A language engine over two: the server's first, where it may be asked and answers within the budget."""

    def __init__(
        self,
        near: LanguageEngine,
        far: LanguageEngine | None,
        clock: Clock,
        breaker: Breaker | None = None,
        first_token_s: float = 0.6,
    ) -> None:
        """``far`` is asked for what somebody waits for; background work stays on the device."""
        self.name = near.name
        self._near, self._far = near, far
        self._clock = clock
        self._breaker = breaker or Breaker()
        self._first_token_s = first_token_s
        self.decision = LOCAL
        """Where the newest answer was made, and why."""

    async def prime(self, messages: Sequence[Message]) -> None:
        """See ``LanguageEngine.prime``; on the device, which must be ready when the server is not."""
        await self._near.prime(messages)

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine.stream``. Text that has been given is never given twice: a server that dies in
        the middle of an answer ends it there."""
        if self._far is None or background:
            self.decision = LOCAL
        elif not self._breaker.allows(self._clock.now()):
            self.decision = Decision("local", "the offload server did not answer a moment ago")
        else:
            async with aclosing(self._far.stream(messages, max_tokens, schema=schema, task=task)) as far:
                first = await self._first(far)
                if first is not None:
                    self.decision = Decision("cloud", "the offload server answered within the budget")
                    yield first
                    try:
                        async for text in far:
                            yield text
                    except EngineError:
                        self._failed("broke off in the middle of an answer")
                        raise
                    return
        async with aclosing(
            self._near.stream(messages, max_tokens, schema=schema, background=background, task=task)
        ) as near:
            async for text in near:
                yield text

    def _failed(self, why: str) -> None:
        if self._breaker.failed(self._clock.now()):
            log.warning("the offload server %s; until it answers, replies are made here", why)

    async def _first(self, far: AsyncGenerator[str, None]) -> str | None:
        """The server's first text; ``None``: it gave none within the budget."""
        try:
            first = await asyncio.wait_for(anext(far), self._first_token_s)
        except (TimeoutError, EngineError, StopAsyncIteration) as e:
            late = isinstance(e, TimeoutError)
            why = f"said nothing for {self._first_token_s:.1f} s" if late else "gave no answer"
            self.decision = Decision("local", f"the offload server {why}")
            self._failed(why)
            return None
        if self._breaker.answered():
            log.info("the offload server answers again")
        return first
