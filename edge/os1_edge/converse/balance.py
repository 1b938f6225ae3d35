"""How much the companion asks. Pure.

"OS-1 incessantly asks me questions, but I would prefer to be a listener" (paper 1, P15): a question at the
end of a reply hands the floor back, and one after each reply is an interrogation. The wearer sets how many of
the replies may end with one; beyond that the question is left off and the rest of the reply stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

SHARES = {"none": 0.0, "few": 0.2, "some": 0.34, "many": 1.0}
"""Of the replies that may ask: never, one in five, one in three, each."""

REMEMBERED = 20
"""Replies looked back at: the rarest setting above none is one in twenty."""

_INVITES = re.compile(
    r"\b(?:ask|quiz|test|interview|question) me\b|\bany questions\b|\bwhat (?:else )?do you (?:want"
    r"|need) to know\b"
    r"|\bguess (?:what|who|where)\b|\bwould you like to know\b",
    re.I,
)
"""The wearer asks to be asked."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whether a reply may ask something, and why."""

    yes: bool
    reason: str


def may_ask(share: float, asked: Sequence[bool], heard: str) -> Allowed:
    """Whether the next reply may end with a question.

    Args:
        share: of the replies that may, 0..1.
        asked: of the replies of this conversation, oldest first, whether each asked something.
        heard: what the wearer just said.
    """
    if _INVITES.search(heard):
        return Allowed(True, "the wearer asks to be asked")
    if share <= 0:
        return Allowed(False, "the wearer wants no questions")
    apart = min(REMEMBERED, math.ceil(1 / share)) - 1
    since = next((i for i, did in enumerate(reversed(asked)) if did), None)
    if since is None or since >= apart:
        return Allowed(True, "no question was asked for a while")
    return Allowed(False, f"only {since} of {apart} replies since the last question")


def asks(text: str) -> bool:
    """Whether ``text`` ends with a question."""
    return text.rstrip(" \"'”’)").endswith(("?", "？"))
