"""Steady words out of hypotheses that change while somebody speaks: what two in a row agree on stays. Pure.

LocalAgreement-2 (Liu et al. 2020, as whisper_streaming uses it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from os1_edge.events import PartialTranscript

LONGEST = 200
"""Words kept of one turn; a turn of 30 s holds about 80."""

ANCHOR = 3
"""Last stable words by which a hypothesis that reads the beginning otherwise is found to go on from them."""


class Stabiliser:
    """Takes the hypotheses over one turn so far, each over more of its sound than the one before."""

    def __init__(self) -> None:
        self._of = ("", -1)
        self._stable: list[str] = []
        self._before: list[str] = []
        """What the hypothesis before said behind the words that were stable then."""

    def add(self, turn_id: str, revision: int, text: str) -> PartialTranscript:
        """The next hypothesis; another turn or revision begins anew."""
        if self._of != (turn_id, revision):
            self._of, self._stable, self._before = (turn_id, revision), [], []
        words = text.split()[:LONGEST]
        rest = words[_goes_on(self._stable, words) :]
        agreed = 0
        for a, b in zip(self._before, rest, strict=False):
            if _bare(a) != _bare(b):
                break
            agreed += 1
        agreed = min(agreed, LONGEST - len(self._stable))
        self._stable += rest[:agreed]
        self._before = rest[agreed:]
        return PartialTranscript(turn_id, revision, " ".join(self._stable), " ".join(self._before))


def _goes_on(stable: Sequence[str], words: Sequence[str]) -> int:
    """Index in ``words`` of what comes after ``stable``, which they may read a word shorter or longer."""
    said, now = [_bare(w) for w in stable], [_bare(w) for w in words]
    if now[: len(said)] == said:
        return len(said)
    anchor = said[-ANCHOR:]
    ends = [i for i in range(len(anchor), len(now) + 1) if now[i - len(anchor) : i] == anchor]
    return min(ends, key=lambda i: abs(i - len(said)), default=min(len(said), len(now)))


def _bare(word: str) -> str:
    return re.sub(r"\W", "", word).casefold()
