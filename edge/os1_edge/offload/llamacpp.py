"""One GGUF model on llama.cpp, below ``llama_cpp.Llama``: what it has read, what to read, what to write.

Why not ``Llama``: its prompt lookup keeps the logits of every position (2.4 GB for Qwen's vocabulary), and it
can neither stop in the middle of a prompt nor hold a second prompt beside the conversation's.

Follows llama.cpp's ``examples/lookup`` and ``llama.h``. Blocking; one call at a time.
"""

from __future__ import annotations

import codecs
import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from os1_edge.native import forget_pages, let_threads_sleep
from os1_edge.offload.engine import EngineError, Message
from os1_edge.offload.lookup import FEW, MANY, guesses
from os1_edge.offload.sampler import Sampler
from os1_models.control import control_words

BATCH = 64
"""Prompt tokens read in one call: as fast as 256 at once, and a reading that is given up loses no more."""

GLANCE = 16
"""The same ahead of a turn's end, where a reading is mostly given up in the midst of it: smaller pieces are
a quarter slower, and are not lost."""

ABORTED = 2
"""What ``llama_decode`` returns when the abort callback said so."""

PLAIN_ATTENTION = 0
"""``LLAMA_FLASH_ATTN_TYPE_DISABLED``. On a processor llama.cpp's plain attention is two matrix products; its
flash attention takes one row after the other. Behind 700 tokens, 16 to 48 more take 0.7 times as long."""

SLOTS = 2
"""Prompts held side by side: the conversation's, and a background job's."""


class Stopped(Exception):
    """``stop`` said so."""


@dataclass(slots=True)
class Slot:
    """One prompt that the model holds."""

    number: int
    tokens: list[int] = field(default_factory=list)


@cache
def _silence(c: Any) -> Any:
    """Keeps llama.cpp off the terminal; kept here, the callback lives as long as llama.cpp may call it."""
    callback = c.llama_log_callback(lambda *_: None)
    c.llama_log_set(callback, ctypes.c_void_p(0))
    return callback


