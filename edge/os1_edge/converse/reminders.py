"""What the wearer said lies ahead: "I have an exam tomorrow", "remind me at five to call my mother". Pure.

Found by rule, with the time it is due. A reminder is nothing of its own: it is read out of what the memory
holds each time, so what is forgotten is not reminded of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from os1_edge.converse.address import addressed
from os1_edge.remember.wording import WEEKDAY, WEEKDAYS, sentences

MORNING = time(8)
"""When to speak of something on a day that has no hour."""

BEFORE = timedelta(minutes=30)
"""How long before its hour an appointment is worth a word."""

LATE = timedelta(hours=1)
"""How long after its hour it is still worth one."""

_HOURS = {"noon": time(12), "midday": time(12), "midnight": time(23, 59)}
_PARTS = {
    "morning": time(8),
    "afternoon": time(13),
    "evening": time(18),
    "night": time(20),
    "tonight": time(19),
}
_NUMBERS: dict[str, float] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "fifteen": 15,
    "twenty": 20, "thirty": 30, "forty-five": 45, "half an": 0.5,
}  # fmt: skip
_CLOCK_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip

_REMIND = re.compile(r"\bremind me\b(?P<rest>.*)", re.I | re.S)
_THING = (
    r"(?:[\w']+[ -]){0,4}?(?:exam|test|interview|appointment|meeting|presentation|deadline|flight|train"
    r"|dentist|doctor"
    r"|surgery|operation|date|party|wedding|birthday|concert|lesson|class|talk|game|match|race|call|visit"
    r"|anniversary|funeral|recital|trip|check-?up|audition|shift)s?(?: with (?:(?:my|the) )?\w+| of \w+)?"
)
_AHEAD = re.compile(
    rf"\b(?:(?:i|we)(?:'ve| have)(?: got)? (?:to \w+ )?(?:an?|my|the|our) (?P<what>{_THING})"
    rf"|(?P<mine>(?:my|our) {_THING}) is"
    r"|(?:i|we)(?:'m| am|'re| are) (?P<doing>(?:seeing|meeting|visiting|flying to|taking) [\w' ]{2,40}?))"
    r" ?(?=\b(?:tomorrow|tonight|today|this|on|next|at|in)\b)",
    re.I,
)
_NOT_AHEAD = re.compile(
    r"\b(?:had|was|were|if|might|maybe|cancel\w*|yesterday|last|not|don't|no longer)\b|\?", re.I
)
_CLOCK = re.compile(
    r"\b(?:at|by|around) (?P<past>half past |quarter past |quarter to )?(?P<hour>\d{1,2}|"
    + "|".join(_CLOCK_WORDS)
    + r")(?::(?P<minute>\d\d)|(?P<half> thirty))?"
    r"(?: o'?clock)?(?: ?(?P<half_day>[ap])\.?m\b\.?)?",
    re.I,
)
_IN = re.compile(
    r"\bin (?P<n>\d{1,3}|"
    + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    + r") (?P<unit>minute|hour|day|week)s?\b",
    re.I,
)
_WHEN = re.compile(
    r",?\s*\b(?:(?:the day after )?tomorrow(?: (?:morning|afternoon|evening|night))?|tonight|today"
    r"|this (?:morning|afternoon|evening)|(?:on|next|this) (?:" + WEEKDAY + r")(?: (?:morning|afternoon"
    r"|evening))?|at (?:noon|midday|midnight)|in the (?:morning|afternoon|evening))\b",
    re.I,
)
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


@dataclass(frozen=True, slots=True)
class Reminder:
    """Something that lies ahead of when it was said."""

    what: str
    """As said to the wearer: "your exam", "call your mother"."""
    due: datetime
    """When it is; with ``timed`` false, the day's beginning."""
    timed: bool
    asked: bool
    """The wearer asked to be reminded."""

    @property
    def speak_from(self) -> datetime:
        """When to speak of it at the earliest."""
        if not self.timed:
            return datetime.combine(self.due.date(), MORNING)
        return self.due if self.asked else self.due - BEFORE

    @property
    def speak_until(self) -> datetime:
        """When it is too late."""
        return self.due + LATE if self.timed else datetime.combine(self.due.date(), time(22))


