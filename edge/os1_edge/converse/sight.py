"""What a reply is told of the wearer's view: what they look at, apart from what is merely in view, and what
was in view before where they ask for it. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NOW, BEFORE = "in view now", "in view before"

_BEFORE = re.compile(
    r"\b(?:did|could) (?:i|you|we) (?:just )?(?:see|saw|look at|pass|notice)\b"
    r"|\bwhat (?:have|had|'ve) (?:i|you|we) (?:just )?(?:seen|looked at|passed)\b"
    r"|\b(?:was|were) (?:that|there|those|it|in front of me|in view)\b"
    r"|\b(?:saw|seen|in view|looked at|looking at)"
    r" (?:just now|before|earlier|a (?:moment|minute|second) ago)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of the wearer's gaze and of earlier views, beside the scene's sentence."""

    looked_at: str = ""
    """What their gaze rests on, as a phrase: "a book that reads “Emma”"; the scene names it too."""
    aside: str = ""
    """What else is in view, as a sentence."""
    caption: str = ""
    """What a vision model says of the picture, or of what is looked at in it."""
    before: tuple[str, ...] = ()
    """What was in view before, a sentence each, oldest first."""


NO_SIGHT = Sight()


def asks_before(heard: str, sight: Sight) -> bool:
    """Whether ``heard`` asks for what was in view before, and something is known of that."""
    return bool(sight.before) and _BEFORE.search(heard) is not None


def view_lines(heard: str, scene: str, sight: Sight) -> list[tuple[str, str]]:
    """(when, sentence to the wearer) of what is in view, the likeliest answer first."""
    told: list[tuple[str, str]] = []
    if asks_before(heard, sight):
        told += [(BEFORE, f"You saw {_low(line)}") for line in reversed(sight.before)]
    if sight.looked_at:
        told.append((NOW, f"You are looking at {sight.looked_at}."))
        if sight.aside:
            told.append((NOW, f"You also see {_low(sight.aside)}"))
    elif scene:
        told.append((NOW, f"You see {_low(scene)}"))
    if sight.caption:
        told.append((NOW, f"The picture: {sight.caption}"))
    return told


def _low(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}"
