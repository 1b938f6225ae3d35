"""What a reply should rest on, chosen by rules: which memories still hold, what in view may be offered, which
lines of the profile have to do with it. Pure.

These are the retrieval agent's proposer and reporter (paper 3.2.5) where no language model may be asked.
They take microseconds, so every reply has their work. A small model takes whatever stands nearest for the
answer; so it is not told what is over, nor shown what the wearer must not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from os1_edge.converse.safety import barred
from os1_edge.remember.profile import propose
from os1_edge.remember.recall import Hit
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.sessions import content_words
from os1_edge.remember.stem import stem
from os1_edge.remember.wording import WEEKDAYS

PAST = re.compile(
    r"\b(?:used to|before|formerly|previous(?:ly)?|did i|was i|were we|what was|where was|when was"
    r"|in the past|originally|at first|back then|ago|yesterday|last (?:week|month|year))\b",
    re.I,
)
"""A question with one of these may mean what is over."""

TIED = 0.8
"""Memories that are this near to the best may all be answers; of those the newest counts."""

TELLING = 0.4
"""Score above which a memory has to do with something that was said, not asked: below it stand memories that
share a mood with it ("I am bored", "the meeting was boring")."""

SUGGESTED = 0.4
"""The same for what was looked for by a query of the proposer's."""

_SUGAR = "cake cakes chocolate candy sweets cookie biscuit donut sugar soda lemonade dessert pie"

_NOT_LIKED = re.compile(
    r"\b(?:does not|doesn't|do not|don't) (?:like|love|enjoy)\s+(?P<what>[^.;]+)"
    r"|\b(?:is|are) (?:afraid|scared|terrified) of (?P<feared>[^.;]+)",
    re.I,
)
_LIKED = re.compile(
    r"\b(?:likes?|loves?|enjoys?) (?P<what>[^.;]+)|\bhas (?P<favourite>[^.;]+?) as favou?rite (?P<of>[^.;]+)",
    re.I,
)
_COMPARED = re.compile(
    r"\s+(?:(?:much|far|a lot|a bit|way) )?(?:(?:more|better|rather) than|as much as|over|instead of)\b", re.I
)
"""Behind it stands what is liked less."""
_NOT_LIKES = re.compile(r"\b(?:not|n't|never) (?:like|love|enjoy)", re.I)


LINES_KEPT = 1024
"""Lines of the profile whose meaning is kept: more than a wearer has, a few hundred kB."""


@lru_cache(LINES_KEPT)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text))


def standing(hits: Sequence[Hit], history: Iterable[ProfileEntry], heard: str) -> list[Hit]:
    """``hits`` that still hold, in the order in which a reply should trust them: what the profile knows to be
    over is left out, and of memories that answer about as well the newest comes first.

    Args:
        hits: what was recalled, the best first.
        history: the profile with all that is over.
        heard: what was said; a question about the past leaves everything in.
    """
    if PAST.search(heard):
        return list(hits)
    entries = list(history)
    over = {_said(e.text) for e in entries if e.valid_to is not None or e.superseded_by is not None}
    over -= {_said(e.text) for e in entries if e.valid_to is None and e.superseded_by is None}
    kept = [hit for hit in hits if not (hit.kind in ("turn", "profile") and _states(hit.text) & over)]
    if _STATE.search(heard):
        kept = _newest_state(kept, heard)
    best = max((hit.score for hit in kept), default=0.0)
    tied = [hit for hit in kept if hit.score >= TIED * best]
    return [*sorted(tied, key=lambda h: h.time, reverse=True), *(h for h in kept if h not in tied)]


def _said(line: str) -> str:
    return " ".join(line.casefold().split())


def _states(text: str) -> frozenset[str]:
    """The profile lines that ``text`` states, or is."""
    return frozenset(_said(s.text) for s in propose(text)) | {_said(text)}


_STATE = re.compile(r"\b(?:where|when)(?:'s| is| are| do| does)\b", re.I)
"""Asks how something stands now: only the newest that was said of it can be right."""

MATTER = 2
"""Words of a question that a memory must hold to be of its very matter: "driving test", "car key"."""


def _newest_state(hits: Sequence[Hit], heard: str) -> list[Hit]:
    """Without those of the question's very matter that were said on an earlier day than the newest."""
    asked = _stems(heard)
    matter = [hit for hit in hits if len(_stems(hit.text) & asked) >= MATTER]
    newest = max((hit.time.date() for hit in matter), default=None)
    return [hit for hit in hits if hit not in matter or hit.time.date() == newest]


@dataclass(frozen=True, slots=True)
class Options:
    """What is in view, in view of what the wearer likes."""

    fit: tuple[str, ...]
    """Things that nothing known speaks against; where some are the wearer's favourites, those alone."""
    unfit: tuple[str, ...]
    lines: tuple[str, ...]
    """The profile's lines that decided."""


