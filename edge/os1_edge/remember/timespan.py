"""Which time a question asks about: "yesterday", "last week", "in the morning", "in May 2023". Pure.

Only the past counts: what was said about tomorrow was said before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from os1_edge.remember.wording import MONTH, MONTHS, WEEKDAY, WEEKDAYS

LATER = timedelta(days=10)
"""A named day or month is often told of later: LoCoMo's evidence lies within ten days after the date asked
about, the smallest grace that loses none of the gain."""

YEARS_BACK = 3
"""A month without a year means any of its last occurrences."""


DAY_PARTS: dict[str, tuple[int, int]] = {
    "morning": (5, 12), "noon": (11, 14), "afternoon": (12, 18), "evening": (17, 23), "night": (20, 5),
}  # fmt: skip
"""Hours of the day, from (with) to (without); one that ends before it starts goes over midnight."""

Span = tuple[datetime, datetime]
"""From (with) to (without), the wearer's local time."""


@dataclass(frozen=True, slots=True)
class Times:
    """What a question says of when something was."""

    phrase: str
    """The words that say it."""
    spans: tuple[Span, ...] = ()
    """Any of these; none: any day."""
    hours: tuple[int, int] | None = None
    exact: bool = True
    """Nothing outside is meant; else what lies inside is only likelier."""

    def fits(self, time: datetime) -> bool:
        """Whether a memory of ``time`` is of the time asked about."""
        time = time.replace(tzinfo=None)
        early, late = (timedelta(), timedelta()) if self.exact else (timedelta(days=1), LATER)
        day = not self.spans or any(start - early <= time < end + late for start, end in self.spans)
        if self.hours is None or not day:
            return day
        start, end = self.hours
        return start <= time.hour < end if start < end else time.hour >= start or time.hour < end


def read_times(text: str, now: datetime) -> Times | None:
    """The time that ``text`` asks about, seen from ``now``; ``None`` where it names none.

    Args:
        text: a question.
        now: the wearer's local time; a zone is dropped.
    """
    said, now = text.casefold().replace("’", "'"), now.replace(tzinfo=None)
    part = re.search(rf"\b(?:(in the|at|this|yesterday|last) )?({'|'.join(DAY_PARTS)})\b", said)
    for read in (_ago, _recent, _day, _dated, _month, _year):
        if (found := read(said, now)) is not None:
            if part and found.spans and _days(found) <= 7 and found.phrase != "last night":
                phrase = max(found.phrase, part[0], key=len)
                if found.phrase not in part[0] and part[0] not in found.phrase:
                    phrase = f"{found.phrase} {part[0]}"
                return Times(phrase, found.spans, DAY_PARTS[part[2]], found.exact)
            return found
    if part and part[1] in ("in the", "at"):
        return Times(part[0], hours=DAY_PARTS[part[2]])
    return None


def _days(times: Times) -> float:
    return max((end - start).total_seconds() / 86_400 for start, end in times.spans)


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple of": 2, "a couple of": 2, "three": 3, "a few": 3, "few": 3,
    "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
}  # fmt: skip
_N = rf"(\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNIT = r"(minute|hour|day|week|month|year)s?"
_LENGTH = {
    "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1),
    "week": timedelta(days=7), "month": timedelta(days=30.44), "year": timedelta(days=365.25),
}  # fmt: skip


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _ago(said: str, now: datetime) -> Times | None:
    """As in "two days ago"; "in the last three weeks"."""
    if found := re.search(rf"\b{_N} {_UNIT} ago\b", said):
        unit = _LENGTH[found[2]]
        middle = now - _count(found[1]) * unit
        if found[2] == "day":
            start = _midnight(middle)
            return Times(found[0], ((start, start + unit),))
        return Times(
            found[0], ((middle - unit / 2, middle + unit / 2),), exact=found[2] in ("minute", "hour")
        )
    if found := re.search(rf"\b(?:last|past) (?:{_N} )?{_UNIT}s?\b", said):
        if found[1] is None and found[2] != "hour":
            return None  # "last week" is the week before this one
        return Times(found[0], ((now - _count(found[1] or "one") * _LENGTH[found[2]], now),))
    return None


