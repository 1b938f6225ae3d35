"""Whether a turn has to do with food or drink: then health lines of the profile must be in the prompt. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORDS = re.compile(
    r"\b(eat|eating|ate|food|hungry|breakfast|lunch|dinner|supper|snacks?|meal|cook|cooking|recipe|restaurant"
    r"|café|cafe|order|menu|drink|drinks|cake|cookies?|biscuits?|chocolate|bread|pizza|salad|soup|curry|sauce"
    r"|nuts?|peanuts?|allerg\w*|ingredients?|taste|dessert|ice cream|sandwich|bar)\b",
    re.I,
)

THINGS = {"coffee cup", "mug", "bottle"}
"""Labels of the detector that stand for something to eat or drink."""


def concerns_food(heard: str, in_view: Iterable[str]) -> bool:
    """Whether the words or the things in view are about food or drink."""
    return bool(WORDS.search(heard)) or not THINGS.isdisjoint(in_view)
