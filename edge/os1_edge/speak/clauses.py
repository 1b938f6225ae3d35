"""Cuts a reply into clauses while it is still being written, so that the first can be spoken early. Pure.

A mark is judged by what stands before it and by the word behind it, and only when that word is there: the
same text gives the same clauses however it is chopped up on its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SOFT = (12, 40, 80)
"""Characters that the first, second and any later clause needs to end at a comma, colon or dash. The first is
heard as soon as can be; behind it there is time to let a sentence stay whole, which sounds better."""

EARLY = 16
"""Characters after which the first clause may end before a conjunction, without a mark."""

LONGEST = 220
"""Characters after which a clause is cut at a space, whatever comes."""

LOOK_AHEAD = 16
"""Characters of the next word that a decision may need."""

_ALWAYS = (
    "Dr|Mr|Mrs|Ms|Mx|Prof|St|Mt|Ft|Rev|Hon|Gen|Col|Capt|Lt|Sgt|Sen|Rep|Gov|Pres|Messrs|Mme|Mlle|Hr|Fr|vs|approx|ca|cf"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Fri|Nos?|Nr|Vol|Fig|Figs|Sec|Ch|pp?|Ave|Blvd|Rd"
    r"|Bros|Dept|Univ|Assn|e\.g|i\.e|z\.B|d\.h|bzw|usw|p\.ex"
)
_PERHAPS = (
    r"etc|Jr|Sr|Inc|Ltd|Co|Corp|LLC|am|pm|al|Esq|Ph\.D"
    r"|(?:[A-Za-z]\.)+[A-Za-z]|[A-Za-z]"  # a.m., U.S., an initial
)
ABBREVIATION = re.compile(rf"(?:^|[\s(\[\"'“‘*_/-])(?:{_ALWAYS})\.$", re.IGNORECASE)
"""A full stop behind one of these does not end a sentence."""

PERHAPS = re.compile(rf"(?:^|[\s(\[\"'“‘*_/\d-])(?:{_PERHAPS})\.$")
"""A full stop behind one of these ends a sentence if the next word is one that begins sentences."""

WORDS_NOT_ABBREVIATIONS = re.compile(
    r"(?:^|\s)(?:mon|fri|mar|sec|no|fig|co|am|sen|gen|col|rep|jun|dec|p|pp|ch|st|ave|fr)\.$"
)
"""Lower case, these are words, or so rare as an abbreviation that a word is likelier: "Oh no. It rains"."""

STARTERS = frozenset(
    [
        "The",
        "It",
        "You",
        "Your",
        "I",
        "We",
        "He",
        "She",
        "They",
        "There",
        "This",
        "That",
        "These",
        "Those",
        "If",
        "So",
        "But",
        "And",
        "Would",
        "Could",
        "Should",
        "Do",
        "Does",
        "Did",
        "What",
        "When",
        "Where",
        "Who",
        "Why",
        "How",
        "Yes",
        "No",
        "Please",
        "Then",
        "After",
        "Before",
        "Also",
        "Now",
        "My",
        "His",
        "Her",
        "Our",
        "Their",
        "In",
        "On",
        "At",
    ]
)
MONTHS = frozenset(
    [
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
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Sept",
        "Oct",
        "Nov",
        "Dec",
        "Januar",
        "Februar",
        "März",
        "Mai",
        "Juni",
        "Juli",
        "Oktober",
        "Dezember",
    ]
)
_WEEKDAY = re.compile(r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun)\.?,$")

_CLOSERS = r"[\"'”’)\]»*_~]*"
CANDIDATE = re.compile(
    rf"[.!?…]+{_CLOSERS}(?=\s)|[,;:]{_CLOSERS}(?=\s)|(?<=\s)[-–—](?=\s)|(?<=\w)—(?=\w)|\n|[。！？；…]+[」』”’）]*|[，、：]"
    r"|(?=\s(?:but|because|so|which|while|although|unless|until|though)\s)"
    r"|(?=\sand\s(?:you|it|he|she|we|they|I|the|your|then|there|that)\s)"
)
_WIDE = "。！？；，、：」』）"
_SOFT_MARKS = ",;:-–—，、："


class ClauseSplitter:
    """Takes text as it comes; gives clauses that can be spoken.

    Joined, the clauses are the text, but for white space.
    """

    def __init__(self) -> None:
        self._text = ""
        self._given = 0

    def add(self, text: str) -> list[str]:
        """Takes more text; returns the clauses that are now complete."""
        self._text = _tidy(self._text + text)
        return list(self._clauses(last=False))

    def finish(self) -> list[str]:
        """The text has ended: returns the clauses that are left."""
        out = list(self._clauses(last=True))
        if rest := self._text.strip():
            out.append(rest)
        self._text, self._given = "", 0
        return out

    def _clauses(self, *, last: bool) -> Iterator[str]:
        while (cut := self._cut(last)) is not None:
            clause, self._text = self._text[:cut].strip(), self._text[cut:].lstrip()
            if clause:
                self._given += 1
                yield clause

    def _cut(self, last: bool) -> int | None:
        """Where the next clause ends; ``None`` while that cannot be told."""
        text = self._text
        for mark in CANDIDATE.finditer(text):
            if mark.end() > LONGEST:
                break
            ends = self._ends(mark, last)
            if ends is None:
                return None
            if ends:
                return mark.end()
        if len(text) > LONGEST + LOOK_AHEAD + 2 or (last and len(text) > LONGEST):
            return _forced(text)
        return None

    def _ends(self, mark: re.Match[str], last: bool) -> bool | None:
        """Whether a clause ends at ``mark``; ``None`` if that depends on text that has not come."""
        before, after = self._text[: mark.end()], self._text[mark.end() :]
        found = mark[0]
        if found == "\n":
            return True
        if not found:
            return self._given == 0 and len(before) >= EARLY
        if found[0] in _WIDE:
            return found[0] not in _SOFT_MARKS or len(before) >= SOFT[min(self._given, 2)] // 2
        word = re.match(r"\s*(\w*)", after)
        assert word is not None
        whole = last or word.end() < len(after) or len(word[1]) >= LOOK_AHEAD
        if not after.strip() and not last:
            return None
        if before.count("`") % 2:
            return False
        if found[0] in _SOFT_MARKS:
            return self._soft(before, after.strip(), word[1], whole)
        return _sentence_ends(before, found, after.strip(), word[1], whole)

    def _soft(self, before: str, after: str, word: str, whole: bool) -> bool | None:
        if len(before) < SOFT[min(self._given, 2)]:
            return False
        head = before[:-1].rstrip()
        if head[-1:].isdigit() and after[:1].isdigit():  # Jan. 5, 2026; 1, 2 and 3; 5 - 6
            return False
        if _WEEKDAY.search(before):
            return word not in MONTHS if whole else None
        return True


def clauses_of(text: str) -> Iterator[str]:
    """The clauses of a text that is there; handed to the splitter piece by piece, as it may be long."""
    splitter = ClauseSplitter()
    for at in range(0, len(text), LONGEST):
        yield from splitter.add(text[at : at + LONGEST])
    yield from splitter.finish()


def _tidy(text: str) -> str:
    """``text`` without leading white space, every run of it one space, or one line break if it holds one."""
    return re.sub(r"\s+", lambda m: "\n" if "\n" in m[0] else " ", text.lstrip())


def _sentence_ends(before: str, found: str, after: str, word: str, whole: bool) -> bool | None:
    """Whether a sentence ends at ``found``, the mark that ends ``before``."""
    stop = found.rstrip("\"'”’)]»*_~")
    if stop != ".":
        return True
    head = before[: len(before) - len(found) + 1]
    if re.search(r"^\W*\d{1,3}\.$", head):  # a list's number
        return False
    if WORDS_NOT_ABBREVIATIONS.search(head):
        return not after[:1].isdigit()
    if ABBREVIATION.search(head):
        return False
    if PERHAPS.search(head):
        return word in STARTERS if whole else None
    if re.search(r"(?:^|\s)\d{1,2}\.$", head) and word[:1].isalpha():  # am 5. Mai
        return word not in MONTHS if whole else None
    return not after[:1].islower()


def _forced(text: str) -> int:
    """Where a text that has no mark is cut: at a space, better not behind a number or an abbreviation."""
    spaces = [m.start() for m in re.finditer(r"\s", text[:LONGEST])]
    good = [at for at in spaces if at and text[at - 1] != "." and not text[at - 1].isdigit()]
    return (good or spaces or [LONGEST - 1])[-1] + 1
