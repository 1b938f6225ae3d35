"""A server's answer to its end: where it breaks off (``broken.mend``), the server goes on, or the device."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from os1_edge.clock import Clock
from os1_edge.offload.broken import SILENCE_S, WAYS, Broken, Mend
from os1_edge.offload.budget import Budget
from os1_edge.offload.engine import EngineError, Message
from os1_edge.offload.far import Failure, Far, FarError, Question
from os1_edge.offload.hedge import Asked, Silent, race
from os1_edge.offload.near import LETTERS, Near
from os1_edge.offload.route import Decision
from os1_edge.offload.taken import Taken


@dataclass(frozen=True, slots=True)
class Sides:
    """Who may go on with an answer."""

    far: Far
    asked: Asked
    question: Question
    began: float
    """When it was asked."""
    here: Callable[[], AsyncGenerator[str, None]]
    """The device's own answer, from its beginning."""
    near: Near
    clock: Clock
    leave: Callable[[Coroutine[Any, Any, None]], object]
    """Is given what is to be ended without anybody's waiting for it."""
    mend: Callable[[Broken, Question, Sequence[Message]], Mend]
    """Decides how to go on; is given the question, and its messages with what was said."""
    failed: Callable[[Failure, float], None]
    """Is told that the server broke off for good."""
    raced: Callable[[], None]
    """Is told that both sides were at work."""
    taken: Taken


async def carried(sides: Sides, first: str | None) -> AsyncGenerator[str, None]:
    """The answer from ``first`` on, whatever becomes of the server.

    Text that was given may have been spoken: whoever goes on does so behind it. An answer bound to a schema
    is not spoken but read as a whole: it is given when it is complete, and begun anew where it breaks off.
    """
    whole = sides.question.schema is not None
    asked, text, said, times = sides.asked, first, list[str](), 0
    rest: AsyncGenerator[str, None] | None = None
    while rest is None:
        fault: Failure | None = None
        try:
            while text is not None:
                if text:
                    said.append(text)
                    if not whole:
                        yield text
                text = await asked.more()
        except (FarError, TimeoutError) as e:
            fault = e.kind if isinstance(e, FarError) else "unreachable"
        finally:
            if fault is None and not asked.over:
                sides.leave(asked.drop())
        if fault is None:
            break
        times += 1
        broken = asked
        asked, text, rest = await _mended(sides, broken, "" if whole else "".join(said), fault, times)
        if whole and (rest is not None or asked is not broken):
            said.clear()
    if rest is not None:
        async with aclosing(rest):
            while text is not None:
                if text:
                    said.append(text)
                    if not whole:
                        yield text
                text = await anext(rest, None)
    if whole and said:
        yield "".join(said)


async def _mended(
    sides: Sides, asked: Asked, said: str, fault: Failure, times: int
) -> tuple[Asked, str | None, AsyncGenerator[str, None] | None]:
    """The server's call that goes on, the next text (``None``: there is none), and the device's answer if it
    goes on instead."""
    question = sides.question
    whole = question.schema is not None
    messages = [*question.messages, Message("assistant", said)] if said else question.messages
    left = max(question.max_tokens - len(said) // LETTERS, 1)
    left_s = question.budget.total_s - (sides.clock.now() - sides.began)
    pictures = any(message.images for message in question.messages)
    how = sides.mend(Broken(fault, left_s, whole, pictures, times), question, messages)

    def here() -> AsyncGenerator[str, None]:
        # An engine goes on with a last message that is the assistant's.
        return sides.here() if whole else sides.near.stream(messages, left, task=question.task)

    again = replace(
        question,
        request_id=f"{question.request_id}.{times}",  # with the first one's, it would begin anew
        max_tokens=left,
        budget=Budget(SILENCE_S, max(left_s, 0.0)),
        prefix=said,
        attempt=times,
        hedged=how.device_at is not None,
    )
    mending = _Mending(sides, asked, again, how)
    if how.ways:
        decision = Decision("cloud", how.reason, hedge_at=how.device_at)
        try:
            out = await race(mending, here, decision, sides.clock, sides.leave)
        except EngineError as e:
            sides.failed(fault, 0.0)
            if not isinstance(e, Silent):
                raise
            return mending.asked, None, _nothing()
        if out.both:
            sides.raced()
        if out.winner == "cloud":
            sides.taken.outcome = mending.outcome
            return mending.asked, out.text, None
        rest, next_text = out.near, out.text
    else:
        sides.leave(mending.drop())
        rest = here()
        next_text = ""
    sides.failed(fault, 0.0)
    sides.taken.answered = "local" if whole else "both"
    sides.taken.outcome = f"the server broke off; the device went on ({how.reason})"
    return mending.asked, next_text, rest


async def _nothing() -> AsyncGenerator[str, None]:
    return
    yield


class _Mending:
    """The server's side of the race for the next word; see ``hedge.Answering``."""

    def __init__(self, sides: Sides, asked: Asked, again: Question, how: Mend) -> None:
        self._sides, self._again, self._how = sides, again, how
        self._began = sides.clock.now()
        self.asked = asked
        """The call that has the answer."""
        self.outcome = ""
        """What became of it, in words."""
        self.taken_s: float | None = None

    async def first(self) -> str | None:
        """The next text; ``None``: the answer was complete.

        Raises:
            FarError: no server goes on.
        """
        try:
            async with asyncio.timeout(self._how.patience_s):
                return await self._first()
        except TimeoutError:
            raise FarError("unreachable", "the answer is not gone on with in time") from None

    async def drop(self) -> None:
        """Nobody wants it any more."""
        if not self.asked.over:
            await self.asked.drop()

    async def _first(self) -> str | None:
        if "resume" in self._how.ways:
            try:
                await self.asked.resume(self._how.resume_s)
                text = await self.asked.more()
                self.outcome = "it broke off, and was picked up again"
                return text
            except TimeoutError:
                if "again" not in self._how.ways:
                    raise
            except FarError as e:
                if "again" not in self._how.ways or "again" not in WAYS.get(e.kind, ()):
                    raise
        if not self.asked.over:
            self._sides.leave(self.asked.drop())
        spent_s = self._sides.clock.now() - self._began
        self.asked = Asked(self._sides.far, replace(self._again, spent_s=spent_s), self._sides.clock)
        text = await self.asked.first()
        self.outcome = "it broke off, and a server that was told so far went on"
        return text
