"""Which line of the profile cannot stand beside a new one. Pure.

An end needs a reason that can be told: the contrary of the very same thing, or another value of something
that a person has only one of (a home, a name, an age, a partner). Whatever is merely near in meaning stays: a
memory that retires facts for being similar loses more than it mends.
"""

from __future__ import annotations

import re

from os1_edge.remember.grammar import ANIMALS, COUNTRIES, OCCUPATIONS, PARTNERS, RELATIVES, THINGS
from os1_edge.remember.stem import stem
from os1_edge.remember.stem import words as words_of

_SUBJECT = "the wearer "

_CONTRARY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("does not like", ("likes",)),
    ("does not eat", ("likes", "eats")),
    ("does not drink", ("likes", "drinks")),
    ("does not live", ("lives",)),
    ("does not work", ("works",)),
    ("does not smoke", ("smokes",)),
    ("does not have", ("has",)),
    ("likes", ("does not like",)),
    ("eats", ("does not eat",)),
    ("drinks", ("does not drink",)),
    ("lives", ("does not live",)),
    ("works", ("does not work",)),
    ("smokes", ("does not smoke",)),
    ("has", ("does not have",)),
    ("does not study", ("studies",)),
    ("is not", ("is",)),
    ("is", ("is not",)),
)
"""The same thing said the other way round. The first that fits the new line counts."""

_OFTEN = re.compile(r"(?: (?:every|each|once a|twice a|three times a) .+| in the \w+| on \w+days?| at \w+)$")
_MEAT = re.compile(r"eats (?:meat|beef|pork|chicken|steak|lamb|fish|ham|bacon)\b")
_PARTNERED = re.compile(
    rf"(?:is (?:married|engaged|dating)\b(?: to)?|has an? (?:{'|'.join(PARTNERS)})\b(?: called)?)(?P<who>.*)$"
)
_UNWED = re.compile(r"is not (?P<what>married|engaged)$")
_GIVEN_UP = re.compile(r"has given up: (?P<what>.+)$")
_LEFT = re.compile(r"has left (?P<where>.+)$")
_NO_HABIT = re.compile(
    r"(?:is|has|likes|prefers|does not|lives|works|comes|was|speaks|used) |usually (?:is|likes|has) "
)
_WAY = re.compile(
    r"usually (?:walks|drives|cycles|bikes|runs|takes the \w+|goes by \w+) (?P<to>to (?:\w+ )?\w+)$"
)
_SINGLE_ROLE = re.compile(rf"is an? (?:[\w-]+ )?(?:{'|'.join(OCCUPATIONS)})$")
_PARTED = re.compile(r"(?:is no longer with (?P<who>.+)|is (?:single|divorced|widowed)|has no partner)$")
_WORKPLACE = re.compile(r"works (?P<how>as|at|for) (?!home|night|nights|weekends)")
_HOME = re.compile(r"lives in (?P<where>.+)$")
_COUNT = re.compile(rf"has (?P<n>an?|one|two|three|four|five|six) (?P<what>{RELATIVES})$")
_RELATIVE = re.compile(rf"(?P<who>has an? (?:\w+ )?(?:{RELATIVES})(?: called [\w' -]+?)?) who (?P<rest>.+)$")
_NAMED = re.compile(rf"(?P<who>has an? (?:\w+ )?(?:{RELATIVES})) called (?P<name>[\w' -]+)$")
_AWAY = re.compile(rf"has given away (?:(?P<what>{ANIMALS}|{THINGS})(?: |$))?(?P<name>.*)$")
_OWNED = re.compile(
    rf"has (?:an?|two|three|four|five|six) (?:[\w-]+ )?(?P<what>{ANIMALS}|{THINGS})"
    r"(?: (?:called|named) (?P<name>[\w' -]+?))?(?: who .*)?$"
)
_LOST = re.compile(r"has lost their (?P<what>\w+)(?: (?P<name>.+))?$")
_ONLY_ONE = (
    (re.compile(r"is called "), "a name"),
    (re.compile(r"is \d{1,3} years old$"), "an age"),
    (re.compile(r"has a birthday on "), "a birthday"),
    (re.compile(r"was born in "), "a place of birth"),
)
_FAVOURITE = re.compile(r"has .+ as favourite (?P<what>.+)$")
_PREFERS = re.compile(r"prefers (?P<a>.+?) (?:to|over) (?P<b>.+)$")
_MOVED_ON = re.compile(r"\b(?:switched|changed|transferred)\b", re.I)
_NEW_JOB = re.compile(r"\b(?:new job|changed jobs|started)\b", re.I)


