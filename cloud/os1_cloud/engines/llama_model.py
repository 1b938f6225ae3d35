"""llama.cpp in a worker process, through llama-cpp-python.

Below `create_chat_completion`, on `Llama.generate`: that gives the count of tokens, one place to stop between
any two of them, and state that is never carried from one wearer's prompt to another's.
"""

from __future__ import annotations

import codecs
import ctypes
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import Any

from os1_cloud.engines import BadSchema, EngineError, TooLong
from os1_cloud.engines.child import Stop
from os1_cloud.engines.frames import Frame
from os1_models.control import control_words

BATCH = 64
"""Prompt tokens read in one call. Whoever is stopped keeps what whole calls have read, so a prime that makes
way for its question loses little."""
SESSIONS = 32
"""What was read for this many wearers is kept aside."""
KEPT_BYTES = 512 * 1024**2
"""28 KB a token of a 1.5B model: nineteen dialogues of 1,000 tokens."""
KEPT_S = 600.0
"""A dialogue that rests this long is read anew: its text should not lie about."""
WORTH = 64
"""Tokens: fewer are read anew as fast as they are brought back."""


class _Aside:
    """What llama.cpp had read for wearers that others came between."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[list[int], Any, float]] = OrderedDict()

    def put(self, session: str, tokens: list[int], state: Any) -> None:
        self._kept[session] = (tokens, state, time.monotonic())
        while len(self._kept) > SESSIONS or sum(len(s) for _, s, _ in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)

    def take(self, session: str) -> tuple[list[int], Any] | None:
        old = time.monotonic() - KEPT_S
        for name in [name for name, (_, _, at) in self._kept.items() if at < old]:
            del self._kept[name]
        found = self._kept.pop(session, None)
        return None if found is None else found[:2]


class LlamaModel:
    """One GGUF model with a chat template, always at temperature 0."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Loads `spec["model"]`, a GGUF file, with `spec["threads"]` and `spec["context"]` tokens.

        Raises:
            EngineError: the file is no such model.
        """
        import llama_cpp

        self._c: Any = llama_cpp
        self._context = int(spec["context"])
        threads = int(spec["threads"])
        try:
            self._llama: Any = llama_cpp.Llama(
                spec["model"],
                n_ctx=self._context,
                n_batch=BATCH,
                n_threads=threads,
                n_threads_batch=threads,
                n_gpu_layers=int(spec.get("gpu_layers", 0)),
                verbose=False,
            )
        except (ValueError, OSError) as e:
            raise EngineError(f"it is no language model that can be read ({type(e).__name__})") from e
        _silence(llama_cpp)
        self._raw: Any = self._llama._ctx.ctx
        self._stop: Stop = lambda: False
        # Held here: ctypes callbacks die with their last reference.
        self._abort = llama_cpp.ggml_abort_callback(lambda _data: self._stop())
        llama_cpp.llama_set_abort_callback(self._raw, self._abort, None)
        self._template: Any = _template(self._llama)
        self._control = control_words(llama_cpp, self._llama._model.vocab)
        self._session = ""
        self._aside = _Aside()
        self.facts: dict[str, Any] = {"context_tokens": self._context}

    def do(self, job: dict[str, Any], blob: bytes, stop: Stop) -> Iterator[Frame]:
        """Pieces ``{"text"}``, then ``{"why", "prompt_tokens", "answer_tokens", "cached_tokens"}``."""
        grammar = self._grammar(job["json_schema"]) if job["json_schema"] else None
        tokens = self._tokens(job["turns"], job["prefix"])
        room = self._context - len(tokens)
        if room < 1:
            raise TooLong(f"the prompt has {len(tokens)} tokens, the model's context {self._context}")
        self._come_to(job["session"])
        cached = self._known(tokens)
        self._stop = stop
        try:
            yield from self._write(tokens, grammar, min(job["max_tokens"], room), cached)
        except RuntimeError:
            if (
                not stop()
            ):  # llama_decode says no more than that it failed; told to stop, it did as it was told
                raise
        finally:
            self._stop = lambda: False

    def _grammar(self, schema: str) -> Any:
        """The schema as llama.cpp's grammar.

        Raises:
            BadSchema: there is none. llama-cpp-python does not look whether llama.cpp took it, and crashes.
        """
        from llama_cpp.llama_grammar import LlamaGrammar

        try:
            grammar = LlamaGrammar.from_json_schema(schema, verbose=False)
        except Exception as e:  # whatever a stranger's schema does to the converter
            raise BadSchema(f"json_schema cannot be obeyed ({type(e).__name__})") from e
        rules, root = grammar._grammar.encode(), grammar._root.encode()
        tried = self._c.llama_sampler_init_grammar(self._llama._model.vocab, rules, root)
        if not tried:
            raise BadSchema("json_schema cannot be obeyed: its grammar is too large")
        self._c.llama_sampler_free(tried)
        return grammar

    def _come_to(self, session: str) -> None:
        """Has llama.cpp hold what it read for `session`, and nothing of any other."""
        if session and session == self._session:
            return
        llama, c = self._llama, self._c
        if self._session and llama.n_tokens >= WORTH:
            size = c.llama_state_seq_get_size(self._raw, 0)
            state = (ctypes.c_uint8 * size)()
            if c.llama_state_seq_get_data(self._raw, state, size, 0) == size:
                self._aside.put(self._session, llama.input_ids[: llama.n_tokens].tolist(), state)
        llama.reset()
        c.llama_memory_clear(c.llama_get_memory(self._raw), True)
        self._session = session
        found = self._aside.take(session) if session else None
        if found is not None:
            tokens, state = found
            if c.llama_state_seq_set_data(self._raw, state, len(state), 0):
                llama.input_ids[: len(tokens)] = tokens
                llama.n_tokens, llama._requires_eval = len(tokens), True

    def _known(self, tokens: list[int]) -> int:
        """How many of the prompt's first tokens llama.cpp still holds."""
        held = self._llama.input_ids[: self._llama.n_tokens].tolist()
        same = next((n for n, (a, b) in enumerate(zip(held, tokens, strict=False)) if a != b), None)
        return min(len(held), len(tokens)) if same is None else same

    def _write(self, tokens: list[int], grammar: Any, max_tokens: int, cached: int) -> Iterator[Frame]:
        characters = codecs.getincrementaldecoder("utf-8")("replace")
        vocabulary, written = self._llama._model.vocab, 0
        with closing(self._llama.generate(tokens, temp=0.0, grammar=grammar)) as writing:
            while not self._stop():
                token = next(writing)
                ended = bool(self._c.llama_vocab_is_eog(vocabulary, token))
                written += not ended
                last = ended or written == max_tokens
                if text := characters.decode(b"" if ended else self._llama.detokenize([token]), last):
                    yield {"text": text}, b""
                if last:
                    done = {"prompt_tokens": len(tokens), "answer_tokens": written, "cached_tokens": cached}
                    yield {"why": "stop" if ended else "length", **done}, b""
                    return

    def _tokens(self, turns: list[list[str]], prefix: str) -> list[int]:
        # What was said is text, whatever it looks like: it opens no turn.
        said = [{"role": role, "content": self._control.marked(text)} for role, text in turns]
        found: list[int] = []
        for text, meant in (*self._control.pieces(self._template(messages=said).prompt), (prefix, False)):
            found += self._llama.tokenize(text.encode(), add_bos=False, special=meant) if text else []
        return found


@cache
def _silence(c: Any) -> Any:
    """llama.cpp warns of every cancel. Kept here, the callback lives as long as llama.cpp may call it."""
    callback = c.llama_log_callback(lambda *_: None)
    c.llama_log_set(callback, ctypes.c_void_p(0))
    return callback


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
