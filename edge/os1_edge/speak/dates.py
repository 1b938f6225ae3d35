"""Dates, times and years as they are read in English. Pure.

espeak reads 2026 as "two thousand twenty six" and 10:05 as "ten zero five"; what it reads right is left to
it.
"""

from __future__ import annotations

import re
from datetime import date

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SHORT = {month[:3]: month for month in MONTHS} | {"Sept": "September"}
_MONTH = rf"(?:{'|'.join(MONTHS)}|(?:{'|'.join(_SHORT)})\b\.?)"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?![\d:%]|[.,]\d| \d\d\b)"
_YEAR = r"(?:1[1-9]|20)\d\d"

_DAYS_OF_THE_WEEK = {
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Tues": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Thur": "Thursday",
    "Thurs": "Thursday",
    "Fri": "Friday",
    "Sat": "Saturday",
    "Sun": "Sunday",
}

_ISO = re.compile(
    rf"(?<![\w.-])({_YEAR})-(\d\d)-(\d\d)(?:[T ](?=\d\d:\d\d))?(?![\w-])|(?<![\w.-])({_YEAR})-(\d\d)-(\d\d)T"
)
_SLASHED = re.compile(rf"(?<![\w/.])(\d{{1,2}})([/.])(\d{{1,2}})\2({_YEAR})(?![\w/])")
_MONTH_DAY = re.compile(rf"\b({_MONTH}) ({_DAY})(?:st|nd|rd|th)?\b(?:(,?) ({_YEAR})\b)?")
_DAY_MONTH = re.compile(rf"(?<![\w.:/$€£-])({_DAY})(?:st|nd|rd|th)? ({_MONTH})(?:,? ({_YEAR})\b)?(?!\w)")
_MONTH_YEAR = re.compile(rf"\b({_MONTH}) ({_YEAR})\b(?![-/]\d)")
_MONTH_ALONE = re.compile(rf"\b({'|'.join(s for s in _SHORT if s not in ('May', 'Mar'))})\.")
_WEEKDAY = re.compile(
    rf"\b({'|'.join(sorted(_DAYS_OF_THE_WEEK, key=len, reverse=True))})(?:\.|(?=,))(?=,? \w)"
)
_PLAIN_YEAR = re.compile(
    rf"(?<![\w.,:/$€£#+-])({_YEAR})(?![\w:/%]|[.,-]\d"
    r"| (?:°|%|(?:k?m|k?g|[km]?l|[KMGT]B|dollars|euros|pounds|steps|people"
    r"|calories|meters|metres|miles|feet|hours|minutes|seconds|times|words|points)\b))"
)
_SPAN = re.compile(rf"(?<![\w.-])({_YEAR})\s?[-–—]\s?({_YEAR}|\d\d)(?![\w-])")
_DECADE = re.compile(r"(?<![\w.,$])['’]?((?:1[1-9]|20)?)(\d)0['’]?s\b")
_CLOCK = re.compile(r"(?<![\w:.])(\d{1,2}):([0-5]\d)(?::([0-5]\d))?(?:\s?([AaPp])\.?[Mm]\b(\.?))?(?![\w:])")
_HOUR = re.compile(r"(?<![\w:.,-])(1[0-2]|0?[1-9])\s?([AaPp])(?:\.[Mm]\.|[Mm]\b)")

_TENS = (
    "hundreds",
    "tens",
    "twenties",
    "thirties",
    "forties",
    "fifties",
    "sixties",
    "seventies",
    "eighties",
    "nineties",
)


def read_dates(text: str) -> str:
    """``text`` with dates and times written out: "Jan. 5, 2026" -> "January 5th, 20 26"."""
    text = _ISO.sub(_iso, text)
    text = _SLASHED.sub(_slashed, text)
    text = _SPAN.sub(_span, text)
    text = _DAY_MONTH.sub(_day_month, text)
    text = _MONTH_DAY.sub(_month_day, text)
    text = _MONTH_YEAR.sub(lambda m: f"{_full(m[1])} {year(m[2])}", text)
    text = _MONTH_ALONE.sub(lambda m: _full(m[1]), text)
    text = _WEEKDAY.sub(lambda m: _DAYS_OF_THE_WEEK[m[1]], text)
    text = _DECADE.sub(_decade, text)
    text = _PLAIN_YEAR.sub(lambda m: year(m[1]), text)
    text = _CLOCK.sub(_clock, text)
    return _HOUR.sub(lambda m: f"{int(m[1])} {m[2].upper()}M", text)


def year(digits: str) -> str:
    """A year in two halves, as it is read: "19 99", "19 oh 5", "20 26"; 2000 to 2009 are plain numbers."""
    century, rest = digits[:2], int(digits[2:])
    if rest == 0:
        return digits if century == "20" else f"{century} hundred"
    if rest < 10:
        return digits if century == "20" else f"{century} oh {rest}"
    return f"{century} {rest}"


def ordinal(n: int) -> str:
    """ "1st", "2nd", "3rd", "11th": espeak reads those."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _full(month: str) -> str:
    short = month.rstrip(".")
    return _SHORT.get(short, short)


def _iso(m: re.Match[str]) -> str:
    y, month, day = (m[1], m[2], m[3]) if m[1] else (m[4], m[5], m[6])
    said = _written(int(y), int(month), int(day))
    if said is None:
        return m[0]
    return said + (" at " if m[0].endswith(("T", " ")) else "")


def _slashed(m: re.Match[str]) -> str:
    """Month first, as English voices are American, if it can be; day first with dots, or beyond 12."""
    first, second = int(m[1]), int(m[3])
    american = m[2] == "/" and first <= 12
    said = _written(int(m[4]), *((first, second) if american else (second, first)))
    return said or m[0]


def _written(y: int, month: int, day: int) -> str | None:
    try:
        date(y, month, day)
    except ValueError:
        return None
    return f"{MONTHS[month - 1]} {ordinal(day)}, {year(str(y))}"


def _month_day(m: re.Match[str]) -> str:
    tail = f"{m[3]} {year(m[4])}" if m[4] else ""
    return f"{_full(m[1])} {ordinal(int(m[2]))}{tail}"


def _day_month(m: re.Match[str]) -> str:
    said = f"{_full(m[2])} {ordinal(int(m[1]))}"
    return f"{said}, {year(m[3])}" if m[3] else said


def _span(m: re.Match[str]) -> str:
    until = m[2] if len(m[2]) == 4 else m[1][:2] + m[2]
    return f"{year(m[1])} to {year(until)}"


def _decade(m: re.Match[str]) -> str:
    tens = int(m[2])
    if not m[1]:
        return _TENS[tens] if tens > 1 else m[0]
    if tens == 0:
        return "two thousands" if m[1] == "20" else f"{m[1]} hundreds"
    return f"{m[1]} {_TENS[tens]}" if tens > 1 else m[0]


def _clock(m: re.Match[str]) -> str:
    hour, minute = int(m[1]), int(m[2])
    if hour > 24:
        return m[0]
    half = f" {m[4].upper()}M" if m[4] else ""
    if m[3]:
        return f"{hour} {_minutes(minute)} and {int(m[3])} seconds{half}"
    if minute == 0 and half:
        return f"{hour}{half}"
    if minute == 0:
        return f"{hour} o'clock" if 1 <= hour <= 12 else f"{hour} hundred hours" if hour > 12 else "midnight"
    return f"{hour} {_minutes(minute)}{half}"


def _minutes(minute: int) -> str:
    return f"oh {minute}" if minute < 10 else str(minute)
