"""A vision and language model on llama.cpp: what it has read, what to read, what to write.

What was read stays: a dialogue that goes on is read from where it differs, its pictures are looked at once.
Blocking; one call at a time (`worker` has a thread for it).
"""

from __future__ import annotations

import codecs
import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from os1_models.control import control_words
from os1_models.vision.chat import ChatFormat, chat_format
from os1_models.vision.projector import Projector, Stop, Unit
from os1_models.vision.terms import (
    MOST_TOKENS,
    BadSchema,
    Finished,
    Piece,
    Stopped,
    TooLong,
    Turn,
    VisionError,
)

BATCH = 512
"""Tokens read in one call, and llama.cpp's own batch: a picture that is read in both directions (Gemma 3: 256
tokens) must fit into one."""
ABORTED = 2
"""What ``llama_decode`` returns when the abort callback said so."""


@dataclass(slots=True)
class _Slot:
    number: int
    units: list[Unit] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(unit.tokens for unit in self.units)

    @property
    def end(self) -> int:
        """The position behind what it holds."""
        return sum(unit.positions for unit in self.units)


@cache
def _silence(c: Any, m: Any) -> Any:
    """Keeps llama.cpp off the terminal; kept here, the callback lives as long as llama.cpp may call it."""
    callback = c.llama_log_callback(lambda *_: None)
    for mute in (c.llama_log_set, m.mtmd_log_set, m.mtmd_helper_log_set):
        mute(callback, ctypes.c_void_p(0))
    return callback


