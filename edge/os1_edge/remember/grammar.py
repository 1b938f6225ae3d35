"""The few word lists that the rules of `statements` and `contradict` share. Pure."""

from __future__ import annotations

import re

RELATIVES = (
    "mother|mum|mom|father|dad|parents|sisters?|brothers?|sons?|daughters?|child|children|kids?|baby|twins"
    "|wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|grand(?:mother|father|ma|pa|son|daughter)|aunt"
    "|uncle|cousins?|niece|nephew|friend|boss|colleague|neighbou?r|room ?mate|flat ?mate|doctor|dentist"
    "|dogs?|cats?|puppy|kitten|horse|rabbit|parrot|hamster"
)
"""Alternation: the people and animals that a wearer calls "my"."""

ANIMALS = "dogs?|cats?|puppy|puppies|kittens?|horses?|rabbits?|parrots?|hamsters?"
"""Alternation: who can be given away."""

THINGS = "car|van|motorbike|motorcycle|bike|bicycle|scooter|boat|caravan|house|apartment|piano|guitar"
"""Alternation: what a wearer has and may sell."""

SUBJECTS = (
    "physics|chemistry|biology|maths?|mathematics|medicine|law|history|economics|engineering|geography"
    "|computer science|psychology|philosophy|sociology|linguistics|architecture|nursing|business|politics"
    "|art history|literature|statistics|geology|astronomy"
)
"""Alternation: what is studied."""

PARTNERS = ("wife", "husband", "partner", "girlfriend", "boyfriend", "fiancé", "fiancée", "fiance", "fiancee")

OCCUPATIONS = (
    "teacher", "nurse", "doctor", "engineer", "programmer", "developer", "designer", "student", "lawyer",
    "accountant", "architect", "artist", "writer", "journalist", "editor", "photographer", "musician",
    "singer", "actor", "actress", "cook", "chef", "baker", "waiter", "waitress", "barista", "driver", "pilot",
    "sailor", "farmer", "gardener", "carpenter", "plumber", "electrician", "mechanic", "builder", "cleaner",
    "cashier", "librarian", "researcher", "scientist", "biologist", "chemist", "physicist", "professor",
    "lecturer", "manager", "consultant", "analyst", "secretary", "receptionist", "dentist", "surgeon",
    "vet", "pharmacist", "therapist", "psychologist", "midwife", "paramedic", "firefighter", "soldier",
    "policeman", "policewoman", "police officer", "detective", "translator", "interpreter", "technician",
    "salesman", "saleswoman", "hairdresser", "tailor", "butcher", "painter", "coach", "trainer", "guide",
)  # fmt: skip

WHEN = (
    r"(?:just )?(?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter|night|weekend)|yesterday"
    r"|today|recently|lately|a (?:week|month|year) ago|(?:\w+ )?(?:days|weeks|months|years) ago"
    r"|in (?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"|since \w+(?: \w+)?|for (?:\w+ )?(?:days|weeks|months|years)"
)
"""Alternation: when something came to be, at the end of a clause; the line's own date says it better."""

_IRREGULAR = {"have": "has", "go": "goes", "do": "does", "am": "is", "be": "is"}


def third_person(verb_phrase: str) -> str:
    """ "walk to work every day" -> "walks to work every day"."""
    verb, _, rest = verb_phrase.partition(" ")
    lower = verb.lower()
    if lower in _IRREGULAR:
        said = _IRREGULAR[lower]
    elif lower.endswith(("s", "x", "z", "ch", "sh", "o")):
        said = lower + "es"
    elif lower.endswith("y") and lower[-2:-1] not in "aeiou":
        said = lower[:-1] + "ies"
    else:
        said = lower + "s"
    return f"{said} {rest}" if rest else said


COUNTRIES = frozenset(
    {
        "argentina",
        "australia",
        "austria",
        "bangladesh",
        "belgium",
        "brazil",
        "britain",
        "bulgaria",
        "california",
        "canada",
        "chile",
        "china",
        "colombia",
        "croatia",
        "cyprus",
        "denmark",
        "egypt",
        "england",
        "estonia",
        "ethiopia",
        "europe",
        "finland",
        "florida",
        "france",
        "germany",
        "greece",
        "hungary",
        "iceland",
        "india",
        "indonesia",
        "iran",
        "iraq",
        "ireland",
        "israel",
        "italy",
        "japan",
        "kenya",
        "korea",
        "latvia",
        "lithuania",
        "malaysia",
        "malta",
        "mexico",
        "morocco",
        "nepal",
        "netherlands",
        "nigeria",
        "norway",
        "pakistan",
        "peru",
        "philippines",
        "poland",
        "portugal",
        "romania",
        "russia",
        "scotland",
        "serbia",
        "singapore",
        "slovakia",
        "slovenia",
        "spain",
        "sweden",
        "switzerland",
        "taiwan",
        "texas",
        "thailand",
        "tunisia",
        "turkey",
        "ukraine",
        "vietnam",
        "wales",
    }
)
"""Places that hold other places: who lives in Norway may live in Oslo. ("The ..." counts as one, too.)"""

COUNTABLE = frozenset(
    {
        "nut",
        "peanut",
        "walnut",
        "almond",
        "cashew",
        "hazelnut",
        "egg",
        "cat",
        "dog",
        "horse",
        "bee",
        "wasp",
        "shrimp",
        "strawberry",
        "tomato",
        "apple",
    }
)
"""Singulars that come in "a ... allergy" and are plural in "allergic to ..."."""


_THEIRS = {
    "my": "their",
    "our": "their",
    "me": "them",
    "us": "them",
    "mine": "theirs",
    "myself": "themselves",
}


def base_form(verb: str) -> str:
    """ "walks" -> "walk", "has" -> "have": undoes `third_person`."""
    for base, said in _IRREGULAR.items():
        if verb == said:
            return base
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    if verb.endswith(("ches", "shes", "sses", "xes", "zes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


def told_of(words: str) -> str:
    """The wearer's words in a line about the wearer: "my boss" -> "their boss"."""
    return re.sub(
        rf"\b(?:{'|'.join(_THEIRS)})\b", lambda found: _THEIRS[found.group().lower()], words, flags=re.I
    )


def plural(thing: str) -> str:
    """ "nut" -> "nuts" for what is countable; "milk" stays."""
    last = thing.split(" ")[-1].lower()
    if last not in COUNTABLE:
        return thing
    if last.endswith("y"):
        return thing[:-1] + "ies"
    return thing + ("es" if last.endswith("o") else "" if last == "shrimp" else "s")
