"""Money, units, ranges, fractions and telephone numbers as they are read in English. Pure.

Plain, decimal and ordinal numbers stay as digits: espeak reads those, with and without thousands' commas.
"""

from __future__ import annotations

import re

from os1_edge.speak.dates import ordinal

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_SCALES = {
    "k": "thousand",
    "K": "thousand",
    "m": "million",
    "M": "million",
    "mn": "million",
    "bn": "billion",
    "b": "billion",
    "B": "billion",
    "T": "trillion",
}
_CURRENCIES = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "penny"),
    "¥": ("yen", ""),
    "₹": ("rupee", "paisa"),
}
_SIGNS = "".join(re.escape(sign) for sign in _CURRENCIES)
_MONEY = re.compile(
    rf"(?:\bUS)?(-?)([{_SIGNS}])\s?({_NUMBER})"
    r"(?:(k|K|mn|M|m|bn|B|b|T)\b| (thousand|million|billion|trillion)\b)?"
)
_MONEY_BEHIND = re.compile(rf"(?<![\w.,])({_NUMBER})\s?([€£¥₹])")

_UNITS = {
    "km/h": "kilometers per hour",
    "kmh": "kilometers per hour",
    "kph": "kilometers per hour",
    "mph": "miles per hour",
    "m/s": "meters per second",
    "MB/s": "megabytes per second",
    "km²": "square kilometers",
    "m²": "square meters",
    "m³": "cubic meters",
    "km": "kilometers",
    "m": "meters",
    "cm": "centimeters",
    "mm": "millimeters",
    "µm": "micrometers",
    "mi": "miles",
    "ft": "feet",
    "yd": "yards",
    "kg": "kilograms",
    "g": "grams",
    "mg": "milligrams",
    "lb": "pounds",
    "lbs": "pounds",
    "oz": "ounces",
    "l": "liters",
    "L": "liters",
    "ml": "milliliters",
    "mL": "milliliters",
    "dl": "deciliters",
    "°C": "degrees Celsius",
    "℃": "degrees Celsius",
    "°F": "degrees Fahrenheit",
    "℉": "degrees Fahrenheit",
    "°": "degrees",
    "%": "percent",
    "kB": "kilobytes",
    "KB": "kilobytes",
    "MB": "megabytes",
    "GB": "gigabytes",
    "TB": "terabytes",
    "Mbps": "megabits per second",
    "Hz": "hertz",
    "kHz": "kilohertz",
    "MHz": "megahertz",
    "GHz": "gigahertz",
    "W": "watts",
    "kW": "kilowatts",
    "kWh": "kilowatt hours",
    "mAh": "milliamp hours",
    "V": "volts",
    "kcal": "kilocalories",
    "cal": "calories",
    "dB": "decibels",
    "bpm": "beats per minute",
    "ms": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "secs": "seconds",
    "min": "minutes",
    "mins": "minutes",
    "h": "hours",
    "hr": "hours",
    "hrs": "hours",
    "px": "pixels",
    "MP": "megapixels",
}
_IRREGULAR = {"feet": "foot", "degrees": "degree"}
_UNCHANGED = {"percent", "hertz", "kilohertz", "megahertz", "gigahertz"}
_UNIT = "|".join(re.escape(u) for u in sorted(_UNITS, key=len, reverse=True))
_MEASURE = re.compile(
    rf"(?<![\w,])(-|−)?({_NUMBER})(?:\s?[-–]\s?({_NUMBER}))?[ \u00a0]?({_UNIT})(?![\w²³/°]|['’]\w)"
)

_HALVES = {
    "½": (1, 2),
    "⅓": (1, 3),
    "⅔": (2, 3),
    "¼": (1, 4),
    "¾": (3, 4),
    "⅕": (1, 5),
    "⅛": (1, 8),
    "⅜": (3, 8),
    "⅝": (5, 8),
    "⅞": (7, 8),
}
_PARTS = {
    3: "third",
    5: "fifth",
    6: "sixth",
    7: "seventh",
    8: "eighth",
    9: "ninth",
    10: "tenth",
    12: "twelfth",
}
_VULGAR = re.compile(rf"(?<![\d.,])(\d+)?[ ]?([{''.join(_HALVES)}])")
_FRACTION = re.compile(r"(?<![\w/.,$-])(?:(\d+) )?(\d{1,2})/(\d{1,2})(?![\w/]|[.,]\d)")

