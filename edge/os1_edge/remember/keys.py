"""Index keys: the phrases by which a memory is found, in three dimensions (paper 3.2.3). Pure.

Temporal, spatial and semantic, "following the format humans typically use": "I plan to have a picnic in
the park this weekend" gives "this weekend", "in the park" and "have a picnic". A language model may give
better ones; what it gives must be in the memory's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from os1_edge.events import UNKNOWN_LOCATION
from os1_edge.remember.grounding import near
from os1_edge.remember.rows import Dimension
from os1_edge.remember.sessions import content_words
from os1_edge.remember.wording import MONTH, WEEKDAY

MOST = 4
"""Keys of one dimension: each is a vector of its own to scan, and more than these say the same again."""

LONGEST = 60
"""Characters of a key."""

_HOUR = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight"
_TEMPORAL = re.compile(
    rf"\b(?:(?:on |this |next |last |every )?(?:{WEEKDAY})s?(?: (?:morning|afternoon|evening|night))?"
    r"|(?:this|next|last|every|the) (?:morning|afternoon|evening|week|weekend|month|year|summer|winter"
    rf"|spring|autumn)|tomorrow(?: \w+ing)?|yesterday|tonight|(?:in|since|until) (?:{MONTH})"
    rf"|(?:on )?(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{MONTH})"
    rf"|(?:{MONTH}) \d{{1,2}}(?:st|nd|rd|th)?|at (?:\d{{1,2}}(?::\d\d)?|{_HOUR})(?: o'clock| ?[ap]\.?m\b)?"
    r"|(?:in|\w+) (?:days|weeks|months|years)(?: ago)?"
    r"|(?:before|after) (?:breakfast|lunch|dinner|work|school))\b",
    re.I,
)
_SPATIAL = re.compile(
    r"\b(?:in|at|on|near|to|from|behind|under|outside|inside) "
    r"(?:(?:the|my|our|a|an|his|her|their) (?:[a-z'-]+ ){0,1}[a-z'-]{3,}"
    r"|(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?)",
    re.I,
)
_NO_PLACE = re.compile(
    rf"\b(?:morning|afternoon|evening|night|day|week|weekend|month|year|time|moment|end|way|{WEEKDAY}|{MONTH}"
    r"|future|past|first|last|next|same|other|phone|hurry|course)\b",
    re.I,
)
_PREPOSITION = {"street": "on", "bus": "on", "train": "on"} | dict.fromkeys(
    ("office", "cafe", "restaurant", "bar", "gym", "beach", "station", "shop", "supermarket", "desk"), "at"
)
_CLAUSE = re.compile(r"[.,;:!?]|\b(?:and|but|because|so|that|which|who|when|while|if|than)\b", re.I)
_SUBJECT = re.compile(
    r"^\s*(?:(?:the wearer|i|we|you|he|she|they|it)(?: said:?|'\w+)? )?(?:(?:am|is|are|was|were|will"
    r"|do|does|did|to|going|want|wants|plan|plans|need|needs|please|also|just|really|would|like) )*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Keys:
    """The index keys of one memory."""

    temporal: tuple[str, ...] = ()
    spatial: tuple[str, ...] = ()
    semantic: tuple[str, ...] = ()

    def all(self) -> list[tuple[Dimension, str]]:
        """Each with its dimension."""
        pairs: list[tuple[Dimension, str]] = [("temporal", key) for key in self.temporal]
        pairs += [("spatial", key) for key in self.spatial]
        return pairs + [("semantic", key) for key in self.semantic]


def in_place(location: str) -> str:
    """ "in the kitchen", "at the gym"."""
    if location in ("home", "work"):
        return f"at {location}"
    return f"{_PREPOSITION.get(location, 'in')} the {location}"


def day_part(time: datetime) -> str:
    """How people call the hour."""
    for until, name in ((5, "night"), (12, "morning"), (14, "noon"), (18, "afternoon"), (22, "evening")):
        if time.hour < until:
            return name
    return "night"


def when(time: datetime) -> tuple[str, ...]:
    """ "Monday morning", "2 March 2026": how people name a time, by the day and by the date."""
    return (f"{time:%A} {day_part(time)}", f"{time.day} {time:%B} {time.year}")


def keys_by_rule(text: str, start: datetime, location: str = "", activity: str = "") -> Keys:
    """The keys of a memory without a language model.

    Args:
        text: the memory in words.
        start: when it began.
        location: where; empty or unknown: not known.
        activity: what the wearer did.
    """
    known_place = location not in ("", UNKNOWN_LOCATION)
    temporal = [*when(start), *_found(_TEMPORAL, text)]
    places = [p for p in _found(_SPATIAL, _TEMPORAL.sub(" ; ", text)) if not _NO_PLACE.search(p)]
    spatial = [*([in_place(location)] if known_place else []), *places]
    semantic = [activity] if activity not in ("", "unknown") else []
    phrases = [phrase for phrase in _phrases(text) if phrase.casefold() != location.casefold()]
    return Keys(_bounded(temporal), _bounded(spatial), _bounded([*semantic, *phrases]))


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [" ".join(match.group().split()) for match in pattern.finditer(text)]


def _phrases(text: str) -> list[str]:
    """What happens, clause by clause, without when and where; the richest clauses first."""
    bare = re.sub(r"\b\d\d:\d\d-\d\d:\d\d\b|\byou said\b|\bthe wearer said\b|[\"“”]", ". ", text, flags=re.I)
    found = []
    for clause in _CLAUSE.split(bare):
        rest = _SPATIAL.sub(
            lambda m: m.group() if _NO_PLACE.search(m.group()) else "", _TEMPORAL.sub("", clause)
        )
        phrase = " ".join(_SUBJECT.sub("", " ".join(rest.split())).split()[:8])
        if content_words(phrase):
            found.append(phrase)
    if not found and (words := [word for word in content_words(bare) if word != "wearer"]):
        found = [" ".join(words[:6])]
    return sorted(found, key=lambda p: -len(content_words(p)))


def _bounded(keys: Iterable[str]) -> tuple[str, ...]:
    """The first few, none twice, none longer than a key."""
    once: dict[str, str] = {}
    for key in keys:
        if (short := key.strip(" '-")[:LONGEST].strip()) and len(once) < MOST:
            once.setdefault(short.casefold(), short)
    return tuple(once.values())


def grounded(keys: Keys, text: str, start: datetime, location: str) -> Keys:
    """Those of a model's keys whose words are the memory's own, its place's, or how its time is called; a
    time or a place must look like one."""
    known = set(
        content_words(f"{text} {location} {' '.join(when(start))} weekend weekday day week early late")
    )

    def kept(found: Sequence[str]) -> list[str]:
        return [
            key for key in found if (words := content_words(key)) and all(near(word, known) for word in words)
        ]

    return Keys(
        _bounded(key for key in kept(keys.temporal) if _TEMPORAL.search(key) or _NO_PLACE.search(key)),
        _bounded(
            key
            for key in kept(keys.spatial)
            if not _NO_PLACE.search(key) and (_SPATIAL.search(key) or (location and location in key))
        ),
        _bounded(kept(keys.semantic)),
    )


def merged(first: Keys, second: Keys) -> Keys:
    """Both, the first's first, within the bounds."""
    return Keys(
        _bounded((*first.temporal, *second.temporal)),
        _bounded((*first.spatial, *second.spatial)),
        _bounded((*first.semantic, *second.semantic)),
    )
