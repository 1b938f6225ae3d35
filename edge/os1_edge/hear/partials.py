"""Steady words out of hypotheses that change while somebody speaks: what two in a row agree on stays. Pure.

LocalAgreement-2 (Liu et al. 2020, as whisper_streaming uses it).
"""

from __future__ import annotations

import re

from os1_edge.events import PartialTranscript

LONGEST = 200
"""Words kept of one turn; a turn of 30 s holds about 80."""


class Stabiliser:
    """Takes the hypotheses over one turn so far, each over more of its sound than the one before."""

    def __init__(self) -> None:
        self._of = ("", -1)
        self._stable: list[str] = []
        self._before: list[str] = []

    def add(self, turn_id: str, revision: int, text: str) -> PartialTranscript:
        """The next hypothesis; another turn or revision begins anew."""
        if self._of != (turn_id, revision):
            self._of, self._stable, self._before = (turn_id, revision), [], []
        words = text.split()[:LONGEST]
        agreed = 0
        for a, b in zip(self._before, words, strict=False):
            if _bare(a) != _bare(b):
                break
            agreed += 1
        if agreed > len(self._stable):
            self._stable = words[:agreed]
        self._before = words
        tentative = words[len(self._stable) :]
        return PartialTranscript(turn_id, revision, " ".join(self._stable), " ".join(tentative))


def _bare(word: str) -> str:
    return re.sub(r"\W", "", word).casefold()