def _recent(said: str, now: datetime) -> Times | None:
    """As in "yesterday", "last night", "this week", "last month"."""
    today = _midnight(now)
    day = timedelta(days=1)
    monday = today - today.weekday() * day
    first = today.replace(day=1)
    before = (first - day).replace(day=1)
    spans: tuple[tuple[str, Callable[[], Span]], ...] = (
        (r"the day before yesterday", lambda: (today - 2 * day, today - day)),
        (r"last night", lambda: (today - timedelta(hours=6), today + timedelta(hours=5))),
        (r"yesterday", lambda: (today - day, today)),
        (r"today|tonight|this (?:morning|afternoon|evening)", lambda: (today, today + day)),
        (r"last weekend", lambda: (monday - 2 * day, monday)),
        (r"this weekend", lambda: (monday + 5 * day, monday + 7 * day)),
        (r"last week", lambda: (monday - 7 * day, monday)),
        (r"this week", lambda: (monday, monday + 7 * day)),
        (r"last month", lambda: (before, first)),
        (r"this month", lambda: (first, now + day)),
        (r"last year", lambda: (datetime(today.year - 1, 1, 1), datetime(today.year, 1, 1))),
        (r"this year", lambda: (datetime(today.year, 1, 1), now + day)),
    )
    for pattern, span in spans:
        if found := re.search(rf"\b(?:{pattern})\b", said):
            return Times(found[0], (span(),))
    return None


def _day(said: str, now: datetime) -> Times | None:
    """As in "on Monday", "last Friday": the newest that is over."""
    found = re.search(rf"\b(?:on|last|this past) ({WEEKDAY})\b", said)
    if found is None:
        return None
    back = (now.weekday() - WEEKDAYS.index(found[1])) % 7 or 7
    start = _midnight(now) - timedelta(days=back)
    return Times(found[0], ((start, start + timedelta(days=1)),))


_DATE = re.compile(
    rf"\b(?:(?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{MONTH})(?:,? (?P<y1>\d{{4}}))?"
    rf"|(?P<m2>{MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<y2>\d{{4}}))?)\b"
)


def _dated(said: str, now: datetime) -> Times | None:
    """As in "7 May 2023", "May 7th", "2023-05-07"."""
    found = _DATE.search(said)
    if found is None:
        return None
    day = int(found["d"] or found["d1"] or found["d2"])
    name = found["m1"] or found["m2"]
    month = MONTHS.index(name) + 1 if name else int(found["m"])
    year = found["y"] or found["y1"] or found["y2"]
    starts = [_date(y, month, day) for y in _years(year, now)]
    spans = tuple((s, s + timedelta(days=1)) for s in starts if s is not None and (year or s <= now))
    return Times(found[0], spans, exact=False) if spans else None


def _date(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day)
    except ValueError:
        return None


def _years(named: str | None, now: datetime) -> list[int]:
    return [int(named)] if named else [now.year - back for back in range(YEARS_BACK)]


def _month(said: str, now: datetime) -> Times | None:
    """As in "in May", "last July", "in June 2023". "May" alone may be a verb."""
    found = re.search(
        rf"\b(?:(?:in|of|during|since|last|this|early|late|mid|by)[ -])?({MONTH})"
        r"(?:,? (\d{4}))?\b",
        said,
    )
    if found is None or (found[0] == "may"):
        return None
    month = MONTHS.index(found[1]) + 1
    starts = [start for y in _years(found[2], now) if (start := _date(y, month, 1)) is not None]
    spans = tuple(
        (s, (s + timedelta(days=31)).replace(day=1)) for s in starts if found[2] is not None or s <= now
    )
    return Times(found[0], spans, exact=False) if spans else None


_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


def _year(said: str, now: datetime) -> Times | None:
    """As in "in 2023", "in summer 2023", "last summer"."""
    if found := re.search(
        r"\b(?:in|of|during|since|last|this)(?: the)? (spring|summer|autumn|fall|winter)"
        r"(?: of)?(?: (\d{4}))?\b",
        said,
    ):
        month = _SEASONS[found[1]]
        starts = [datetime(y, month, 1) for y in _years(found[2], now) if 1 <= y <= 9000]
        spans = tuple((s, s + timedelta(days=92)) for s in starts if s <= now)
        return Times(found[0], spans, exact=False) if spans else None
    found = re.search(r"\b(?:in|during|of|since) ((?:19|20)\d\d)\b", said)
    if found is None:
        return None
    year = int(found[1])
    return Times(found[0], ((datetime(year, 1, 1), datetime(year + 1, 1, 1)),), exact=False)
