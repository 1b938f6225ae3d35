"""Text as it should be read aloud: figures, dates and abbreviations in words, without markup and emoji. Pure.

Only what espeak, which turns Piper's text into phonemes, reads wrong is changed: it takes "Dr." for a
sentence's end, "$3.14" for "dollar three point one four", "5 kg" for "five kay gee". Plain text stays as it
is.
"""

from __future__ import annotations

import re

from os1_edge.speak.dates import ordinal, read_dates
from os1_edge.speak.figures import read_figures

_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0e\ufe0f\u200d\u20e3©®™]"
)
_IMAGE_OR_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?: \"[^\"]*\")?\)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_LIST = re.compile(r"^\s*(?:[-*+•‣◦–]|(\d{1,3})[.)])\s+(?=\S)")
_HEADING = re.compile(r"^\s*#{1,6}\s+|^\s*>+\s?|^\s*\|\s?|\s?\|\s*$|^\s*(?:[-*_=]\s?){3,}$")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|~~|`{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)")
_UNDERLINED = re.compile(r"(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)")
_LEFT_OVER = re.compile(r"[*_`|\\]+|~~+|#+(?=\s|$)|(?<!\S)[<>]+(?!\S)|^>+")

_URL = re.compile(r"\b(?:https?://|www\.)([^\s<>\"'”]+)", re.IGNORECASE)
_MAIL = re.compile(r"(?<![\w.])([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)")
_DOMAIN = re.compile(
    r"\b((?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|edu|gov|eu|uk|de|fr|example|ai|app))\b(?!\w)", re.IGNORECASE
)
_HASHTAG = re.compile(r"(?<!\w)#(?=[A-Za-z])(\w+)")
_MENTION = re.compile(r"(?<!\w)@(?=[A-Za-z])")

_TITLES = {
    "Dr": "Doctor",
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Prof": "Professor",
    "Rev": "Reverend",
    "Gen": "General",
    "Col": "Colonel",
    "Capt": "Captain",
    "Lt": "Lieutenant",
    "Sgt": "Sergeant",
    "Sen": "Senator",
    "Rep": "Representative",
    "Gov": "Governor",
    "Pres": "President",
    "Hon": "Honorable",
    "Mt": "Mount",
    "Ft": "Fort",
}
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\.(?=\s+(?:[A-Z]|and [A-Z]))")
_SAINT = re.compile(r"(?<![A-Za-z] )(?<!\d )\bSt\.(?=\s[A-Z])|\bSt\.(?=\s[A-Z][a-z]+['’]s\b)")
_ROADS = {
    "St": "Street",
    "Ave": "Avenue",
    "Rd": "Road",
    "Blvd": "Boulevard",
    "Ln": "Lane",
    "Dr": "Drive",
    "Sq": "Square",
}
_ROAD = re.compile(rf"(?<=[a-z] )({'|'.join(_ROADS)})\b\.?(?=[,;:!?]|\s+[a-z]|\s*$)")
_SHORT = (
    (re.compile(r"\be\.\s?g\.,?"), "for example,"),
    (re.compile(r"\bi\.\s?e\.,?"), "that is,"),
    (re.compile(r"\betc\b\.?(?=\s+[a-z])|\betc\b\.(?=[,;:!?)])"), "et cetera"),
    (re.compile(r"\betc\b"), "et cetera"),
    (re.compile(r"\bvs\b\.?"), "versus"),
    (re.compile(r"\bapprox\."), "approximately"),
    (re.compile(r"\bw/o\b"), "without"),
    (re.compile(r"\bw/(?=\s)"), "with"),
    (re.compile(r"\bdept\.", re.IGNORECASE), "department"),
    (re.compile(r"\b([JS])r\.(?=[\s,;:!?)]|$)"), lambda m: "Junior" if m[1] == "J" else "Senior"),
    (re.compile(r"\bInc\.(?=\s+[a-z]|,)"), "Incorporated"),
    (re.compile(r"\bLtd\.(?=\s+[a-z]|,)"), "Limited"),
    (re.compile(r"\bPh\.\s?D\b\.?"), "PhD"),
    (re.compile(r"(?<=\w) ?& ?(?=\w)"), " and "),
    (re.compile(r"\s?(?:→|⇒|->|=>)\s?"), " to "),
)
_DOTTED = re.compile(r"\b((?:[A-Z]\.){2,})(?=(\s+[a-z(]|[,;:!?)'’]|\s+[A-Z]|\s*$))")
_INITIAL = re.compile(r"(?<=\b[A-Z])\.(?=\s(?:[A-Z]\.|[A-Z][a-z]))(?<!\bI\.)")

