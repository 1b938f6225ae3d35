"""What kind of thing the wearer said, and what evidence it asks for. Pure.

A small model answers from whatever stands nearest, so a question about what is in view is given the view
alone, and every other question its memories last.
"""

from __future__ import annotations

import re
from typing import Literal

from os1_edge.remember.sessions import content_words

Kind = Literal["statement", "question", "view question"]

_STARTS = re.compile(
    r"(?:(?:and|but|so|ok|okay|hey|please|now)[, ]+)*"
    r"(?:(?:can you |could you )?(?:tell|remind) me\b(?! to\b)"
    r"|(?:what|when|where|who|whom|whose|which|why|how)(?! (?:a|an)\b)\b"
    r"|(?:is|are|am|was|were|do|does|did|can|could|will|would|should|has|have|may|might)(?:n't)? "
    r"(?:i|you|we|he|she|it|they|this|that|there|the|my|your|our|any|some)\b)",
    re.I,
)
"""How a question begins; recognition may leave out its mark. "What a day" and "Have a nice day" are none."""

_VIEW = re.compile(
    r"\bin front of\b|\blook(?:ing)? at\b|\b(?:do|can|could|did) (?:you|i) see\b|\bin (?:my |the )?view\b"
    r"|\bover there\b|\bon (?:the|my|this|that) (?:table|desk|wall|floor|shelf)\b"
    r"|\b(?:is|are|what's|who's) (?:this|that|these|those|here|there|it)\b"
    r"(?! (?:morning|week|day|time|evening))",
    re.I,
)


def kind_of(heard: str) -> Kind:
    """Whether ``heard`` states something, asks something, or asks about what is in view now."""
    last = re.split(r"(?<=[.!?])\s+", heard.strip())[-1]
    if last.endswith("!") or not (last.endswith("?") or _STARTS.match(last)):
        return "statement"
    return "view question" if _VIEW.search(last) else "question"


_SEEKS = re.compile(
    r"\b(?:should|could|can|may|shall|might) (?:i|we)\b"
    r"|\bwhat (?:\w+ )?(?:could|would|might|can) (?:help|be good)\b"
    r"|\b(?:recommend|suggest|advise|advice|any ideas?)\b|\bcheer me up\b"
    r"|\b(?:no idea|(?:don't|do not) know|not sure) (?:what|which|where|how|whom?) (?:to|i should|i could)\b"
    r"|\bwhat (?:to|do i) (?:do|eat|drink|cook|order|wear|buy|play|read|watch)\b"
    r"|\bi (?:need|want|would like|'d like|could use) (?:some|a|an|to)\w*\b"
    r"|\bi(?:'m| am) (?:so |very |really )?(?:hungry|thirsty|bored|starving|peckish)\b",
    re.I,
)
"""The wearer wants to be told what to do, or says what they lack."""

_RECALLS = re.compile(
    r"\b(?:what|when|where|who|which|how)\b.*\b(?:did|was|were|had) (?:i|we)\b|\bremember\b", re.I
)

_CHEERS = re.compile(
    r"\bcheer\b|\bbored\b|\bfree (?:time|evening|hour)\b|\brelax\w*\b|\bfun\b|\btreat\b|\bcomfort\b",
    re.I,
)

_BAD = re.compile(
    r"\b(?:terrible|awful|sad|down|lonely|upset|angry|frustrat\w+|stress\w*|exhausted|tired|sick|ill|hurts?"
    r"|pain|cry\w*|cried|bad(?:ly)?|worst|horrible|miserable|depressed|anxious|nervous|afraid|scared"
    r"|worr(?:y|ied)|broken|broke|lost|fail\w*|shouted|died|unfair|annoy\w+|hate|bored|disappoint\w+"
    r"|heartbroken|overwhelmed|late|missed|worse|(?:can't|cannot|could not|couldn't) sleep"
    r"|not (?:\w+ )?(?:good|clever|smart|brave|strong|creative) enough)\b",
    re.I,
)
_NOT_BAD = re.compile(r"(?:\bnot|n't|\bno longer|\bnever) (?:\w+ )?$", re.I)

_GREETS = re.compile(
    r"^\W*(?:(?:good (?:morning|afternoon|evening)|hello|hi|hey)\b[ ,.!]*(?:os-?1|there|again)?[ ,.!]*)+$",
    re.I,
)

_LEAVES = re.compile(
    r"\b(?:i'm|i am|we're|we are|i'll|i will|let's) (?:now |just )?(?:go|going|heading|leave|leaving|off)\b"
    r"(?! to (?:be|have|say|tell|ask|eat|cook|bake|sleep|bed|work on|watch|read))",
    re.I,
)

_OF_MEMORY = re.compile(r"\b(?:my|did|was|were|had|said|told)\b", re.I)


def seeks(heard: str) -> bool:
    """Whether the wearer seeks advice: what to do, choose, eat; or says what they lack."""
    return _SEEKS.search(heard) is not None and not _RECALLS.search(heard)


def cheers(heard: str) -> bool:
    """Whether what the wearer likes would answer."""
    return _CHEERS.search(heard) is not None or feels_bad(heard)


def feels_bad(heard: str) -> bool:
    """Whether what the wearer tells is something bad."""
    return any(not _NOT_BAD.search(heard[: found.start()]) for found in _BAD.finditer(heard))


def greets(heard: str) -> bool:
    """Whether ``heard`` is a greeting and nothing else."""
    return _GREETS.match(heard) is not None


def leaves(heard: str) -> bool:
    """Whether the wearer is about to go out."""
    return _LEAVES.search(heard) is not None


def in_view(heard: str, scene: str) -> bool:
    """Whether a question names something that is in view: "what colour is the bus?" beside a bus."""
    asked = {word.rstrip("s") for word in content_words(heard)}
    seen = {word.rstrip("s") for word in content_words(scene)}
    return bool(asked & seen) and not _OF_MEMORY.search(heard)
