"""The wearer's words turned to the wearer: "I like my tea" becomes "You like your tea". Pure.

A small model repeats what it reads. Given the wearer's own words it answers "I like my tea"; given them
turned round it says the right thing.
"""

from __future__ import annotations

import re

from os1_edge.remember.grammar import base_form

LONGEST = 300
"""Characters of a fact that a prompt takes: two or three sentences."""

_PREFACE = re.compile(
    r"^(?:(?:please|hey|good (?:morning|afternoon|evening|night)|hello|hi)\b[,.! ]*"
    r"|(?:oh|so|well|ok|okay)[,.!] *)+",
    re.I,
)
_REMEMBER = re.compile(r"^(?:remember|note|keep in mind|do not forget|don't forget)(?: that)? ", re.I)

_TURNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), replacement)
    for pattern, replacement in (
        (r"\bI am\b", "you are"),
        (r"\bI'm\b", "you're"),
        (r"\bI was\b", "you were"),
        (r"\bam I\b", "are you"),
        (r"\bwas I\b", "were you"),
        (r"\b(?:I|me)\b", "you"),
        (r"\bmy\b", "your"),
        (r"\bmine\b", "yours"),
        (r"\bmyself\b", "yourself"),
    )
)


_OF_THE_WEARER = re.compile(
    r"^the wearer (?P<how>usually |often )?(?P<verb>[a-z]+s)\b(?P<rest>.*)$", re.I | re.S
)
_THEIR = re.compile(r"\btheir(s?)\b")


def _to_the_wearer(line: str) -> str:
    """A line of the profile, turned to the wearer: "The wearer walks their dog" -> "you walk your dog"."""
    found = _OF_THE_WEARER.match(line)
    if found is None:
        return line
    verb = {"is": "are"}.get(found["verb"].lower()) or base_form(found["verb"].lower())
    rest = _THEIR.sub(r"your\1", found["rest"])
    return f"you {found['how'] or ''}{verb}{rest}"


def addressed(text: str) -> str:
    """``text``, said by or about the wearer, as said to the wearer."""
    bare = _REMEMBER.sub("", _PREFACE.sub("", text.strip())) or text.strip()
    bare = _to_the_wearer(bare)
    for pattern, replacement in _TURNS:
        bare = pattern.sub(replacement, bare)
    return bare[:1].upper() + bare[1:LONGEST]