def found(heard: str, said: datetime) -> Reminder | None:
    """What ``heard``, said at local time ``said``, tells of what lies ahead; ``None``: nothing that has a
    time."""
    for sentence in sentences(heard.replace("’", "'")):
        if (reminder := _in_sentence(sentence.strip(), said)) is not None:
            return reminder
    return None


def _in_sentence(sentence: str, said: datetime) -> Reminder | None:
    if asked := _REMIND.search(sentence):
        what = _task(asked["rest"])
    elif (ahead := _AHEAD.search(sentence)) and not _NOT_AHEAD.search(sentence):
        named = ahead["what"] or ahead["mine"] or ahead["doing"]
        bare = re.sub(r"^(?:my|our) ", "", named.strip(), flags=re.I)
        what = _small(addressed(named)) if ahead["doing"] else f"your {bare}"
    else:
        return None
    due = _due(sentence.lower(), said)
    if due is None or not what:
        return None
    at, timed = due
    return Reminder(what, at, timed, asked is not None)


def _task(rest: str) -> str:
    """What to remind of: "at five to call my mother" -> "call your mother"."""
    bare = _IN.sub("", _CLOCK.sub("", _WHEN.sub("", rest)))
    bare = re.sub(r"^[\s,]*(?:please )?(?:to|of|about|that)\b", "", bare).strip(" ,.!?")
    return _small(addressed(bare))


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


def _due(sentence: str, said: datetime) -> tuple[datetime, bool] | None:
    """When ``sentence`` places it, and whether that has an hour."""
    if (span := _IN.search(sentence)) is not None:
        number = span["n"]
        seconds = (float(number) if number.isdigit() else _NUMBERS[number]) * _UNITS[span["unit"]]
        return said + timedelta(seconds=seconds), span["unit"] in ("minute", "hour")
    day = _day(sentence, said)
    clock = _clock(sentence, afternoon=day is None or (day == said.date() and said.hour >= 12))
    part = next((at for name, at in _PARTS.items() if re.search(rf"\b{name}\b", sentence)), None)
    if clock is not None:
        on = day or said.date()
        due = datetime.combine(on, clock)
        if day is None and due <= said:
            half_a_day_later = due + timedelta(hours=12)
            due = half_a_day_later if due.hour < 12 and half_a_day_later > said else due + timedelta(days=1)
        return due, True
    if part is not None and day is not None:
        due = datetime.combine(day, part)
        return (due, True) if due > said else None
    return (datetime.combine(day, time()), False) if day is not None and day != said.date() else None


def _day(sentence: str, said: datetime) -> date | None:
    today = said.date()
    if "day after tomorrow" in sentence:
        return today + timedelta(days=2)
    if re.search(r"\btomorrow\b", sentence):
        return today + timedelta(days=1)
    if re.search(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", sentence):
        return today
    if named := re.search(r"\b(?:on|next|this) (" + WEEKDAY + r")\b", sentence):
        ahead = (WEEKDAYS.index(named[1]) - today.weekday()) % 7 or 7
        return today + timedelta(days=ahead)
    return None


def _clock(sentence: str, *, afternoon: bool) -> time | None:
    for name, at in _HOURS.items():
        if re.search(rf"\bat {name}\b", sentence):
            return at
    given = _CLOCK.search(sentence)
    if given is None:
        return None
    hour = int(given["hour"]) if given["hour"].isdigit() else _CLOCK_WORDS[given["hour"]]
    minute = int(given["minute"] or (30 if given["half"] else 0))
    past = (given["past"] or "").strip()
    minute = {"half past": 30, "quarter past": 15, "quarter to": 45}.get(past, minute)
    hour -= past == "quarter to"
    late = given["half_day"] == "p" or re.search(r"\b(?:afternoon|evening|tonight|night)\b", sentence)
    early = not given["half_day"] and hour < 7 and not afternoon  # "tomorrow at three" is the afternoon's
    if hour < 12 and given["half_day"] != "a" and (late or early):
        hour += 12
    if given["half_day"] == "a" and hour == 12:
        hour = 0
    return time(hour, minute) if hour < 24 and minute < 60 else None
