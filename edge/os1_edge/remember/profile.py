"""What the wearer says about themselves, as profile entries: plain rules, no language model. Pure.

Only what the wearer states of themselves counts, in the first person and the present: no question, nothing
recalled, nothing that OS-1 said, nothing that somebody else said, thought or made up. A statement stands at
the start of a clause, after no more than a lead-in ("well", "please remember that"), in a sentence without a
hedge; a fact missed can be said again, a fact invented makes every other one doubtful. The distillation by a
language model (paper 3.2.4) comes on top of this floor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SAME = 0.9
"""Cosine similarity above which a new entry is the old one said again."""

STATED = 0.8
"""Confidence of something that the wearer said once."""


@dataclass(frozen=True, slots=True)
class ProfileProposal:
    """A line that may enter the profile."""

    kind: str
    text: str


_HEDGE = re.compile(
    r"\b(?:if|unless|whether|would|could|might|maybe|perhaps|used to"
    r"|says?|said|saying|tells|told|thinks?|thought|believes?|claims?|claimed|hears?|heard|according"
    r"|suppos(?:e|ing)|assum(?:e|ing)|imagin(?:e|ing)|pretend|wish|hope|guess|doubt|dream(?:t|ed)?|wonder"
    r"|joke|joking|kidding|not (?:sure|true)|untrue|lie|lying)\b",
    re.I,
)
"""Reported, conditional, imagined, denied or past: a sentence with one of these states nothing."""

_CLAUSE_END = re.compile(r"[,;:]|\b(?:and|but)\b(?= (?:i|i'm|my name)\b)", re.I)

_LEAD_IN = re.compile(
    r"(?:(?:well|so|and|but|also|yes|yeah|no|oh|okay|ok|hi|hey|hello|actually|honestly|please) )*"
    r"(?:(?:(?:remember|note|know|keep in mind|do not forget|don't forget)"
    r"|you (?:should |must )?know|i (?:have|want|need) to tell you) (?:that )?)?",
    re.I,
)

_NO_FACT = re.compile(r"(?:not|it|this|that|these|those|you|your|him|his|he|her|she|them|their|they)\b", re.I)
"""What the object of a fact cannot begin with: without the talk around it, nobody knows what it means."""

_TAIL = re.compile(r"(?: (?:any ?more|at all|very much|so much|a lot|too|as well|these days|now))+$", re.I)

_BE = r"i(?:'m| am)"
_DENY = r"i (?:really )?(?:do not|don't|never|no longer)"

_RULES: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern, re.I), kind, text)
    for pattern, kind, text in (
        (rf"{_BE}(?: very| badly| highly)? allergic to (?P<x>.+)", "health", "is allergic to {x}"),
        (rf"{_BE} (?:not|no longer) allergic to (?P<x>.+)", "health", "is not allergic to {x}"),
        (rf"{_BE} (?P<x>vegan|vegetarian|diabetic|coeliac|celiac|pregnant)", "health", "is {x}"),
        (
            rf"{_BE} (?:not|no longer) (?P<x>vegan|vegetarian|diabetic|coeliac|celiac|pregnant)",
            "health",
            "is not {x}",
        ),
        (r"i (?:really )?(?:like|love|enjoy|prefer) (?P<x>.+)", "preference", "likes {x}"),
        (rf"{_DENY} (?:like|love|enjoy) (?P<x>.+)", "preference", "does not like {x}"),
        (rf"{_DENY} eat (?P<x>.+)", "preference", "does not eat {x}"),
        (rf"{_DENY} drink (?P<x>.+)", "preference", "does not drink {x}"),
        (
            r"i (?:really )?(?:hate|dislike|can't stand|cannot stand) (?P<x>.+)",
            "preference",
            "does not like {x}",
        ),
        (r"my name is (?P<x>[\w' -]+)", "social background", "is called {x}"),
        (r"i work (?P<x>(?:as|at|for) .+)", "social background", "works {x}"),
        (r"i live (?P<x>(?:in|at|near|with) .+)", "social background", "lives {x}"),
    )
)

_ENDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("does not like", ("likes",)),
    ("does not eat", ("likes", "eats")),
    ("does not drink", ("likes", "drinks")),
    ("likes", ("does not like",)),
    ("eats", ("does not eat",)),
    ("drinks", ("does not drink",)),
    ("is not", ("is",)),
    ("is", ("is not",)),
)
"""What a line ends: the same thing said the other way round. The first that fits counts."""


def propose(utterance: str) -> list[ProfileProposal]:
    """The profile lines that ``utterance`` states."""
    out: list[ProfileProposal] = []
    for sentence in re.findall(r"[^.!?]+[.!?]*", utterance.replace("’", "'")):
        if sentence.rstrip().endswith("?") or _HEDGE.search(sentence):
            continue
        for clause in _CLAUSE_END.split(sentence):
            out += _stated(" ".join(clause.strip(" .!\n\t").split()))
    return out


def _stated(clause: str) -> list[ProfileProposal]:
    statement = _TAIL.sub("", _LEAD_IN.sub("", clause, count=1))
    for pattern, kind, text in _RULES:
        if (found := pattern.fullmatch(statement)) and not _NO_FACT.match(found["x"]):
            return [ProfileProposal(kind, f"The wearer {text.format(x=found['x'].strip())}.")]
    return []


def ended_by(text: str) -> frozenset[str]:
    """The lines, in lower case, that cannot stand beside the profile line ``text``: "likes tea" ends "does
    not like tea", and the other way round. Of the very same thing only: "likes green tea" ends neither."""
    said = text.casefold()
    for verb, others in _ENDS:
        start = f"the wearer {verb} "
        if said.startswith(start):
            return frozenset(f"the wearer {other} {said.removeprefix(start)}" for other in others)
    return frozenset()


def said_again(new: str, old: str, similarity: float) -> bool:
    """Whether the line ``new`` says what ``old`` said. Embeddings hardly see a "not": 0.93 between "is
    allergic to peanuts" and "is not allergic to peanuts"."""
    return similarity >= SAME and (" not " in new) == (" not " in old)


def reinforced(confidence: float) -> float:
    """Confidence after the same thing was said once more."""
    return round(confidence + (1.0 - confidence) / 2, 3)
