"""Porter's stemmer (M. F. Porter, "An algorithm for suffix stripping", 1980), as FTS5's ``porter`` tokenizer
applies it, so that words can be matched outside the database as inside it. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import pairwise

WORDS_KEPT = 16_384
"""Words whose stems are kept: more than one wearer's everyday vocabulary, about 2 MB."""

LONGEST = 64
"""Letters above which FTS5 leaves a word as it is."""

_WORD = re.compile(r"[^\W_]+")
_ASCII = "".join(chr(c).lower() if chr(c).isalnum() else " " for c in range(128))
"""What each ASCII character is in a word; between words stand spaces."""
_VOWEL = "aeiou"

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("logi", "log"), ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"),
    ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


def words(text: str) -> list[str]:
    """The words of ``text`` in lower case and without accents, as FTS5's ``unicode61`` finds them."""
    return _spaced(text).split()


def counting(terms: Collection[str]) -> Callable[[str], dict[str, int]]:
    """What counts how often each of the stems ``terms`` is in a text, without those that are not."""
    starts = {start for term in terms for start in (term[:2], term[:2].replace("i", "y"))}  # "eyed": "ei"
    likely = re.compile(f" ((?:{'|'.join(sorted(starts))})[^ ]*)")

    def count(text: str) -> dict[str, int]:
        out: dict[str, int] = {}
        for word in likely.findall(" " + _spaced(text)):  # most words need no stemming
            if (found := stem(word)) in terms:
                out[found] = out.get(found, 0) + 1
        return out

    return count


def _spaced(text: str) -> str:
    """The words with spaces between them."""
    if text.isascii():
        return text.translate(_ASCII)
    plain = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(_WORD.findall("".join(c for c in plain if not unicodedata.combining(c))))


@lru_cache(WORDS_KEPT)
def stem(word: str) -> str:
    """The stem of one lower-case word."""
    if not 3 <= len(word) <= LONGEST or not word.isascii():
        return word
    word = _step_1(word)
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _step_4(word)
    if word.endswith("e") and (
        _measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _short(word[:-1]))
    ):
        word = word[:-1]
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _consonant(word: str, i: int) -> bool:
    letter = word[i]
    if letter == "y":
        return i == 0 or not _consonant(word, i - 1)
    return letter not in _VOWEL


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant: Porter's m."""
    kinds = [_consonant(word, i) for i in range(len(word))]
    return sum(1 for before, after in pairwise(kinds) if after and not before)


def _has_vowel(word: str) -> bool:
    return any(not _consonant(word, i) for i in range(len(word)))


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _consonant(word, len(word) - 1)


def _short(word: str) -> bool:
    """Ends in consonant, vowel, consonant, the last not w, x or y: Porter's *o."""
    n = len(word)
    return (
        n >= 3
        and _consonant(word, n - 3)
        and not _consonant(word, n - 2)
        and _consonant(word, n - 1)
        and word[-1] not in "wxy"
    )


def _step_1(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        word = word[:-1] if _measure(word[:-3]) > 0 else word
    else:
        for ending in ("ed", "ing"):
            if word.endswith(ending) and _has_vowel(word[: -len(ending)]):
                word = _mended(word[: -len(ending)])
                break
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    return word


def _mended(word: str) -> str:
    """A word that lost its "ed" or "ing"."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _doubled(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _short(word) else word


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, other in endings:
        if word.endswith(ending):
            kept = word[: -len(ending)]
            return kept + other if _measure(kept) > 0 else word
    return word


def _step_4(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            kept = word[: -len(ending)]
            if _measure(kept) > 1 and (ending != "ion" or kept.endswith(("s", "t"))):
                return kept
            return word
    return word
