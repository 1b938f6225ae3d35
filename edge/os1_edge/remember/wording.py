"""Small shapes of English that the rules of memory and conversation share. Pure."""

from __future__ import annotations

import re

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""By ``date.weekday()``."""

WEEKDAY = "|".join(WEEKDAYS)
"""Alternation."""

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip

MONTH = "|".join(MONTHS)
"""Alternation."""


def sentences(text: str) -> list[str]:
    """What stands between full stops, question and exclamation marks, each with its own."""
    return re.findall(r"[^.!?]+[.!?]*", text)
