"""What kind of thing the wearer said, and what evidence it asks for. Pure.

A small model answers from whatever stands nearest, so a question about what is in view is given the view
alone, and every other question its memories last.
"""

from __future__ import annotations

import re
from typing import Literal

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
