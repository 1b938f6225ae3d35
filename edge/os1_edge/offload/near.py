"""The device's own model, with what is known of how quick it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from os1_edge.clock import Clock
from os1_edge.offload.engine import LanguageEngine, Message, Schema, Task
from os1_edge.offload.estimate import LocalModel
from os1_edge.offload.route import Local

LETTERS = 4
"""Characters of English a token, about."""

ENOUGH = 16
"""Tokens read ahead that tell something of the device's pace."""


class Near:
    """A language engine that is watched. Use it in one loop."""

    def __init__(self, engine: LanguageEngine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._model = LocalModel()
        self._forecast: Local | None = None
        """Until the next sample."""
        self._read: tuple[Message, ...] = ()
        """The prompt that the engine holds: only what differs from it has to be read."""

    @property
    def forecast(self) -> Local:
        """What to expect of it."""
        if self._forecast is None:
            a, b, c = self._model.coefficients
            sees = bool(getattr(self._engine, "sees", False))
            self._forecast = Local(a, b, c, self._model.high_s, sees)
        return self._forecast

    async def prime(self, messages: Sequence[Message]) -> None:
        """See ``LanguageEngine.prime``. Shows how quickly the device reads, before the first question."""
        began, tokens = self._clock.now(), self.unread(messages)
        await self._engine.prime(messages)
        self._read = tuple(messages)
        if tokens >= ENOUGH:
            self._learn(tokens, 0, self._clock.now() - began)

    async def open(self, messages: Sequence[Message]) -> None:
        """Reads what every prompt begins with, or takes it from an earlier start, with the pace of then."""
        opening = getattr(self._engine, "open", None)
        if opening is None:
            await self.prime(messages)
            return
        tokens, took = self.unread(messages), await opening(messages)
        if took is not None:
            self._read = tuple(messages)
            self._learn(tokens, 0, took)

    def _learn(self, tokens: int, images: int, seconds: float) -> None:
        self._model.sample(tokens, images, seconds)
        self._forecast = None

    def unread(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt that would have to be read, about."""
        known, same = self._read, 0
        for old, new in zip(known, messages, strict=False):
            if old is not new and old != new:
                break
            same += 1
        fresh = sum([len(message.text) for message in messages[same:]])
        if same < len(known) and same < len(messages):
            fresh -= _common(known[same].text, messages[same].text)
        return fresh // LETTERS + 1

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine.stream``."""
        began = self._clock.now()
        tokens, images = self.unread(messages), sum(len(m.images) for m in messages)
        first = not background  # a background job reads into a place of its own, and may be preempted
        answer = self._engine.stream(messages, max_tokens, schema=schema, background=background, task=task)
        async with aclosing(answer):
            async for text in answer:
                if first:
                    first = False
                    self._learn(tokens, images, self._clock.now() - began)
                    self._read = tuple(messages)
                yield text


def _common(a: str, b: str) -> int:
    """Length of the beginning that two texts share."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
