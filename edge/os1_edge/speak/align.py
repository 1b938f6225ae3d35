"""Where the words of a clause lie in its sound, from the lengths of its phonemes. Pure.

::

    clause     Dr.     paid  $3.14                        (as the reply has it)
    read as    Doctor  paid  three dollars fourteen cents (what spoken() made of it)
    phonemes   dɑktɚ   peɪd  θɹiː  dɑlɚz   fɔːɹtiːn sɛnts (runs between the phonemizer's spaces, with lengths)

Neither pair need agree word by word: a number becomes several words, and espeak runs "of the" into one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from os1_edge.speak.heard import Word

Span = tuple[int, int]
"""First sample, and one past the last."""

MARKS = frozenset("^$.,;:!?-—…()\"'¿¡«»“”")
"""Phonemes that are not sound of a word: the ends of a sentence, and punctuation, which is a pause."""

PAUSES = frozenset(".,;:!?")
"""Marks that the phonemizer hands on at a word's end, so that they tell which word that is."""

NO_SOUND = frozenset("ˈˌː̩̃ʲ")
"""Phonemes that only colour their neighbour: stress, length, and the like."""

LETTERS_PER_PHONEME = 1.2
"""In English spelling."""

PAUSE_COST = 6.0
"""A pause inside a word, or a mark without a pause, in letters."""

GROUPS = ((1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (4, 1))
"""Words to runs of phonemes that may belong together."""


@dataclass(frozen=True, slots=True)
class Run:
    """Phonemes between two spaces."""

    phonemes: int
    """Those that sound."""
    pause: bool
    """A mark that makes a pause follows."""
    span: Span


def phoneme_runs(phonemes: Sequence[tuple[str, int]], begin: int = 0) -> list[Run]:
    """The runs of a sentence, from (phoneme, its samples); the first begins at ``begin``."""
    runs: list[Run] = []
    count, first, at = 0, begin, begin
    last, sounded, pause = begin, False, False
    for phoneme, length in [*phonemes, (" ", 0)]:
        if phoneme == " ":
            if sounded:
                runs.append(Run(count, pause, (first, last)))
            count, sounded, pause = 0, False, False
        elif phoneme in MARKS:
            pause = pause or phoneme in PAUSES
        else:
            if not sounded:
                first = at
            sounded = True
            count += phoneme not in NO_SOUND
            last = at + length
        at += length
    return runs


def _letters(word: str) -> int:
    """The letters of ``word``, with its figures in words."""
    figures = re.findall(r"\d+", word.replace(",", ""))
    letters = sum(c.isalpha() for c in word)
    return max(1, letters + sum(_letters_of_number(int(f[:12])) for f in figures))


def _letters_of_number(n: int) -> int:
    """About as many letters as English needs for ``n``."""
    for size, name in ((10**9, 7), (10**6, 7), (1000, 8), (100, 7)):
        if n >= size:
            return _letters_of_number(n // size) + name + (_letters_of_number(n % size) if n % size else 0)
    if n < 20:
        return 4 if n < 13 else 8
    return 6 + (4 if n % 10 else 0)


def _shared(words: Sequence[str], span: Span) -> list[Span]:
    """``span`` shared out among ``words`` by their letters."""
    weights = [_letters(w) for w in words]
    total, at, out = sum(weights), 0, []
    for weight in weights:
        begin = span[0] + (span[1] - span[0]) * at // total
        at += weight
        out.append((begin, span[0] + (span[1] - span[0]) * at // total))
    return out


def said_spans(words: Sequence[str], runs: Sequence[Run]) -> list[Span] | None:
    """The span of each spoken word: the grouping of ``words`` and ``runs`` whose lengths agree best.

    ``None`` when there is none, as with words in a script that the voice cannot read.
    """
    best: dict[Span, tuple[float, Span]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(words) + 1):
        for j in range(len(runs) + 1):
            if (i, j) not in best:
                continue
            for di, dj in GROUPS:
                if i + di > len(words) or j + dj > len(runs):
                    continue
                cost = best[i, j][0] + _strangeness(words[i : i + di], runs[j : j + dj])
                if cost < best.get((i + di, j + dj), (float("inf"),))[0]:
                    best[i + di, j + dj] = cost, (i, j)
    end = (len(words), len(runs))
    if end not in best:
        return None
    spans: list[Span] = []
    while end != (0, 0):
        begin = best[end][1]
        span = runs[begin[1]].span[0], runs[end[1] - 1].span[1]
        spans[:0] = _shared(words[begin[0] : end[0]], span)
        end = begin
    return spans


def _strangeness(words: Sequence[str], runs: Sequence[Run]) -> float:
    """How badly ``words`` and ``runs`` belong together."""
    letters = sum(_letters(w) for w in words)
    phonemes = sum(r.phonemes for r in runs)
    marks = [w[-1] in PAUSES for w in words]
    pauses = [r.pause for r in runs]
    apart = (marks[-1] != pauses[-1]) + any(marks[:-1]) + any(pauses[:-1])
    return (
        abs(letters - LETTERS_PER_PHONEME * phonemes)
        + 0.5 * (len(words) + len(runs) - 2)
        + PAUSE_COST * apart
    )


def place_words(clause: str, said: str, runs: Sequence[Run]) -> tuple[Word, ...] | None:
    """The words of ``clause``, read aloud as ``said``, and where they lie; ``None`` when that cannot be
    told."""
    said_words = [w for w in said.split() if any(c.isalnum() for c in w)]
    spans = said_spans(said_words, runs)
    written = [(m.group(), m.end()) for m in re.finditer(r"\S+", clause)]
    if not spans or not written:
        return None
    matcher = SequenceMatcher(None, [_plain(w) for w, _ in written], [_plain(w) for w in said_words], False)
    out: list[Word] = []
    at = spans[0][0]
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        if i2 - i1 == j2 - j1:
            placed = spans[j1:j2]
        else:
            placed = _shared(
                [w for w, _ in written[i1:i2]], (spans[j1][0], spans[j2 - 1][1]) if j2 > j1 else (at, at)
            )
        out += [Word(text_end, *span) for (_, text_end), span in zip(written[i1:i2], placed, strict=False)]
        at = out[-1].end if out else at
    return tuple(out)


def _plain(word: str) -> str:
    return "".join(c for c in word.lower() if c.isalnum()) or word
