"""What the wearer says about themselves, as profile entries: plain rules, no language model. Pure.

Only the wearer's own statements in the first person count: no question, nothing recalled, nothing that
OS-1 said. The distillation by a language model (paper 3.2.4) comes on top of this floor.
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


_RULES: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(rf"\b{pattern}(?=[.,;!]|$)", re.I), kind, text)
    for pattern, kind, text in (
        (
            r"i(?:'m| am)(?: very| badly| highly)? allergic to (?P<x>[^.,;!?]+)",
            "health",
            "is allergic to {x}",
        ),
        (r"i(?:'m| am) (?P<x>vegan|vegetarian|diabetic|coeliac|celiac|pregnant)", "health", "is {x}"),
        (r"i (?:really )?(?:like|love|enjoy|prefer) (?P<x>[^.,;!?]+)", "preference", "likes {x}"),
        (
            r"i (?:really )?(?:do not|don't|never) (?:like|eat|drink) (?P<x>[^.,;!?]+)",
            "preference",
            "does not like {x}",
        ),
        (
            r"i (?:really )?(?:hate|dislike|can't stand|cannot stand) (?P<x>[^.,;!?]+)",
            "preference",
            "does not like {x}",
        ),
        (r"my name is (?P<x>[\w' -]+)", "social background", "is called {x}"),
        (r"i work (?P<x>(?:as|at|for) [^.,;!?]+)", "social background", "works {x}"),
        (r"i live (?P<x>(?:in|at|near|with) [^.,;!?]+)", "social background", "lives {x}"),
    )
)


def propose(utterance: str) -> list[ProfileProposal]:
    """The profile lines that ``utterance`` states."""
    out: list[ProfileProposal] = []
    for sentence in re.findall(r"[^.!?]+[.!?]*", utterance):
        if sentence.rstrip().endswith("?"):
            continue
        for pattern, kind, text in _RULES:
            if (found := pattern.search(sentence.strip())) is not None:
                out.append(ProfileProposal(kind, "The wearer " + text.format(x=found["x"].strip()) + "."))
    return out


def reinforced(confidence: float) -> float:
    """Confidence after the same thing was said once more."""
    return round(confidence + (1.0 - confidence) / 2, 3)
