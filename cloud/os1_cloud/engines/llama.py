"""llama.cpp through llama-cpp-python, in a worker thread of its own.

Below `create_chat_completion`, on `Llama.generate`: that gives the count of tokens, one place to stop between
any two of them, and state that is never carried from one wearer's prompt to another's.
"""

from __future__ import annotations

import asyncio
import codecs
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from os1_cloud.engines import BadSchema, EngineError, Finished, Piece, Prompt, TooLong

STEP = 128
"""Prompt tokens read between two looks at whether anybody still waits; also llama.cpp's batch."""


class Llama:
    """One GGUF model with a chat template, always at temperature 0."""

    def __init__(self, name: str, model: Path, threads: int, context: int = 4096) -> None:
        """Loads `model`.

        Args:
            name: what clients know it by.
            model: a GGUF file with a chat template.
            threads: CPU threads.
            context: tokens of prompt and answer together.

        Raises:
            EngineError: the file is no such model.
        """
        import llama_cpp

        self.name, self.context_tokens = name, context
        try:
            self._llama: Any = llama_cpp.Llama(
                str(model),
                n_ctx=context,
                n_batch=STEP,
                n_threads=threads,
                n_threads_batch=threads,
                verbose=False,
            )
        except (ValueError, OSError) as e:
            raise EngineError(f"{model.name} cannot be loaded: {e}") from e
        self._template: Any = _template(self._llama)
        self._session = ""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="llama")

    def close(self) -> None:
        """Waits for the worker and frees the model."""
        self._worker.shutdown()
        self._llama.close()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """See `Engine.generate`."""
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[Piece | Finished | Exception] = asyncio.Queue()  # at most max_tokens + 2
        stop = threading.Event()

        def give(part: Piece | Finished | Exception) -> None:
            loop.call_soon_threadsafe(parts.put_nowait, part)

        def work() -> None:
            try:
                for part in self._answer(prompt, stop):
                    give(part)
            except (TooLong, BadSchema) as e:
                give(e)
            except Exception as e:
                # Only the kind: an error's words may quote the prompt.
                give(EngineError(f"{self.name} failed ({type(e).__name__})"))

        job = loop.run_in_executor(self._worker, work)
        try:
            while True:
                part = await parts.get()
                if isinstance(part, Exception):
                    raise part
                yield part
                if isinstance(part, Finished):
                    return
        finally:
            stop.set()
            await asyncio.shield(job)

    def _answer(self, prompt: Prompt, stop: threading.Event) -> Iterator[Piece | Finished]:
        """In the worker: everything about one prompt. Ends without `Finished` if told to stop."""
        grammar = _grammar(prompt.json_schema) if prompt.json_schema else None
        tokens = self._tokens(prompt)
        room = self.context_tokens - len(tokens)
        if room < 1:
            raise TooLong(f"the prompt has {len(tokens)} tokens, the model's context {self.context_tokens}")
        if not prompt.session or prompt.session != self._session:
            self._llama.reset()
        self._session = prompt.session
        for end in range(self._known(tokens) + STEP, len(tokens), STEP):
            if stop.is_set():
                return
            with closing(self._llama.generate(tokens[:end], temp=0.0)) as read:
                next(read)
        yield from self._write(tokens, grammar, min(prompt.max_tokens, room), stop)

    def _known(self, tokens: list[int]) -> int:
        """How many of the prompt's first tokens llama.cpp still holds."""
        held = self._llama.input_ids[: self._llama.n_tokens].tolist()
        return next(
            (n for n, (a, b) in enumerate(zip(held, tokens, strict=False)) if a != b),
            min(len(held), len(tokens)),
        )

    def _write(
        self, tokens: list[int], grammar: Any, max_tokens: int, stop: threading.Event
    ) -> Iterator[Piece | Finished]:
        from llama_cpp import llama_vocab_is_eog

        characters = codecs.getincrementaldecoder("utf-8")("replace")
        vocabulary, written = self._llama._model.vocab, 0
        with closing(self._llama.generate(tokens, temp=0.0, grammar=grammar)) as writing:
            while not stop.is_set():
                token = next(writing)
                if llama_vocab_is_eog(vocabulary, token):
                    why, rest = "stop", characters.decode(b"", final=True)
                else:
                    written += 1
                    last = written == max_tokens
                    why, rest = (
                        "length" if last else "",
                        characters.decode(self._llama.detokenize([token]), last),
                    )
                if rest:
                    yield Piece(rest)
                if why:
                    yield Finished("stop" if why == "stop" else "length", len(tokens), written)
                    return

    def _tokens(self, prompt: Prompt) -> list[int]:
        turns = [{"role": t.role, "content": t.text} for t in prompt.turns]
        text: str = self._template(messages=turns).prompt
        found: list[int] = self._llama.tokenize(text.encode(), add_bos=False, special=True)
        return found


def _template(llama: Any) -> Any:
    """The model's own chat template, ready to be filled in."""
    import llama_cpp
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    source = llama.metadata.get("tokenizer.chat_template")
    if source is None:
        raise EngineError("the model has no chat template")
    vocabulary = llama._model.vocab

    def word(token: int) -> str:
        return llama_cpp.llama_vocab_get_text(vocabulary, token).decode() if token >= 0 else ""

    return Jinja2ChatFormatter(
        template=source, eos_token=word(llama.token_eos()), bos_token=word(llama.token_bos())
    )


def _grammar(schema: str) -> Any:
    """The schema as llama.cpp's grammar."""
    from llama_cpp.llama_grammar import LlamaGrammar

    try:
        return LlamaGrammar.from_json_schema(schema, verbose=False)
    except Exception as e:  # whatever a stranger's schema does to the converter
        raise BadSchema(f"json_schema cannot be obeyed ({type(e).__name__})") from e