_ROMAN = {"I": 1, "V": 5, "X": 10}
_NUMERAL = r"(X{0,3}(?:IX|IV|V?I{0,3}))\b"
_KINGS = (
    "Henry|Louis|Elizabeth|George|Charles|Edward|James|William|Richard"
    "|John Paul|Pius|Benedict|Leo|Gregory|Innocent"
    "|Clement|Urban|Napoleon|Philip|Francis|Frederick|Catherine|Nicholas|Peter|Ramses|Ramesses|Ptolemy|Otto|Gustav|Carl"
)
_KING = re.compile(rf"\b({_KINGS}) (?=[IVX]){_NUMERAL}")
_COUNTED = re.compile(
    rf"\b(World War|Chapter|Part|Act|Section|Volume|Book|Phase|Type|Class|Level|Appendix) (?=[IVX]){_NUMERAL}"
)
_SPACED = re.compile(r"\s+([,;:!?.](?![\w.]))")


def spoken(text: str, *, numbers: bool = True) -> str:
    """``text`` as it should be read; empty when nothing speakable is left.

    ``numbers`` off leaves figures, dates and abbreviations to the voice, as what is known of them here is
    English.
    """
    # A NUL ends a C string, and "[[" begins Piper's own notation for phonemes.
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in text.splitlines()]
    lines = [_read(re.sub(r"\[\[+|\]\]+", " ", line), numbers) for line in lines]
    read = " ".join(" ".join(filter(None, lines)).split())
    return read if any(c.isalnum() for c in read) else ""


def _read(line: str, numbers: bool) -> str:
    line = _unmarked(line)
    if numbers:
        line = _addresses(line)
        line = _words(line)
        line = read_figures(read_dates(line))
    line = _LEFT_OVER.sub(" ", _EMOJI.sub(" ", line))
    return _SPACED.sub(r"\1", " ".join(line.split()))


def _unmarked(line: str) -> str:
    """``line`` without Markdown's and HTML's marks."""
    line = _TAG.sub(" ", _IMAGE_OR_LINK.sub(r"\1", line))
    line = _LIST.sub(lambda m: f"{m[1]}, " if m[1] else "", _HEADING.sub("", line))
    for marks in (_EMPHASIS, _UNDERLINED):
        line = marks.sub(r"\2", line)
    return re.sub(r"(?<=\S)\s?\|\s?(?=\S)", ", ", line)


def _addresses(line: str) -> str:
    line = _URL.sub(_url, line)
    line = _MAIL.sub(lambda m: f"{_dotted(m[1])} at {_dotted(m[2])}", line)
    line = _DOMAIN.sub(lambda m: _dotted(m[1]), line)
    line = _HASHTAG.sub(lambda m: re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", m[1]), line)
    return _MENTION.sub("at ", line)


def _url(m: re.Match[str]) -> str:
    """The host, and the path where it is words; nobody listens to the rest of an address."""
    address = m[1].rstrip(".,;:!?)")
    tail = m[1][len(address) :].lstrip(")")
    host, _, path = address.partition("/")
    steps = re.split(r"[?#]", path)[0].strip("/").split("/")
    read = [_dotted(host.removeprefix("www."))]
    if len(steps) <= 2 and all(re.fullmatch(r"[A-Za-z-]{2,20}", s) for s in steps):
        read += [step.replace("-", " ") for step in steps]
    return " slash ".join(read) + tail


def _dotted(name: str) -> str:
    return name.replace(".", " dot ").replace("_", " underscore ").replace("+", " plus ")


def _words(line: str) -> str:
    """Abbreviations and Roman numerals in words."""
    line = _TITLE.sub(lambda m: _TITLES[m[1]], line)
    line = _SAINT.sub("Saint", line)
    line = _ROAD.sub(lambda m: _ROADS[m[1]], line)
    for pattern, said in _SHORT:
        line = pattern.sub(said, line)
    line = _DOTTED.sub(lambda m: m[1].replace(".", "") + ("" if m[2].strip() else "."), line)
    line = _INITIAL.sub("", line)
    line = _KING.sub(lambda m: f"{m[1]} the {ordinal(_roman(m[2]))}", line)
    return _COUNTED.sub(lambda m: f"{m[1]} {_roman(m[2])}", line)


def _roman(numeral: str) -> int:
    values = [_ROMAN[c] for c in numeral]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))
