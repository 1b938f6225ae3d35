"""Whether a turn is about something to eat or drink: then the profile's health lines must be in it. Pure."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"\b(?:eat|eats|eating|ate|food|hungry|breakfast|lunch|dinner|supper|snacks?|meals?|cook|cooking|recipe|menu"
    r"|restaurant|order|drinks?|drinking|cakes?|cookies?|biscuits?|chocolate|bread|pizza|salad|soup|curry|sauce"
    r"|nuts?|peanuts?|allerg\w+|ingredients?|tastes?|dessert|ice cream|sandwich(?:es)?|vegan|vegetarian)\b",
    re.I,
)


def concerns_food(heard: str) -> bool:
    """Whether ``heard`` speaks of food or drink."""
    return _WORDS.search(heard) is not None
