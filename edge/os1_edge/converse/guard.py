"""Whether a clause of a reply may be spoken. Pure.

A small model sometimes reads its own prompt aloud, speaks of the wearer and not to them, echoes
them, or runs in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from os1_edge.converse.safety import barred
from os1_edge.remember.grounding import near
from os1_edge.remember.sessions import content_words

_PROMPT = re.compile(
    r"\bthe wearer\b|\bfacts? (?:from|in view|that answers)\b|\bin view now\b|\breply kindly\b|\bas an ai\b"
    r"|<\|",
    re.I,
)

_OWN = re.compile(r"\b(?:I|I'm|me|my|mine)\b", re.I)
_MINE = re.compile(
    rf"{_OWN.pattern}|\b(?:ich|mein\w*|mir|mich|yo|mis?|tengo|estoy|soy|je|j'\w+|mon|mes|moi)\b", re.I
)
"""The same in the languages of ``texts``."""

ECHO = 3
"""This many of the wearer's words in a row, with an "I" among them, are an echo."""

_WARNING = re.compile(r"\ballerg|\bnot\b|n't\b|\bno\b|\bavoid|\bwithout\b|\bfree\b|\bcareful\b", re.I)

LOOP = 3
"""The same three words this often in one clause are a loop, and the same six in one reply."""


def fault(
    clause: str, heard: str, health: Sequence[str] = (), before: str = "", told: str = ""
) -> str | None:
    """Why ``clause``, in reply to ``heard``, must not be spoken; ``None`` when it may.

    ``health`` are the profile lines that this turn must mind, ``before`` is the reply up to ``clause``, and
    ``told`` is what the prompt tells of the wearer, with what they said before.
    """
    if _PROMPT.search(clause):
        return "it repeats its instructions"
    words = re.findall(r"[\w']+", clause.lower())
    if _loops(words, 3) or _loops([*re.findall(r"[\w']+", before.lower()), *words], 6):
        return "it runs in a loop"
    said = " ".join(re.findall(r"[\w']+", heard.lower()))
    if _MINE.search(clause) and len(words) >= ECHO and " ".join(words) in said:
        return "it says the wearer's own words as its own"
    if _repeats(clause, words, said, " ".join(re.findall(r"[\w']+", told.lower()))):
        return "it says the wearer's own words as its own"
    if _HUMAN.search(clause):
        return "it says that it is human"
    if _takes_over(clause, heard, health):
        return "it speaks of the wearer's matter as its own"
    if any(_offers(clause, line) for line in health):
        return "it offers what the wearer must not have"
    return None


_HUMAN = re.compile(
    r"\bI(?:'m| am) (?:also |only |just )?(?:a |an )?(?:human|person|man|woman|girl|boy)\b", re.I
)

_ITS_OWN = re.compile(
    r"^\W*(?:oh|yes|yeah|well|ah)?\W*I(?:'m|'ve|'ll)?\b(?!.*\b(?:sorry|glad|hope|wish|hear|understand"
    r"|remember|know"
    r"|see|believe|think|agree|recall|note|help|here|proud|happy for|will|can|suggest|recommend)\b)",
    re.I,
)
"""A companion may be sorry, glad, or of use; it has no exam, no sister and no peanuts."""


def _takes_over(clause: str, heard: str, health: Sequence[str]) -> bool:
    """Whether ``clause`` tells of itself what is the wearer's: "I am excited for my exam"."""
    if not _ITS_OWN.search(clause) or re.search(r"\byou", clause, re.I):
        return False
    theirs = [*health, *([heard] if _OWN.search(heard) else [])]
    return bool(set(content_words(clause)) & set(content_words(" ".join(theirs))))


LIFTED = 4
"""This many of the wearer's words in a row, an "I" among them, make a sentence theirs."""


def _repeats(clause: str, words: Sequence[str], said: str, told: str) -> bool:
    """Whether ``clause`` says something of the wearer's life as its own: in their words, now or before ("I am
    glad I got a promotion"), or of what is theirs ("My dog's name is Bruno")."""
    if re.search(r"\byou", clause, re.I):
        return False
    runs = (words[i : i + LIFTED] for i in range(len(words) - LIFTED + 1))
    if any(_OWN.search(" ".join(run)) and f" {' '.join(run)} " in f" {said} " for run in runs):
        return True
    if _OWN.search(clause) and len(words) >= LIFTED and " ".join(words) in told:
        return True
    owned = re.findall(r"\bmy (\w+(?:'s)?)", clause.lower())
    theirs = set(re.findall(r"\b(?:my|your) (\w+)", f"{said} {told}"))
    return any(one.removesuffix("'s") in theirs or one in theirs for one in owned)


def _loops(words: Sequence[str], length: int) -> bool:
    runs = [tuple(words[i : i + length]) for i in range(len(words) - length + 1)]
    return any(runs.count(run) >= LOOP for run in set(runs))


def _offers(clause: str, line: str) -> bool:
    """Whether ``clause`` names what ``line`` says the wearer must not have, and does not warn of it."""
    if _WARNING.search(clause):
        return False
    words = {re.sub(r"s$", "", word) for word in re.findall(r"[a-zà-ÿ]{3,}", clause.lower())}
    return bool(words & {re.sub(r"s$", "", word) for word in barred(line)})


_PAINTS = re.compile(
    r"^\W*(?:I (?:can )?(?:also )?(?:see|notice|observe)|you(?:'re| are) (?:currently )?(?:looking at|facing"
    r"|surrounded)|there (?:is|are)|in (?:front of|view)|in the (?:picture|image|photo|scene|background)"
    r"|it (?:looks|seems) like (?:you|there)|(?:the|this) (?:picture|image|photo|scene|view|light))\b",
    re.I,
)
_PICTURE = re.compile(
    r"\b(?:the|this) (?:picture|image|photo|photograph|camera|scene) (?:shows|is|has|of)\b", re.I
)

PAINTED_SHARE = 0.7
"""Share of a sentence's content words that are the scene's: such a sentence says what the wearer sees."""

_SEEING = frozenset(
    "see notice observe looking facing front view picture image scene looks seems like".split()  # noqa: SIM905
)


def paints(sentence: str, scene: str) -> bool:
    """Whether ``sentence`` only tells what is in view, which the wearer sees for themselves."""
    if _PICTURE.search(sentence):
        return True
    if not scene or not _PAINTS.search(sentence):
        return False
    words = [word for word in content_words(sentence) if word not in _SEEING]
    known = set(content_words(scene))
    return bool(words) and sum(near(w, known) for w in words) >= PAINTED_SHARE * len(words)