def things(scene: str) -> tuple[str, ...]:
    """The things that a scene's sentence names: "A cup and two books on a desk." -> ("A cup", "two books")"""
    bare = scene.strip().rstrip(".")
    bare = re.sub(r"\b(?:on|in|at|by|near) (?:a|an|the) [a-z ]+$", "", bare, flags=re.I).strip() or bare
    bare = re.sub(r"^(?:a|the) (?:menu|bowl|plate|shelf|basket|table) with ", "", bare, flags=re.I)
    return tuple(part.strip() for part in re.split(r",| and ", bare) if part.strip())


_ORDINARY = re.compile(
    r"\b(?:persons?|people|man|men|woman|women|faces?|tables?|desks?|chairs?|walls?|floors?|doors?|windows?|rooms?"
    r"|laptops?|computers?|monitors?|screens?|keyboards?|mouse|mice|phones?|footwear|high heels|boxe?s?"
    r"|nothing|light|lamp)\b",
    re.I,
)
_OUTSIDE = re.compile(
    r"\b(?:umbrellas?|coats?|jackets?|hats?|gloves|scar(?:f|ves)|keys?|sunglasses|wallet|bag|backpack|helmet)\b",
    re.I,
)


def worth_a_word(thing: str) -> bool:
    """Whether a friend would remark on a thing in view; nobody does on a chair."""
    return _ORDINARY.search(thing) is None or for_outside(thing)


def for_outside(thing: str) -> bool:
    """Whether who goes out might want to take it along."""
    return _OUTSIDE.search(thing) is not None


@lru_cache(LINES_KEPT)
def against(line: str) -> frozenset[str]:
    """Stems of what the profile's ``line`` speaks against: what the wearer must not have, dislikes, fears."""
    words = set(barred(line))
    if re.search(r"\bdiabet", line, re.I) and " not " not in line:
        words |= set(_SUGAR.split())
    for found in _NOT_LIKED.finditer(line):
        words |= set(content_words(found["what"] or found["feared"]))
    return frozenset(stem(word) for word in words)


def named(line: str, words: str) -> bool:
    """Whether ``words`` name something that the profile's ``line`` speaks against."""
    return bool(against(line) & _stems(words))


@lru_cache(LINES_KEPT)
def liked(line: str) -> str:
    """What the profile's ``line`` says that the wearer likes; empty: it does not speak of that."""
    found = None if _NOT_LIKES.search(line) else _LIKED.search(line)
    what = (found["what"] or found["favourite"] or "") if found is not None else ""
    return _COMPARED.split(what)[0]


def options(scene: str, profile: Iterable[str]) -> Options:
    """What of ``scene`` may be offered to a wearer with this ``profile``."""
    seen = things(scene)
    lines: list[str] = []
    unfit: set[str] = set()
    favourites: set[str] = set()
    for line in profile:
        no, yes = against(line), _stems(liked(line))
        hit = {thing for thing in seen if _stems(thing) & no}
        good = {thing for thing in seen if yes and _stems(thing) & yes}
        unfit |= hit
        favourites |= good
        if hit or good:
            lines.append(line)
    fit = tuple(thing for thing in seen if thing not in unfit)
    best = tuple(thing for thing in fit if thing in favourites)
    return Options(best or fit, tuple(t for t in seen if t in unfit), tuple(lines))


def likings(profile: Iterable[ProfileEntry]) -> list[str]:
    """What the wearer likes, favourites first, then the surest."""
    found = [(e, what) for e in profile if (what := liked(e.text))]
    found.sort(key=lambda pair: ("favourite" not in pair[0].text, -pair[0].confidence, -pair[0].id))
    return [what for _, what in found]


_TOPICS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), query)
    for pattern, query in (
        (
            r"\bnot (?:\w+ )?(?:creative|good|clever|smart|brave|strong) enough\b|\bfailure\b"
            r"|\bcan't do (?:it|this)\b|\buseless\b|\bworthless\b|\bdoubt\b",
            "I won a prize for something that I made.",
        ),
        (r"\b(?:holidays?|vacation|trip|journey|travel\w*)\b", "I want to go travelling this summer."),
    )
)
"""What a friend would think of: (what was said, what to look for)."""

MOST_QUERIES = 2
"""Besides what was said itself; each costs a search."""


def queries(heard: str, now: datetime) -> tuple[str, ...]:
    """What to look for in the memory besides ``heard`` itself: the proposer's work by rules."""
    found = []
    if re.search(r"\btomorrow\b", heard, re.I):
        found.append(f"My {_day(now + timedelta(days=1))} appointment.")
    elif re.search(r"\b(?:today|tonight)\b", heard, re.I):
        found.append(f"My {_day(now)} appointment.")
    found += [query for pattern, query in _TOPICS if pattern.search(heard)]
    return tuple(found[:MOST_QUERIES])


def _day(at: datetime) -> str:
    return WEEKDAYS[at.weekday()].capitalize()