def ends(new: str, old: str, words: str = "") -> str | None:
    """Why the line ``old`` is over now that ``new`` has been stated, in ``words``; ``None``: it is not.

    >>> ends("The wearer lives in Bergen.", "The wearer lives in Oslo.")
    'a wearer has one home'
    """
    a, b = _predicate(new), _predicate(old)
    if a is None or b is None or a == b:
        return None
    return _reason(a, b, words)


def _predicate(text: str) -> str | None:
    said = text.casefold().strip().removesuffix(".")
    return said.removeprefix(_SUBJECT) if said.startswith(_SUBJECT) else None


def _reason(a: str, b: str, words: str) -> str | None:
    for rule in (
        _contrary,
        _allergy,
        _one_only,
        _home,
        _job,
        _partner,
        _diet,
        _household,
        _given_away,
        _given_up,
    ):
        if (reason := rule(a, b, words)) is not None:
            return reason
    return None


def _contrary(a: str, b: str, _words: str) -> str | None:
    for verb, others in _CONTRARY:
        if not a.startswith(verb + " ") and a != verb:
            continue
        about = a.removeprefix(verb).strip()
        for other in others:
            if b != other and not b.startswith(other + " "):
                continue
            was = b.removeprefix(other).strip()
            if _OFTEN.sub("", was) == _OFTEN.sub("", about) or _OFTEN.sub("", " " + was) == about:
                return "the contrary was said"
        return None
    return None


def _allergy(a: str, b: str, _words: str) -> str | None:
    if a in ("has no allergies", "is over an allergy") and b.startswith("is allergic to "):
        return "the wearer is over it"
    if a.startswith("is allergic to ") and b == "has no allergies":
        return "the wearer has an allergy"
    return None


def ambiguous(new: str) -> bool:
    """Whether the line ``new`` does not say which of several it ends: then none of them is."""
    a = _predicate(new) or ""
    gone = _LOST.match(a) or _AWAY.match(a)
    return a == "is over an allergy" or bool(gone and not gone["name"])


def _given_away(a: str, b: str, _words: str) -> str | None:
    away, owned = _AWAY.match(a), _OWNED.match(b)
    if away is None or owned is None:
        return None
    same = away["name"] == owned["name"]
    if away["what"] is not None:  # "our dog", "our dog Rex"
        same = away["what"] == owned["what"] and (same or not away["name"] or not owned["name"])
    return "the wearer gave it away" if same else None


def _given_up(a: str, b: str, _words: str) -> str | None:
    if (way := _WAY.match(a)) and (old := _WAY.match(b)) and way["to"] == old["to"]:
        return "the wearer goes another way now"
    over = _GIVEN_UP.match(a)
    if over is None or _NO_HABIT.match(b):
        return None
    given_up, done = _deeds(over["what"]), _deeds(_OFTEN.sub("", b.removeprefix("usually ")))
    # all that was given up is in the habit, and the habit is little more than that
    if given_up and given_up <= done and len(done - given_up) <= 1:
        return "the wearer does it no longer"
    return None


def _deeds(text: str) -> frozenset[str]:
    """The stems of what is done; "go running" is running."""
    found = [stem(word) for word in words_of(text) if word not in _SMALL]
    return frozenset(found[1:] if len(found) > 1 and found[0] in _GOING else found)


_SMALL = frozenset(("a", "an", "the", "my", "their", "to", "in", "on", "at", "it", "them"))
_GOING = frozenset(("go", "goe", "do", "doe"))


def _one_only(a: str, b: str, _words: str) -> str | None:
    for pattern, what in _ONLY_ONE:
        if pattern.match(a) and pattern.match(b):
            return f"a wearer has one of it: {what}"
    new, old = _FAVOURITE.match(a), _FAVOURITE.match(b)
    if new and old and new["what"] == old["what"]:
        return "another favourite was named"
    new, old = _PREFERS.match(a), _PREFERS.match(b)
    if new and old and (new["a"], new["b"]) == (old["b"], old["a"]):
        return "the contrary was said"
    return None


def _home(a: str, b: str, words: str) -> str | None:
    if a == "has moved away":
        return "the wearer moved" if re.match(r"lives (?:in|at|near) ", b) else None
    if a == "lives alone" and b.startswith("lives with "):
        return "the wearer lives alone now"
    if a.startswith("lives with "):
        moved_in = b.startswith("lives with ") and re.search(r"\bmoved in\b", words, re.I)
        return "the wearer moved in with another" if b == "lives alone" or moved_in else None
    new, old = _HOME.match(a), _HOME.match(b)
    if not new or not old:
        return None
    here, there = new["where"], old["where"]
    if here in there or there in here or _is_wide(here) != _is_wide(there):
        return None  # a town and its country, a house and its town
    return "a wearer has one home"


