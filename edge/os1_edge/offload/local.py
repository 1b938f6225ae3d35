"""The language model on the device: llama.cpp in a worker thread of its own, one call at a time.

What was read stays: prompts should share their beginning byte for byte, and only the rest is read. A
background job has a place of its own beside the conversation's, and makes way when somebody waits.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from os1_edge.offload.engine import EngineError, Message, Preempted, Schema, Task
from os1_edge.offload.llamacpp import BATCH, GLANCE, LlamaCpp, Stopped
from os1_edge.offload.opening import Kept, digest_of_model, keep, kept, key_of

AHEAD = 2
"""Pieces of text written before somebody takes them. Who takes a clause away to be spoken does not come back
until it is: the first clause's speech would have to share the cores with the rest of the reply."""

GLANCE_S = 0.05
"""A background answer that waits for room looks this often whether somebody else waits for the model."""


class LocalLlama:
    """One loaded GGUF model, always at temperature 0."""

    def __init__(
        self, model: Path, threads: int = 2, context: int = 4096, opening_file: Path | None = None
    ) -> None:
        """Loads ``model``.

        Args:
            model: a GGUF file with a chat template.
            threads: CPU threads.
            context: tokens of prompt and answer together.
            opening_file: where what was read by ``open`` is kept for the next start.

        Raises:
            EngineError: the file is no GGUF model.
        """
        self.name = model.stem
        self._model, self._threads, self._opening_file = model, threads, opening_file
        self._llama = LlamaCpp(model, threads, context)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="llama")
        self._waited_for = 0
        """Calls that somebody waits for, running or to be run."""

    def close(self) -> None:
        """Ends the worker and frees the model."""
        self._worker.shutdown()
        self._llama.close()

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
        if any(message.images for message in messages):
            raise EngineError(f"{self.name} cannot see pictures")
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[str | BaseException | None] = asyncio.Queue()  # bounded by AHEAD
        stop = threading.Event()

        room = threading.Semaphore(AHEAD)

        def give(part: str | BaseException | None) -> None:
            loop.call_soon_threadsafe(parts.put_nowait, part)

        def enough() -> bool:
            return stop.is_set() or (background and self._waited_for > 0)

        def work() -> None:
            try:
                for text in self._answer(messages, max_tokens, schema, background, enough):
                    give(text)
                    while not room.acquire(timeout=GLANCE_S):
                        if enough():  # who takes the text may itself wait for the call that is let go first
                            raise Stopped
                    if enough():
                        raise Stopped
                give(None)
            except Stopped:
                give(Preempted(f"{self.name} is needed elsewhere"))
            except EngineError as e:
                give(e)
            except Exception as e:
                # Only the kind: an error's words may quote the prompt.
                give(EngineError(f"{self.name} failed ({type(e).__name__})"))

        self._waited_for += not background
        job = loop.run_in_executor(self._worker, work)
        try:
            while (part := await parts.get()) is not None:
                if isinstance(part, BaseException):
                    raise part
                yield part
                room.release()
        finally:
            stop.set()
            room.release()  # it may be waiting for room; it is to see the stop
            try:
                await asyncio.shield(job)
            finally:
                self._waited_for -= not background

    async def prime(self, messages: Sequence[Message]) -> None:
        """See ``LanguageEngine.prime``."""

        def work(stop: Callable[[], bool]) -> None:
            with suppress(Stopped, EngineError):  # whoever needs it reads the rest, or is told
                self._read(messages, 0, background=False, stop=stop, step=GLANCE)

        await self._ahead(work)

    async def open(self, messages: Sequence[Message]) -> float | None:
        """Reads a beginning that is the same at each start and tells nothing of the wearer, or takes what an
        earlier start made of it.

        Returns:
            Seconds that reading it takes, now or then; ``None``: it was not read to its end.
        """
        took: list[float] = []

        def work(stop: Callable[[], bool]) -> None:
            with suppress(Stopped, EngineError):
                took.append(self._open(messages, stop))

        await self._ahead(work)
        return took[0] if took else None

    def _open(self, messages: Sequence[Message], stop: Callable[[], bool]) -> float:
        slot, tokens = self._llama.slots[0], self._llama.prompt(messages)
        key = None
        if self._opening_file is not None and not slot.tokens:
            with suppress(OSError):  # the model's file is gone since: nothing to tell it by
                model = digest_of_model(self._model)
                context = self._llama.context_tokens
                key = key_of(model, self._llama.build, context, self._threads, tokens)
        if self._opening_file is not None and key is not None:
            one = kept(self._opening_file, key)
            if one is not None and self._llama.restore(slot, tokens, one.state):
                return one.read_s
        began = perf_counter()
        self._read(messages, 0, background=False, stop=stop)
        read_s = perf_counter() - began
        if self._opening_file is not None and key is not None:
            keep(self._opening_file, key, Kept(self._llama.state(slot), read_s))
        return read_s

    async def _ahead(self, read: Callable[[Callable[[], bool]], None]) -> None:
        """Does what can be given up at any time, before any background job."""
        stop = threading.Event()

        def work() -> None:
            read(stop.is_set)

        self._waited_for += 1
        job = asyncio.get_running_loop().run_in_executor(self._worker, work)
        try:
            await asyncio.shield(job)
        finally:
            stop.set()
            try:
                await asyncio.shield(job)
            finally:
                self._waited_for -= 1

    async def forget(self) -> None:
        """Nothing that was read is held any more; the next prompt is read from its beginning."""

        def work() -> None:
            for slot in self._llama.slots:
                self._llama.clear(slot)

        self._waited_for += 1
        try:
            await asyncio.get_running_loop().run_in_executor(self._worker, work)
        finally:
            self._waited_for -= 1

    def length(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt."""
        return len(self._llama.prompt(messages))

    def _answer(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Schema | None,
        background: bool,
        enough: Callable[[], bool],
    ) -> Iterator[str]:
        grammar = _grammar(schema) if schema is not None else None
        likely = messages[-1].likely if messages and grammar is None else ""
        guess = self._llama.begins(likely)[: max_tokens - 1] if likely else []
        self._read(messages, max_tokens, background=background, stop=enough, guess=guess)
        yield from self._llama.write(self._llama.slots[background], max_tokens, enough, grammar, guess)

    def _read(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        background: bool,
        stop: Callable[[], bool],
        step: int = BATCH,
        guess: Sequence[int] = (),
    ) -> None:
        llama = self._llama
        tokens = llama.prompt(messages)
        if len(tokens) + max_tokens > llama.context_tokens:
            raise EngineError(
                f"{self.name}: a prompt of {len(tokens)} tokens and an answer of {max_tokens} do not fit "
                f"into {llama.context_tokens}"
            )
        mine, other = llama.slots[background], llama.slots[not background]
        if len(tokens) + max_tokens + len(other.tokens) > llama.context_tokens:
            if background:
                raise EngineError(f"{self.name}: the conversation leaves no room for this job")
            llama.clear(other)
        llama.read(mine, tokens, stop, step=step, guess=guess)


def _grammar(schema: Schema) -> str:
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        return str(json_schema_to_gbnf(json.dumps(schema)))
    except Exception as e:
        raise EngineError(f"the answer's schema cannot be obeyed ({type(e).__name__})") from e