class VisionModel:
    """A loaded model and its projector, always at temperature 0, with room for two prompts: the one that
    somebody waits for, and a background job's."""

    def __init__(self, model: Path, projector: Path, *, threads: int = 2, context: int = 4096) -> None:
        """Loads both.

        Args:
            model: a GGUF file.
            projector: its mmproj GGUF file.
            threads: CPU threads.
            context: tokens of both prompts, their pictures and their answers together.

        Raises:
            VisionError: a file is not what it should be, or they do not belong together.
        """
        # OpenMP threads that spin at barriers burn the time of whoever they wait for.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        import llama_cpp
        from llama_cpp import mtmd_cpp

        self.name, self.context_tokens = model.stem, context
        self._c: Any = llama_cpp
        self._stop: Stop = lambda: False
        self._free = ExitStack()
        _silence(llama_cpp, mtmd_cpp)
        with ExitStack() as undo:
            undo.callback(self._free.close)
            self._load(model, threads)
            self._projector = Projector(projector, self._model, threads)
            self._free.callback(self._projector.close)
            self._format = self._chat_format()
            self._control = control_words(llama_cpp, self._vocab)
            undo.pop_all()
        self._slots = (_Slot(0), _Slot(1))

    def _load(self, model: Path, threads: int) -> None:
        c = self._c
        self._model = c.llama_model_load_from_file(str(model).encode(), c.llama_model_default_params())
        if not self._model:
            raise VisionError(f"{model.name}: not a language model that can be read")
        self._free.callback(c.llama_model_free, self._model)
        settings = c.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = self.context_tokens, BATCH, BATCH
        settings.n_threads = settings.n_threads_batch = threads
        settings.n_seq_max, settings.kv_unified = 2, True
        self._context = c.llama_init_from_model(self._model, settings)
        if not self._context:
            raise VisionError(f"{model.name}: no room for {self.context_tokens} tokens of context")
        self._free.callback(c.llama_free, self._context)
        # Held here: ctypes callbacks die with their last reference.
        self._abort = c.ggml_abort_callback(lambda _data: self._stop())
        c.llama_set_abort_callback(self._context, self._abort, None)
        self._batch = c.llama_batch_init(BATCH, 0, 1)
        self._free.callback(c.llama_batch_free, self._batch)
        self._vocab = c.llama_model_get_vocab(self._model)
        self._memory = c.llama_get_memory(self._context)

    def _chat_format(self) -> ChatFormat:
        source = self._c.llama_model_chat_template(self._model, None)
        self._bos = self._word(self._c.llama_vocab_bos(self._vocab))
        eos = self._word(self._c.llama_vocab_eos(self._vocab))
        return chat_format(source.decode() if source else None, self._bos, eos)

    def close(self) -> None:
        """Frees everything; twice is once."""
        self._free.close()

    def forget(self) -> None:
        """Holds nothing of what it was asked and shown."""
        for slot in self._slots:
            self._keep(slot, 0)
        self._projector.forget()

    def answer(
        self,
        turns: Sequence[Turn],
        max_tokens: int = MOST_TOKENS,
        *,
        stop: Stop = lambda: False,
        json_schema: str = "",
        background: bool = False,
    ) -> Iterator[Piece | Finished]:
        """The answer to a dialogue, piece by piece, then `Finished`. Work begins with the first ``next``.

        Args:
            turns: the dialogue with its pictures.
            max_tokens: the answer's bound; MOST_TOKENS at most.
            stop: asked every few milliseconds, also while the prompt or a picture is being read.
            json_schema: a JSON schema that the answer obeys; empty: free text.
            background: nobody waits; what is known of the other dialogue stays known.

        Raises:
            BadPicture, TooLong, BadSchema: before anything is read.
            VisionError: llama.cpp failed.
            Stopped: ``stop`` said so.
        """
        grammar = _grammar(json_schema) if json_schema else None
        most = min(max_tokens, MOST_TOKENS)
        slot = self._slots[background]
        with self._prompt(turns) as units:
            prompt_tokens = sum(unit.tokens for unit in units)
            self._make_room(slot, prompt_tokens + most, background)
            self._read(slot, units, stop)
        characters = codecs.getincrementaldecoder("utf-8")("replace")
        written = 0
        with self._sampler(grammar) as sampler:
            while True:
                token = self._c.llama_sampler_sample(sampler, self._context, -1)
                ended = bool(self._c.llama_vocab_is_eog(self._vocab, token))
                written += not ended
                last = ended or written == most
                if text := characters.decode(b"" if ended else self._bytes(token), last):
                    yield Piece(text)
                if last:
                    yield Finished("stop" if ended else "length", prompt_tokens, written)
                    return
                self._decode(slot, [Unit(token)], stop)

    def prime(self, turns: Sequence[Turn], *, stop: Stop = lambda: False) -> None:
        """Reads a dialogue ahead of an ``answer`` that begins with the same turns; raises as that does."""
        with self._prompt(turns) as units:
            slot = self._slots[0]
            self._make_room(slot, sum(unit.tokens for unit in units), background=False)
            self._read(slot, units, stop)

    @contextmanager
    def _prompt(self, turns: Sequence[Turn]) -> Iterator[list[Unit]]:
        marker = self._projector.marker
        text = self._format.text([replace(t, text=self._control.marked(t.text)) for t in turns], marker)
        special = not (self._bos and text.startswith(self._bos))  # some templates write it, some do not
        pictures = [image for turn in turns for image in turn.images]
        if text.count(marker) != len(pictures):
            raise VisionError("the model's chat template takes no picture where one was given")
        with ExitStack() as stack:
            units: list[Unit] = []
            for piece, meant in self._control.pieces(text):
                count = piece.count(marker)
                shown, pictures = pictures[:count], pictures[count:]
                units += stack.enter_context(self._projector.units(piece, shown, special, meant))
                special = False
            if not units or units[-1].chunk is not None:
                raise VisionError("the model's chat template leaves nothing to answer")
            yield units

    def _make_room(self, slot: _Slot, wanted: int, background: bool) -> None:
        other = self._slots[1 - slot.number]
        if wanted > self.context_tokens or (background and wanted + other.tokens > self.context_tokens):
            raise TooLong(f"{self.name}: {wanted} tokens do not fit into {self.context_tokens}")
        if wanted + other.tokens > self.context_tokens:
            self._keep(other, 0)

    def _read(self, slot: _Slot, units: Sequence[Unit], stop: Stop) -> None:
        """Has ``slot`` hold exactly ``units``; only what differs from what it holds is read."""
        pairs = zip(slot.units, units, strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if a.key != b.key), min(len(slot.units), len(units)))
        # The last token is always read: its scores are what the answer begins with.
        at = self._keep(slot, min(same, len(units) - 1))
        while at < len(units):
            if units[at].chunk is not None:
                self._show(slot, units[at], stop)
                at += 1
                continue
            ends = (i for i in range(at, len(units)) if units[i].chunk is not None or i == at + BATCH)
            end = next(ends, len(units))
            self._decode(slot, units[at:end], stop)
            at = end

    def _keep(self, slot: _Slot, count: int) -> int:
        """Forgets all but the first ``count`` units of ``slot``; how many are left."""
        if count < len(slot.units):
            del slot.units[count:]
            # Not every kind of model can forget the end alone.
            if not self._c.llama_memory_seq_rm(self._memory, slot.number, slot.end, -1):
                self._c.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
                slot.units.clear()
        return len(slot.units)

    def _decode(self, slot: _Slot, units: Sequence[Unit], stop: Stop) -> None:
        """Reads tokens of text behind what ``slot`` holds; the last one gets its scores."""
        batch, at = self._batch, slot.end
        batch.n_tokens = len(units)
        for i, unit in enumerate(units):
            batch.token[i], batch.pos[i] = unit.key, at + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, slot.number
            batch.logits[i] = i == len(units) - 1
        self._run(slot, units, stop, lambda: self._c.llama_decode(self._context, batch))

    def _show(self, slot: _Slot, unit: Unit, stop: Stop) -> None:
        """Reads a picture behind what ``slot`` holds."""
        at = slot.end
        self._run(
            slot,
            [unit],
            stop,
            lambda: self._projector.put(unit, self._context, slot.number, at, BATCH, stop),
        )

    def _run(self, slot: _Slot, units: Sequence[Unit], stop: Stop, work: Any) -> None:
        if stop():
            raise Stopped
        self._stop, at = stop, slot.end
        try:
            result = work()
        finally:
            self._stop = lambda: False
        if result != 0:
            # How much of it had been read is unknown: none of it counts.
            self._c.llama_memory_seq_rm(self._memory, slot.number, at, -1)
            if result == ABORTED:
                raise Stopped
            raise VisionError(f"llama.cpp could not read {sum(u.tokens for u in units)} tokens ({result})")
        slot.units.extend(units)

    @contextmanager
    def _sampler(self, grammar: str | None) -> Iterator[Any]:
        """The likeliest token, or the likeliest that ``grammar`` allows."""
        c = self._c
        chain = c.llama_sampler_chain_init(c.llama_sampler_chain_default_params())
        try:
            if grammar is not None:
                allowed = c.llama_sampler_init_grammar(self._vocab, grammar.encode(), b"root")
                if not allowed:
                    raise BadSchema("the answer's grammar cannot be read")
                c.llama_sampler_chain_add(chain, allowed)
            c.llama_sampler_chain_add(chain, c.llama_sampler_init_greedy())
            yield chain
        finally:
            c.llama_sampler_free(chain)

    def _bytes(self, token: int) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = self._c.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if length >= 0:
                return buffer.raw[:length]
            size = -length

    def _word(self, token: int) -> str:
        return self._c.llama_vocab_get_text(self._vocab, token).decode() if token >= 0 else ""


def _grammar(schema: str) -> str:
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        return str(json_schema_to_gbnf(schema))
    except Exception as e:  # whatever a stranger's schema does to the converter
        raise BadSchema(f"the schema cannot be obeyed ({type(e).__name__})") from None
