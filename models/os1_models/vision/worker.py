"""A vision model in a thread of its own, for an asyncio loop: answers as they are written, stopped at once
when nobody takes them any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress

from os1_models.vision.terms import MOST_TOKENS, Finished, Piece, Stopped, Turn, VisionError
from os1_models.vision.vlm import VisionModel

AHEAD = 2
"""Pieces written before somebody takes them: who speaks a clause does not come back until it is spoken, and
the first clause's speech would have to share the cores with the rest of the answer."""
GLANCE_S = 0.05
"""A background call that waits for room looks this often whether somebody else waits for the model."""


class VisionWorker:
    """Calls come one after the other; a background one makes way for one that somebody waits for."""

    def __init__(self, model: VisionModel) -> None:
        """Takes ``model`` over, and frees it with ``close``."""
        self.model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vision")
        self._waited_for = 0
        """Calls that somebody waits for, running or to be run."""

    def close(self) -> None:
        """Waits for the thread and frees the model."""
        self._thread.shutdown()
        self.model.close()

    async def stream(
        self,
        turns: Sequence[Turn],
        max_tokens: int = MOST_TOKENS,
        *,
        json_schema: str = "",
        background: bool = False,
        ahead: int = AHEAD,
        fresh: bool = False,
    ) -> AsyncGenerator[Piece | Finished, None]:
        """See ``VisionModel.answer``. Closing the iterator stops the work and returns once the model is free.

        Args:
            turns: the dialogue.
            max_tokens: the answer's bound.
            json_schema: what the answer obeys.
            background: nobody waits.
            ahead: pieces that may wait to be taken.
            fresh: first forget all that was read: another wearer asks.

        Raises:
            Stopped: a background call made way.
            VisionError: as of ``answer``; any other failure is one too, without its words.
        """
        stop = threading.Event()

        def enough() -> bool:
            return stop.is_set() or (background and self._waited_for > 0)

        def work() -> Iterator[Piece | Finished]:
            if fresh:
                self.model.forget()
            return self.model.answer(
                turns, max_tokens, stop=enough, json_schema=json_schema, background=background
            )

        self._waited_for += not background
        try:
            async with aclosing(self._run(work, stop, enough, ahead)) as parts:
                async for part in parts:
                    yield part
        finally:
            self._waited_for -= not background

    async def prime(self, turns: Sequence[Turn]) -> None:
        """Reads ``turns`` ahead of a ``stream`` that begins with them. Cancel it to stop."""
        stop = threading.Event()

        def work() -> None:
            with suppress(Stopped, VisionError):  # whoever needs it reads the rest, or is told
                self.model.prime(turns, stop=stop.is_set)

        self._waited_for += 1
        job = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            await asyncio.shield(job)
        finally:
            stop.set()
            try:
                await asyncio.shield(job)
            finally:
                self._waited_for -= 1

    async def _run(
        self,
        work: Callable[[], Iterator[Piece | Finished]],
        stop: threading.Event,
        enough: Callable[[], bool],
        ahead: int,
    ) -> AsyncGenerator[Piece | Finished, None]:
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[Piece | Finished | BaseException | None] = asyncio.Queue()  # bounded by ahead
        room = threading.Semaphore(ahead)

        def give(part: Piece | Finished | BaseException | None) -> None:
            loop.call_soon_threadsafe(parts.put_nowait, part)

        def run() -> None:
            try:
                for part in work():
                    give(part)
                    while not room.acquire(timeout=GLANCE_S):
                        if enough():  # who takes the parts may itself wait for the one that is let go first
                            raise Stopped
                    if enough():
                        raise Stopped
                give(None)
            except (Stopped, VisionError) as e:
                give(e)
            except Exception as e:
                # Only the kind: an error's words may quote the prompt.
                give(VisionError(f"{self.model.name} failed ({type(e).__name__})"))

        job = loop.run_in_executor(self._thread, run)
        try:
            while (part := await parts.get()) is not None:
                if isinstance(part, BaseException):
                    raise part
                yield part
                room.release()
        finally:
            stop.set()
            room.release()  # it may be waiting for room; it is to see the stop
            await asyncio.shield(job)