def _is_wide(where: str) -> bool:
    return where in COUNTRIES or re.match(r"(?:the|an?|my|our) ", where) is not None


def _job(a: str, b: str, words: str) -> str | None:
    if a in ("has no job", "is retired", "is unemployed"):
        over = b.startswith("works ") or (b in ("is retired", "is unemployed") and a != "has no job")
        return "the wearer left that work" if over else None
    if a == "has left school":
        return "the wearer left school" if re.match(r"works as a (?:\w+ )?student$|studies ", b) else None
    if a.startswith("studies ") and b.startswith("studies ") and _MOVED_ON.search(words):
        return "the wearer studies something else now"
    if left := _LEFT.match(a):
        place = re.match(r"works (?:at|for) (?P<where>.+)$", b)
        return "the wearer left that work" if place and place["where"] == left["where"] else None
    new, old = _WORKPLACE.match(a), _WORKPLACE.match(b)
    if new and b in ("is retired", "is unemployed"):
        return "the wearer works again"
    if new and old and (new["how"] == old["how"] or _NEW_JOB.search(words)):
        return "the wearer changed work"
    return None


def _partner(a: str, b: str, _words: str) -> str | None:
    if unwed := _UNWED.match(a):
        return "they parted" if b.startswith(f"is {unwed['what']}") else None
    if parted := _PARTED.match(a):
        who = (parted.groupdict().get("who") or "").strip()
        if b.startswith("lives with ") and who and who in b:
            return "they parted"
        old = _PARTNERED.match(b)
        if old is None:
            return "they parted" if a != b and b in ("is single", "is engaged", "is married") else None
        named = old["who"].strip()
        unnamed = not named or not who or any(word in who.split() for word in PARTNERS)
        return "they parted" if unnamed or who in named or named in who else None
    if _PARTNERED.match(a):
        parted = _PARTED.match(b)
        if parted and (not parted.groupdict().get("who") or parted["who"] in a):
            return "the wearer has a partner now"
        old = _PARTNERED.match(b)
        if old and not _same_couple(a, b):
            return "another partner was named"
        if old and a.startswith("is married") and re.match(r"is (?:dating|engaged)\b", b):
            return "they married"
    return None


def _same_couple(a: str, b: str) -> bool:
    """Whether both lines may speak of one partner: the names do not differ, or one of them has none."""
    new, old = _PARTNERED.match(a), _PARTNERED.match(b)
    assert new is not None
    assert old is not None
    names = [re.sub(r"^ ?(?:to |called )?|(?: who .*)$", "", m["who"]).strip() for m in (new, old)]
    return not names[0] or not names[1] or names[0] == names[1]


def _diet(a: str, b: str, _words: str) -> str | None:
    if a == "is not vegetarian" and b in ("is vegan", "does not eat meat"):
        return "who is not vegetarian is not vegan"
    if _MEAT.match(a) and b in ("is vegan", "is vegetarian", "does not eat meat"):
        return "the wearer eats meat"
    if a in ("is vegan", "is vegetarian") and _MEAT.match(b):
        return "the wearer eats no meat"
    return None


def _household(a: str, b: str, words: str) -> str | None:
    if lost := _LOST.match(a):
        name = re.escape(lost["name"]) if lost["name"] else r"[\w' -]+?"
        named = f"has an? {re.escape(lost['what'])}(?: called {name})?"
        return "the wearer lost them" if re.fullmatch(named + r"(?: who .*)?", b) else None
    if a.startswith("does not have "):
        gone = re.sub(r"^(?:an?|any) |s$", "", a.removeprefix("does not have "))
        found = re.match(rf"has (?:an?|one|two|three|four|five|six) {re.escape(gone)}s?\b", b)
        return "the wearer no longer has one" if found else None
    new, old = _COUNT.match(a), _COUNT.match(b)
    if new and old and new["what"].rstrip("s") == old["what"].rstrip("s"):
        return "another number was named" if new["n"] != old["n"] else None
    new, old = _RELATIVE.match(a), _RELATIVE.match(b)
    if new and old and new["who"] == old["who"] and new["rest"] != old["rest"]:
        if _SINGLE_ROLE.match(new["rest"]) and _SINGLE_ROLE.match(old["rest"]):
            return "they changed work"
        return _reason(new["rest"], old["rest"], words)
    new, old = _NAMED.match(a), _NAMED.match(b)
    if new and old and new["who"] == old["who"] and re.match(r"no\b", words, re.I):
        return "another name was meant"
    return None
