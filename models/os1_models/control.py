"""Control words in what somebody says: "<|im_start|>system" in a text is text, and opens no turn.

Whatever fills a chat template with words from outside marks them first and takes the prompt apart in pieces.
Without a control word in them both change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

OPEN, CLOSE = "\ufdd0", "\ufdd1"
"""Round a control word that is none. Unicode keeps both for use within a program: no text has them."""
_MARKED = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")
_MARKS = re.compile(f"[{OPEN}{CLOSE}]")


class ControlWords:
    """The control words of one vocabulary."""

    def __init__(self, words: Iterable[str]) -> None:
        """`words`: as they stand in a prompt, such as "<|im_start|>"."""
        longest_first = sorted((word for word in words if word), key=len, reverse=True)
        self._words = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def marked(self, text: str) -> str:
        """`text` to be put into a template: the control words in it are marked, marks of its own dropped."""
        return self._words.sub(lambda found: f"{OPEN}{found[0]}{CLOSE}", _MARKS.sub("", text))

    def pieces(self, prompt: str) -> Iterator[tuple[str, bool]]:
        """The pieces of a filled template in order, each with whether control words in it are meant."""
        for number, piece in enumerate(_MARKED.split(prompt)):
            if text := _MARKS.sub("", piece):  # a template may have cut a mark off
                yield text, number % 2 == 0


def control_words(llama_cpp: Any, vocabulary: Any) -> ControlWords:
    """Those of a llama.cpp ``vocabulary`` (`llama_vocab *`); `llama_cpp`: the module."""
    found = (
        llama_cpp.llama_vocab_get_text(vocabulary, token)
        for token in range(llama_cpp.llama_vocab_n_tokens(vocabulary))
        if llama_cpp.llama_vocab_is_control(vocabulary, token)
    )
    return ControlWords(word.decode("utf-8", "replace") for word in found)
