"""Whether a clause of a reply may be spoken. Pure.

A small model sometimes reads its own prompt aloud, speaks of the wearer and not to them, echoes
them, or runs in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PROMPT = re.compile(
    r"\bthe wearer\b|\bfacts? (?:from|in view|that answers)\b|\bin view now\b|\breply kindly\b|\bas an ai\b"
    r"|<\|",
    re.I,
)

_OWN = re.compile(r"\b(?:I|I'm|me|my|mine)\b", re.I)

ECHO = 3
"""This many of the wearer's words in a row, with an "I" among them, are an echo."""

_WARNING = re.compile(r"\ballerg|\bnot\b|n't\b|\bno\b|\bavoid|\bwithout\b|\bfree\b|\bcareful\b", re.I)

LOOP = 3
"""The same three words this often in one clause are a loop, and the same six in one reply."""


def fault(clause: str, heard: str, health: Sequence[str] = (), before: str = "") -> str | None:
    """Why ``clause``, in reply to ``heard``, must not be spoken; ``None`` when it may.

    ``health`` are the profile lines that this turn must mind, ``before`` is the reply up to ``clause``.
    """
    if _PROMPT.search(clause):
        return "it repeats its instructions"
    words = re.findall(r"[\w']+", clause.lower())
    if _loops(words, 3) or _loops([*re.findall(r"[\w']+", before.lower()), *words], 6):
        return "it runs in a loop"
    said = " ".join(re.findall(r"[\w']+", heard.lower()))
    if _OWN.search(clause) and len(words) >= ECHO and " ".join(words) in said:
        return "it says the wearer's own words as its own"
    if any(_offers(clause, line) for line in health):
        return "it offers what the wearer must not have"
    return None


def _loops(words: Sequence[str], length: int) -> bool:
    runs = [tuple(words[i : i + length]) for i in range(len(words) - length + 1)]
    return any(runs.count(run) >= LOOP for run in set(runs))


def _offers(clause: str, line: str) -> bool:
    """Whether ``clause`` names what ``line`` says the wearer is allergic to, and does not warn of it."""
    found = re.search(r"\ballergic to (?P<what>[^.]+)", line, re.I)
    if found is None or _WARNING.search(clause):
        return False
    named = (word.rstrip("s") for word in re.findall(r"[a-z]{3,}", found["what"].lower()) if word != "and")
    return any(re.search(rf"\b{re.escape(word)}s?\b", clause, re.I) for word in named)