_PHONE = re.compile(
    r"(?<![\w.,-])(\+\d{1,3}[ -]?)?(?:\((\d{3})\) ?|(\d{3})[-. ])?(\d{3})[-.](\d{4})(?![\w-]|[.,]\d)"
)
_LONG = re.compile(r"(?<![\w.,$€£-])\+?(0\d{5,}|\d{10,})(?![\w.,]\d|\w)")
_RANGE = re.compile(rf"(?<![\w.,/-])({_NUMBER})\s?[–-]\s?({_NUMBER})(?![\w/-]|[.,]\d)")
_SCALED = re.compile(rf"(?<![\w.,])({_NUMBER})(k|K|M|bn)(?!\w)")
_MINUS = re.compile(r"(?<![\w)\].,-])[-−](?=\d)")
_ROUGHLY = re.compile(r"(?<!\S)~\s?(?=[\d$€£])")
_NTH = re.compile(r"(?<!\w)#\s?(?=\d)|\b(?:No|Nr)\.\s?(?=\d)|№\s?(?=\d)")
_BETWEEN = (
    (re.compile(r"(?<=\d)\s?[×*]\s?(?=\d)|(?<=\d) x (?=\d)"), " times "),
    (re.compile(r"(?<=\d)\s?x(?!\w)"), " times"),
    (re.compile(r"(?<=\d) ?\+ ?(?=\d)"), " plus "),
    (re.compile(r"(?<=\d)\+(?=\s|$|[.,;:!?])"), " plus"),
    (re.compile(r"(?<=\d) (?:-|−) (?=\d+ ?=)"), " minus "),
    (re.compile(r"(?<=\w) ?= ?(?=[\w$-])"), " equals "),
    (re.compile(r"(?<=\d) ?÷ ?(?=\d)"), " divided by "),
    (re.compile(r"(?<=\w) < (?=\w)"), " less than "),
    (re.compile(r"(?<=\w) > (?=\w)"), " more than "),
    (re.compile(r"≈\s?"), "about "),
    (re.compile(r"±\s?"), "plus or minus "),
    (re.compile(r"≤\s?"), "at most "),
    (re.compile(r"≥\s?"), "at least "),
    (re.compile(r"\b24/7\b"), "24 7"),
)


def read_figures(text: str) -> str:
    """``text`` with figures written out: "$3.14" -> "3 dollars and 14 cents"."""
    text = _ROUGHLY.sub("about ", text)
    text = _NTH.sub("number ", text)
    for pattern, said in _BETWEEN:
        text = pattern.sub(said, text)
    text = _PHONE.sub(_phone, text)
    text = _MONEY.sub(_money, text)
    text = _MONEY_BEHIND.sub(lambda m: _amount(m[1], m[2]), text)
    text = _MEASURE.sub(_measure, text)
    text = _VULGAR.sub(lambda m: _fraction(m[1], *_HALVES[m[2]]), text)
    text = _FRACTION.sub(
        lambda m: _fraction(m[1], int(m[2]), int(m[3])) if 0 < int(m[2]) < int(m[3]) else m[0], text
    )
    text = _RANGE.sub(r"\1 to \2", text)
    text = _SCALED.sub(lambda m: f"{m[1]} {_SCALES[m[2]]}", text)
    text = _LONG.sub(lambda m: " ".join(m[1]), text)
    return _MINUS.sub("minus ", text)


def _money(m: re.Match[str]) -> str:
    minus = "minus " if m[1] else ""
    if scale := m[5] or _SCALES.get(m[4] or ""):
        return f"{minus}{m[3]} {scale} {_CURRENCIES[m[2]][0]}{'' if m[2] == '¥' else 's'}"
    return minus + _amount(m[3], m[2])


def _amount(number: str, sign: str) -> str:
    whole, _, part = number.partition(".")
    name, small = _CURRENCIES[sign]
    many = name if sign == "¥" else f"{name}s"
    if not part or len(part) != 2 or not small:
        return f"{number} {name if number == '1' else many}"
    cents = int(part)
    coins = f"{cents} {_coins(small, cents)}"
    if whole == "0" and cents:
        return coins
    money = f"{whole} {name if whole == '1' else many}"
    return f"{money} and {coins}" if cents else money


def _coins(small: str, n: int) -> str:
    if n == 1:
        return small
    return {"penny": "pence", "paisa": "paise"}.get(small, f"{small}s")


def _measure(m: re.Match[str]) -> str:
    name = _UNITS[m[4]]
    if m[2] == "1" and not m[3]:
        name = _singular(name)
    number = f"{m[2]} to {m[3]}" if m[3] else m[2]
    return f"{'minus ' if m[1] else ''}{number} {name}"


def _singular(name: str) -> str:
    first, _, rest = name.partition(" ")
    if first in ("square", "cubic", "kilowatt", "milliamp"):
        return f"{first} {rest.removesuffix('s')}"
    one = first if first in _UNCHANGED else _IRREGULAR.get(first, first.removesuffix("s"))
    return f"{one} {rest}".rstrip()


def _fraction(whole: str | None, top: int, bottom: int) -> str:
    if bottom == 2:
        part = "half" if whole else "one half"
    elif bottom == 4:
        part = "a quarter" if top == 1 else f"{top} quarters"
    else:
        part = f"{top} {_PARTS.get(bottom, ordinal(bottom))}{'s' if top > 1 else ''}"
    if not whole:
        return part
    return f"{whole} and {'a ' if bottom == 2 else ''}{part}"


def _phone(m: re.Match[str]) -> str:
    groups = [(m[1] or "").strip(" -+"), m[2] or m[3] or "", m[4], m[5]]
    said = ", ".join(" ".join(g) for g in groups if g)
    return f"plus {said}" if m[1] else said
