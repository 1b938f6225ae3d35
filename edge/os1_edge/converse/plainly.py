"""Questions that need no model and must not be left to one: the time, the date, who the companion is, and who
somebody is of whom nothing is known. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from os1_edge.converse.greeting import introduced
from os1_edge.converse.texts import text

_SO = r"(?:(?:and|so|hey|ok|okay|please|excuse me|sorry|by the way)\W+)*(?:(?:can|could) you )?(?:tell me )?"
_TIME = re.compile(
    rf"{_SO}(?:what(?:'s| is) the time|what time is it|do you (?:have|know) the time|the time"
    r"|wie spät ist es|wie viel uhr ist es|¿?qué hora es|quelle heure est-il|il est quelle heure)"
    r"(?: right)?(?: now| jetzt| please| bitte)?\W*",
    re.I,
)
_DATE = re.compile(
    rf"{_SO}(?:what(?:'s| is)? (?:the )?(?:date|day)(?: is it)?(?: of the week)?(?: is)?(?: today)?"
    r"|what day is (?:it|today)(?: today)?|welcher tag ist heute|¿?qué día es hoy"
    r"|quel jour (?:sommes-nous|est-on|on est))\W*",
    re.I,
)
_WHO_ARE_YOU = re.compile(
    rf"{_SO}(?:who are you|what are you|what(?:'s| is) your name|are you (?:really )?(?:an? )?(?:human"
    r"(?: being)?"
    r"|real(?: person)?|person|robot|machine|ai|computer|program|bot|man|woman)|wer bist du"
    r"|bist du ein mensch"
    r"|¿?quién eres|¿?eres humana?|qui es-tu|es-tu humaine?)\W*",
    re.I,
)
_OWN_TASTE = re.compile(
    rf"{_SO}(?:what(?:'s| is) your favou?rite [\w ]+|what do you (?:like|enjoy|love|do)(?: to do| doing)?"
    r"(?: for fun| in your free time| all day)?|do you have (?:any )?hobbies)\W*",
    re.I,
)
_FEELINGS = re.compile(
    rf"{_SO}(?:do you (?:really )?(?:have|feel) (?:any )?(?:feelings|emotions|anything|pain)"
    r"|can you feel(?: anything)?"
    r"|are you (?:happy|sad|lonely|alive|conscious|tired|bored))\W*",
    re.I,
)
_WRONG = re.compile(
    r"(?:no\W+)?(?:you(?:'re| are)|that(?:'s| is)|this is) (?:so |just |all )?(?:wrong|not right|not true"
    r"|mistaken|incorrect|nonsense)\W*",
    re.I,
)
_WHO_IS = re.compile(
    r"(?:who(?:'s| is)|who was|wer ist|¿?quién es|qui est) (?-i:(?P<name>[A-Z][\w'’-]+))\W*", re.I
)


def answer(heard: str, now: datetime, name: str, known: str, language: str = "en") -> str | None:
    """The whole reply to ``heard``; ``None`` where there is more to it.

    Args:
        heard: what the wearer said.
        now: the wearer's local time.
        name: the companion's.
        known: all that the prompt tells but for ``heard``.
        language: of the reply.
    """
    said = heard.strip().replace("’", "'")
    if _TIME.fullmatch(said):
        return text("the time", language, time=spoken_time(now, language))
    if _DATE.fullmatch(said):
        return text("the date", language, date=_date(now, language))
    if _WHO_ARE_YOU.fullmatch(said):
        return text("who am i", language, name=name)
    for asked_of, line in ((_OWN_TASTE, "own taste"), (_FEELINGS, "own feelings"), (_WRONG, "wrong")):
        if asked_of.fullmatch(said):
            return text(line, language)
    if (whom := introduced(said)) is not None:
        return text("nice to meet you", language, name=whom)
    asked = _WHO_IS.fullmatch(said)
    if asked is not None and asked["name"].casefold() not in known.casefold():
        return text("unknown", language)
    return None


def spoken_time(at: datetime, language: str) -> str:
    """A time of day as it is said: "3:30 in the afternoon"."""
    if language != "en":
        return f"{at:%H:%M}"
    hour = at.hour % 12 or 12
    half = "in the morning" if at.hour < 12 else "in the afternoon" if at.hour < 18 else "in the evening"
    return f"{hour}:{at.minute:02d} {half}" if at.minute else f"{hour} {half}"


_DAYS = {
    "de": ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
    "es": ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
    "fr": ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
}


def _date(now: datetime, language: str) -> str:
    """With the month in English words, elsewhere in figures, which every voice reads."""
    if language not in _DAYS:
        return f"{now:%A}, {now.day} {now:%B}"
    return f"{_DAYS[language][now.weekday()]}, {now.day}.{now.month}."
