"""The language model on the device: llama.cpp through llama-cpp-python, in a worker thread of its own.

One prompt at a time. llama-cpp-python keeps the last prompt's state and reads only what differs from it,
so prompts should share their beginning byte for byte.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from os1_edge.native import let_threads_sleep
from os1_edge.offload.engine import EngineError, Message


class LocalLlama:
    """One loaded GGUF model, always at temperature 0."""

    def __init__(self, model: Path, threads: int = 2, context: int = 4096) -> None:
        """Loads ``model``.

        Args:
            model: a GGUF file with a chat template.
            threads: CPU threads.
            context: tokens of prompt and answer together.

        Raises:
            EngineError: the file is no GGUF model.
        """
        let_threads_sleep()
        from llama_cpp import Llama

        self.name = model.stem
        try:
            self._llama: Any = Llama(
                str(model), n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False
            )
        except ValueError:
            raise EngineError(f"{model}: not a language model that can be read") from None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="llama")

    def close(self) -> None:
        """Ends the worker and frees the model."""
        self._worker.shutdown()
        self._llama.close()

    async def stream(self, messages: Sequence[Message], max_tokens: int) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine.stream``."""
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[str | BaseException | None] = asyncio.Queue()  # bounded by max_tokens
        stop = threading.Event()

        def give(part: str | BaseException | None) -> None:
            loop.call_soon_threadsafe(parts.put_nowait, part)

        def work() -> None:
            try:
                for text in self._generate(messages, max_tokens):
                    if stop.is_set():
                        break
                    give(text)
                give(None)
            except Exception as e:
                give(EngineError(f"{self.name}: {e}"))

        job = loop.run_in_executor(self._worker, work)
        try:
            while (part := await parts.get()) is not None:
                if isinstance(part, BaseException):
                    raise part
                yield part
        finally:
            stop.set()
            await asyncio.shield(job)

    def _generate(self, messages: Sequence[Message], max_tokens: int) -> Any:
        chat = [{"role": m.role, "content": m.text} for m in messages]
        for chunk in self._llama.create_chat_completion(
            chat, temperature=0.0, max_tokens=max_tokens, stream=True
        ):
            text = chunk["choices"][0]["delta"].get("content")
            if text:
                yield text
