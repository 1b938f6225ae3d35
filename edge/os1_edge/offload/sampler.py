"""Which token comes next: the likeliest, or the likeliest that a grammar allows."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from os1_edge.offload.engine import EngineError

NEAR = 0.3
"""Scores that are so close, a factor of 1.35 in likelihood, change places with how many tokens are read at
once: the rounding is another."""


class Sampler:
    """Temperature 0, under llama.cpp's grammar where there is one. A context manager."""

    def __init__(self, vocab: Any, words: int, grammar: str | None) -> None:
        """Args:
            vocab: llama.cpp's vocabulary.
            words: how many tokens it has.
            grammar: GBNF with a rule ``root``.

        Raises:
            EngineError: llama.cpp cannot read the grammar.
        """
        import llama_cpp

        self._c: Any = llama_cpp
        self.grammar: Any = None
        if grammar is not None:
            self.grammar = llama_cpp.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
            if not self.grammar:
                raise EngineError("the answer's grammar cannot be read")
            self._rows = (llama_cpp.llama_token_data * words)()
            self._table = np.ctypeslib.as_array(self._rows)
            self._table["id"] = np.arange(words)

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        if self.grammar:
            self._c.llama_sampler_free(self.grammar)

    def pick(self, logits: NDArray[np.float32], foreseen: int | None = None) -> int:
        """The next token by ``logits``, one score a token; ``foreseen``, if that one is ``NEAR``."""
        if not self.grammar:
            best = int(logits.argmax())
            if foreseen is not None and logits[foreseen] >= logits[best] - NEAR:
                return foreseen
            return best
        self._table["logit"], self._table["p"] = logits, 0.0
        allowed = self._c.llama_token_data_array(self._rows, len(self._rows), -1, False)
        self._c.llama_sampler_apply(self.grammar, ctypes.byref(allowed))
        token = int(self._table["id"][int(self._table["logit"].argmax())])
        self._c.llama_sampler_accept(self.grammar, token)
        return token
