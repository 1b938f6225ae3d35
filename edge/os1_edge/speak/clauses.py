"""Cuts a reply into clauses while it is still being written, so that the first can be spoken early. Pure."""

from __future__ import annotations

import re

FIRST_CLAUSE = 12
"""Characters that a clause ended by a comma needs to be worth speaking alone."""

LONGEST = 220
"""Characters after which a clause is cut at a space, whatever comes."""

ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|approx|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|No"
    r"|e\.g|i\.e|a\.m|p\.m)|\b[A-Za-z])\.$"
)
"""A full stop behind one of these, or behind a single letter, does not end a sentence."""

BOUNDARY = re.compile(r"[.!?…]+[\"')\]]*(?=\s)|[,;:](?=\s)|\s[-–—](?=\s)|\n+")


class ClauseSplitter:
    """Takes text as it comes; gives clauses that can be spoken.

    A clause ends at a sentence's end, or at a comma, colon or dash once it is long enough. A mark is only
    taken for an end when what follows it has come, so "3.14" and "Dr. Lee" stay whole.
    """

    def __init__(self) -> None:
        self._text = ""

    def add(self, text: str) -> list[str]:
        """Takes more text; returns the clauses that are now complete."""
        self._text += text
        out: list[str] = []
        while (cut := self._cut()) is not None:
            clause, self._text = self._text[:cut].strip(), self._text[cut:].lstrip()
            if clause:
                out.append(clause)
        return out

    def finish(self) -> list[str]:
        """The text has ended: what is left is the last clause."""
        rest, self._text = self._text.strip(), ""
        return [rest] if rest else []

    def _cut(self) -> int | None:
        for mark in BOUNDARY.finditer(self._text):
            if mark.end() > LONGEST:
                break
            before = self._text[: mark.end()]
            if mark[0][0] == "." and ABBREVIATION.search(before):
                continue
            if mark[0].strip()[:1] in tuple(",;:-–—") and len(before.strip()) < FIRST_CLAUSE:
                continue
            return mark.end()
        if len(self._text) > LONGEST:
            return self._text.rfind(" ", 0, LONGEST) + 1 or LONGEST
        return None