class LlamaCpp:
    """A loaded model with room for two prompts."""

    def __init__(self, model: Path, threads: int, context: int) -> None:
        """Loads ``model``.

        Raises:
            EngineError: the file is no GGUF model, or has no chat template.
        """
        let_threads_sleep()
        import llama_cpp

        self._c: Any = llama_cpp
        self._stop: Callable[[], bool] = lambda: False
        self.context_tokens = context
        _silence(llama_cpp)
        self._model: Any = None
        self._context: Any = None
        self._model = llama_cpp.llama_model_load_from_file(
            str(model).encode(), llama_cpp.llama_model_default_params()
        )
        if not self._model:
            raise EngineError(f"{model}: not a language model that can be read")
        forget_pages(model)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._words = llama_cpp.llama_vocab_n_tokens(self._vocab)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = context, BATCH + MANY, BATCH + MANY
        settings.n_threads = settings.n_threads_batch = threads
        settings.n_seq_max, settings.kv_unified = SLOTS, True
        settings.flash_attn_type = PLAIN_ATTENTION
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        if not self._context:
            self.close()
            raise EngineError(f"{model}: no room for {context} tokens of context")
        # Held here: ctypes callbacks die with their last reference.
        self._abort = llama_cpp.ggml_abort_callback(lambda _data: self._stop())
        llama_cpp.llama_set_abort_callback(self._context, self._abort, None)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(BATCH + MANY, 0, 1)
        self._template = self._chat_template(model)
        self._control = control_words(llama_cpp, self._vocab)
        self.slots = tuple(Slot(number) for number in range(SLOTS))

    def close(self) -> None:
        """Frees everything; twice is once."""
        if self._context:
            self._c.llama_batch_free(self._batch)
            self._c.llama_free(self._context)
        if self._model:
            self._c.llama_model_free(self._model)
        self._context = self._model = None

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of a chat, up to where the assistant's answer begins; where the last message is the
        assistant's, up to that one's end, so that the answer goes on with it. Control words in a text are
        text: they open no turn."""
        chat = [{"role": m.role, "content": self._control.marked(m.text)} for m in messages]
        last = chat.pop() if chat and chat[-1]["role"] == "assistant" and chat[-1]["content"] else None
        filled = self._template(messages=chat).prompt + (last["content"] if last else "")
        pieces = self._control.pieces(filled)
        return [token for text, meant in pieces for token in self._tokens(text, special=meant)]

    def begins(self, answer: str) -> list[int]:
        """The first tokens of an ``answer``, as many as are guessed at once."""
        return self._tokens(answer)[:MANY]

    def read(
        self,
        slot: Slot,
        tokens: Sequence[int],
        stop: Callable[[], bool],
        *,
        step: int = BATCH,
        guess: Sequence[int] = (),
    ) -> None:
        """Has ``slot`` hold exactly ``tokens``; only what differs from what it holds is read, ``step`` tokens
        at a time. A ``guess`` at what ``write`` will begin with (up to ``MANY``) is read along, to be checked
        there.

        Raises:
            Stopped: in between; ``slot`` holds what was read so far.
        """
        pairs = zip(slot.tokens, tokens, strict=False)
        known = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(slot.tokens), len(tokens)))
        # The last token is always read: its logits are what the answer begins with.
        known = min(known, len(tokens) - 1)
        self._forget(slot, known)
        for start in range(known, len(tokens), step):
            part = list(tokens[start : start + step])
            if start + step < len(tokens):
                self._decode(slot, part, stop, logits=0)
            else:
                self._decode(slot, [*part, *guess], stop, logits=1 + len(guess))

    def write(
        self,
        slot: Slot,
        max_tokens: int,
        stop: Callable[[], bool],
        grammar: str | None = None,
        guess: Sequence[int] = (),
    ) -> Iterator[str]:
        """The answer to what ``slot`` holds but the ``guess`` at its end, piece by piece, at temperature 0.

        Raises:
            Stopped: in between.
        """
        characters = codecs.getincrementaldecoder("utf-8")("replace")
        with Sampler(self._vocab, self._words, grammar) as sampler:
            for token in self._written(slot, max_tokens, stop, sampler, guess):
                if text := characters.decode(self._bytes(token)):
                    yield text
        if text := characters.decode(b"", final=True):
            yield text

    def _written(
        self,
        slot: Slot,
        max_tokens: int,
        stop: Callable[[], bool],
        sampler: Sampler,
        guess: Sequence[int],
    ) -> Iterator[int]:
        written = 0
        guessed = foreseen = list(guess)
        while True:
            chosen = self._chosen(slot, guessed, sampler, foreseen)
            for token in chosen:
                if self._ends(token):
                    return
                yield token
                written += 1
                if written == max_tokens:
                    return
            room = min(max_tokens - written, self.context_tokens - self.held())
            if room < 1:
                return
            count = MANY if guessed and len(chosen) > len(guessed) else FEW
            found = [] if sampler.grammar else guesses([*slot.tokens, chosen[-1]], count)
            guessed, foreseen = found[: room - 1], []
            self._decode(slot, [chosen[-1], *guessed], stop, logits=1 + len(guessed))

    def _chosen(
        self, slot: Slot, guessed: Sequence[int], sampler: Sampler, foreseen: Sequence[int]
    ) -> list[int]:
        """What the model writes next: the guesses that it agrees with, and one token of its own. Between
        tokens that are as likely to it, one that was ``foreseen`` wins."""
        chosen: list[int] = []
        for row, wanted in zip_longest(range(-1 - len(guessed), 0), foreseen):
            chosen.append(sampler.pick(self._logits(row), wanted))
            if chosen != list(guessed[: len(chosen)]) or self._ends(chosen[-1]):
                break
        self._forget(slot, len(slot.tokens) - len(guessed) + len(chosen) - 1)
        return chosen

    def clear(self, slot: Slot) -> None:
        """Has ``slot`` hold nothing."""
        self._forget(slot, 0)

    def state(self, slot: Slot) -> bytes:
        """What the model made of the tokens that ``slot`` holds."""
        size = self._c.llama_state_seq_get_size(self._context, slot.number)
        out = (ctypes.c_uint8 * size)()
        return bytes(out[: self._c.llama_state_seq_get_data(self._context, out, size, slot.number)])

    def restore(self, slot: Slot, tokens: Sequence[int], state: bytes) -> bool:
        """Has ``slot`` hold ``tokens`` without reading them, from their ``state``; whether it took."""
        self.clear(slot)
        data = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        if self._c.llama_state_seq_set_data(self._context, data, len(state), slot.number) != len(state):
            self._c.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
            return False
        slot.tokens[:] = tokens
        return True

    @property
    def build(self) -> str:
        """llama.cpp's version and what of the processor it uses; a state is another build's no more than
        another model's."""
        return f"{self._c.__version__} {self._c.llama_print_system_info().decode()}"

    def held(self) -> int:
        """Tokens that all slots hold together."""
        return sum(len(slot.tokens) for slot in self.slots)

    def _forget(self, slot: Slot, keep: int) -> None:
        if keep < len(slot.tokens):
            self._c.llama_memory_seq_rm(self._memory, slot.number, keep, -1)
            del slot.tokens[keep:]

    def _decode(self, slot: Slot, tokens: list[int], stop: Callable[[], bool], *, logits: int) -> None:
        """Reads ``tokens`` behind what ``slot`` holds; the last ``logits`` of them get theirs."""
        if stop():
            raise Stopped
        batch, at = self._batch, len(slot.tokens)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i] = token, at + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, slot.number
            batch.logits[i] = i >= len(tokens) - logits
        self._stop = stop
        result = self._c.llama_decode(self._context, batch)
        if result != 0:
            # What of the batch had been read is unknown: none of it counts.
            self._c.llama_memory_seq_rm(self._memory, slot.number, at, -1)
            if result == ABORTED:
                raise Stopped
            raise EngineError(f"llama.cpp could not read {len(tokens)} tokens ({result})")
        slot.tokens.extend(tokens)

    def _logits(self, row: int) -> Any:
        """Scores of all tokens at output ``row`` (-1: the last)."""
        found = self._c.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(found, (self._words,))

    def _ends(self, token: int) -> bool:
        return bool(self._c.llama_vocab_is_eog(self._vocab, token))

    def _bytes(self, token: int) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = self._c.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if length >= 0:
                return buffer.raw[:length]
            size = -length

    def _tokens(self, text: str, *, special: bool = True) -> list[int]:
        data = text.encode()
        room = len(data) + 16
        out = (self._c.llama_token * room)()
        count = self._c.llama_tokenize(self._vocab, data, len(data), out, room, False, special)
        if count < 0:
            raise EngineError("llama.cpp could not take the prompt apart")
        return list(out[:count])

    def _chat_template(self, model: Path) -> Any:
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        source = self._c.llama_model_chat_template(self._model, None)
        if source is None:
            self.close()
            raise EngineError(f"{model}: it has no chat template")

        def word(token: int) -> str:
            return self._c.llama_vocab_get_text(self._vocab, token).decode() if token >= 0 else ""

        return Jinja2ChatFormatter(
            template=source.decode(),
            eos_token=word(self._c.llama_vocab_eos(self._vocab)),
            bos_token=word(self._c.llama_vocab_bos(self._vocab)),
        )
