"""Which words of a reply have reached the ear. Pure; everything counted in samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from os1_edge.events import Samples

AUDIBLE = 0.01
"""Amplitude above which a sample counts as voice: 40 dB under full scale."""

UNSURE_S = 0.1
"""How far a word's beginning may lie from where it was guessed to be; a resumed reply starts so much
earlier."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a clause and where its sound lies."""

    text_end: int
    """Index in the clause one past the word, with the marks that cling to it."""
    begin: int
    """Its first sample in the clause's sound."""
    end: int
    """One past its last sample."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the wearer has heard of a reply."""

    text: str
    """The words whose sound was played to its end, written as in the reply."""
    whole: bool
    """Nothing of the reply is missing: all its words were played, and it was not stopped before its end."""
    seconds: float
    """Speech played, without the gaps and without what was played twice."""
    file: str | None = None
    """Where the sink keeps one: the name of the file with the sound."""


NOTHING_HEARD = Heard("", False, 0.0)


def guess_words(clause: str, samples: Samples) -> tuple[Word, ...]:
    """Where ``clause``'s words lie in its sound, by their share of the letters between the first and the last
    audible sample; for a voice that does not tell."""
    spans = [m.span() for m in re.finditer(r"\S+", clause)]
    loud = np.flatnonzero(np.abs(samples) > AUDIBLE)
    if not spans or not len(loud):
        return tuple(Word(end, 0, len(samples)) for _, end in spans[-1:])
    first, last = int(loud[0]), int(loud[-1]) + 1
    weights = np.array([end - begin + 1 for begin, end in spans], float)
    edges = first + np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum() * (last - first)
    marks = [round(e) for e in edges]
    return tuple(Word(end, b, e) for (_, end), b, e in zip(spans, marks[:-1], marks[1:], strict=True))


@dataclass(frozen=True, slots=True)
class ClauseHeard:
    """A clause in a reply: its words, and where its sound begins in the reply's."""

    text: str
    words: tuple[Word, ...]
    begin: int
    end: int
    unsure: int = 0
    """Samples by which the words' places may be wrong."""


def heard_text(clauses: Sequence[ClauseHeard], position: int) -> tuple[str, bool]:
    """The words of ``clauses`` that end by sample ``position``, and whether those are all."""
    parts: list[str] = []
    for clause in clauses:
        ended = [w for w in clause.words if clause.begin + w.end <= position]
        if len(ended) < len(clause.words):
            parts.append(clause.text[: ended[-1].text_end].strip() if ended else "")
            return " ".join(filter(None, parts)), False
        parts.append(clause.text.strip())
    return " ".join(parts), True


def resume_at(clauses: Sequence[ClauseHeard], position: int) -> int:
    """Where a reply cut at ``position`` goes on: the beginning of the word that was cut, or a little before.

    Never later than ``position``, so nothing is skipped; never before the clause, so nothing is babbled.
    """
    for clause in clauses:
        if clause.begin <= position < clause.end:
            cut = [w for w in clause.words if clause.begin + w.begin <= position < clause.begin + w.end]
            back = clause.begin + (cut[0].begin if cut else position - clause.begin) - clause.unsure
            return max(clause.begin, min(back, position))
    return position
