"""A server's answer to its end: picked up again where it broke off, else gone on with on the device."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from os1_edge.offload.engine import Message
from os1_edge.offload.far import Failure, FarError, Question
from os1_edge.offload.hedge import Asked
from os1_edge.offload.near import LETTERS, Near
from os1_edge.offload.taken import Taken


@dataclass(frozen=True, slots=True)
class Sides:
    """Who may go on with an answer."""

    asked: Asked
    question: Question
    here: Callable[[], AsyncGenerator[str, None]]
    """The device's own answer, from its beginning."""
    near: Near
    leave: Callable[[Coroutine[Any, Any, None]], object]
    """Is given what is to be ended without anybody's waiting for it."""
    failed: Callable[[Failure, float], None]
    """Is told that the server broke off."""
    taken: Taken


async def carried(sides: Sides, first: str | None) -> AsyncGenerator[str, None]:
    """The answer from ``first`` on, whatever becomes of the server.

    Text that was given may have been spoken: the device goes on behind it, with its last words in view. An
    answer bound to a schema is not spoken but read as a whole: it is given when it is complete, and the
    device begins it anew.
    """
    if sides.question.schema is None:
        async with aclosing(_spoken(sides, first)) as answer:
            async for text in answer:
                yield text
        return
    parts: list[str] = []
    async with aclosing(_servers(sides, first)) as answer:
        try:
            async for text in answer:
                parts.append(text)
        except FarError:
            parts.clear()
    if parts:
        yield "".join(parts)
        return
    sides.taken.answered = "local"
    async with aclosing(sides.here()) as answer:
        async for text in answer:
            yield text


async def _spoken(sides: Sides, first: str | None) -> AsyncGenerator[str, None]:
    said: list[str] = []
    async with aclosing(_servers(sides, first)) as answer:
        try:
            async for text in answer:
                said.append(text)
                yield text
            return
        except FarError:
            pass
    sides.taken.answered = "both"
    async with aclosing(_go_on(sides, said)) as rest:
        async for text in rest:
            yield text


async def _servers(sides: Sides, first: str | None) -> AsyncGenerator[str, None]:
    """The server's answer; one that breaks off is resumed once.

    Raises:
        FarError: it broke off for good.
    """
    asked, text, resumed = sides.asked, first, False
    try:
        while text is not None:
            if text:
                yield text
            try:
                text = await asked.more()
                continue
            except (FarError, TimeoutError) as e:
                fault: Failure = e.kind if isinstance(e, FarError) else "unreachable"
            if not resumed and fault == "unreachable" and await asked.resume():
                resumed = True
                sides.taken.outcome = "it broke off, and was picked up again"
                text = ""
                continue
            sides.failed(fault, 0.0)
            sides.taken.outcome = "the server broke off; the device went on"
            raise FarError(fault, "the server broke off")
    finally:
        if not asked.over:
            sides.leave(asked.drop())


def _go_on(sides: Sides, said: Sequence[str]) -> AsyncGenerator[str, None]:
    """The device's continuation: an engine goes on with a last message that is the assistant's."""
    question, text = sides.question, "".join(said)
    left = max(question.max_tokens - len(text) // LETTERS, 1)
    messages = [*question.messages, Message("assistant", text)]
    return sides.near.stream(messages, left, task=question.task)
