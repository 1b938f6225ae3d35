"""What a question asks for: its words, whom it names, which time and place. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from os1_edge.remember.stem import stem, words
from os1_edge.remember.timespan import Times, read_times

MAX_TERMS = 16
"""Words that are searched for: what is longer is no question, and each costs a list to read."""

STOP_WORDS = frozenset(
    (
        "a", "an", "the", "and", "or", "but", "if", "then", "than", "so", "of", "to", "in", "on", "at",
        "by", "for", "from", "with", "about", "into", "over", "after", "before", "during", "out", "up",
        "down", "off", "again", "as", "is", "are", "was", "were", "be", "been", "being", "am", "do",
        "does", "did", "doing", "done", "have", "has", "had", "having", "will", "would", "shall",
        "should", "can", "could", "may", "might", "must", "i", "me", "my", "mine", "we", "us", "our",
        "ours", "you", "your", "yours", "he", "him", "his", "she", "her", "hers", "it", "its", "they",
        "them", "their", "theirs", "this", "that", "these", "those", "what", "which", "who", "whom",
        "whose", "when", "where", "why", "how", "not", "no", "nor", "only", "own", "same", "such",
        "too", "very", "just", "also", "there", "here", "any", "some", "both", "each", "few", "more",
        "most", "other", "s", "t", "m", "d", "ll", "re", "ve", "don", "now",
    )
)  # fmt: skip
"""English function words; without them BM25 finds 61 % where it found 55 % (LoCoMo, recall@10)."""

_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|month|year|time)|since when)\b", re.I)
_SELF = re.compile(r"\b(?:i|i'm|i've|me|my|mine|myself)\b", re.I)
_PLACE = re.compile(r"\b(?:at|in|near|by|from|inside|outside)\b")

_VAGUE = frozenset(
    (
        "happen", "say", "said", "tell", "told", "talk", "rememb", "know", "go", "went", "see", "saw",
        "thing", "do", "did", "there",
    )
)  # fmt: skip
"""Stems that ask for whatever there is."""

_TELLS_WHEN = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|weeks?|weekend|months?|years?|recently|mon|tues|wednes"
    r"|thurs|fri|satur|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april"
    r"|may|june|july|august|september|october|november|december|since|soon|(?:19|20)\d\d|just|morning|evening"
    r"|night|finally|upcoming|\d+(?:st|nd|rd|th)?)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read."""

    text: str
    plain: str
    """What is embedded: without the names of those who speak, which the speaker of a memory tells better, and
    without a time that is searched by itself."""
    words: tuple[str, ...]
    """Content words in lower case, to look up."""
    terms: tuple[str, ...]
    """Their stems, each once."""
    people: frozenset[str] = frozenset()
    """Speakers named, in lower case."""
    of_wearer: bool = False
    """Asks about the wearer ("my", "I"), or names them."""
    asks_when: bool = False
    times: Times | None = None

    @property
    def vague(self) -> bool:
        """Asks for whatever there is: "what happened yesterday?"."""
        return all(term in _VAGUE for term in self.terms)


def read_question(text: str, now: datetime, people: Collection[str] = (), wearer_name: str = "") -> Question:
    """Reads ``text``.

    Args:
        text: what was asked.
        now: the wearer's local time.
        people: names of those who speak in the memory, beside the wearer.
        wearer_name: the wearer's, where it is known.
    """
    said = text.replace("’", "'")
    named = {name for name in {*people, wearer_name} if name and _names(said, name)}
    times = read_times(said, now)
    plain = said
    if times is not None and times.exact and times.phrase:
        plain = re.sub(re.escape(times.phrase), " ", plain, flags=re.I)
    for name in named:
        shorter = re.sub(rf"\b{re.escape(name)}\b(?:'s)?", " ", plain, flags=re.I)
        if _content(shorter):  # else the name is all there is to look for
            plain = shorter
    content = _content(plain)[:MAX_TERMS]
    own = bool(wearer_name) and wearer_name in named
    others = {name.casefold() for name in named if name != wearer_name}
    return Question(
        text=text,
        plain=" ".join(plain.split()) or said,
        words=tuple(dict.fromkeys(content)),
        terms=tuple(dict.fromkeys(stem(word) for word in content)),
        people=frozenset(others),
        of_wearer=own or (not others and _SELF.search(said) is not None),
        asks_when=_WHEN.search(said) is not None,
        times=times,
    )


def tells_when(text: str) -> bool:
    """Whether ``text`` holds a word of time: where evidence for "when" questions stands."""
    return _TELLS_WHEN.search(text) is not None


def in_place(question: Question, location: str) -> bool:
    """Whether the question asks about a memory's place: "what did I do at the gym?"."""
    place = [word for word in words(location) if word not in STOP_WORDS] if location else []
    if not place or not _PLACE.search(question.text.casefold()):
        return False
    asked = {stem(word) for word in words(question.text)}
    return all(stem(word) in asked for word in place)


def _names(said: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", said, re.I) is not None


def _content(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS]
