"""Whether what a language model wrote rests on what it was given. Pure.

A small model fills a summary with people and places that were never there, and a memory believes what it
reads. So a sentence is kept only when its names and numbers are the source's, and most of its words.
"""

from __future__ import annotations

import re

from os1_edge.remember.sessions import content_words

INVENTED_SHARE = 0.3
"""Share of a sentence's content words that may be the model's own, as far as they tell of telling not at all:
"got up" for "rose"."""

LONGEST = 500
"""Characters of a summary."""

_TELLING = frozenset(
    """wearer user person mentions mentioned asks asked discusses discussed talks talked told says expresses
    expressed conversation day spent spends during while feels wants plans including also
    event""".split()  # noqa: SIM905
)
_REFUSAL = re.compile(
    r"\b(?:as an ai|i(?:'m| am) sorry|i cannot|i can't|not enough|no (?:information|context|summary)"
    r"|unable to|please provide|json|schema)\b|[{}<>|]",
    re.I,
)


def near(word: str, known: set[str]) -> bool:
    """Whether a word in lower case is known, inflection aside."""
    stem = word[: max(4, len(word) - 3)]
    return word in known or (len(word) >= 4 and any(other.startswith(stem) for other in known))


def faithful(text: str, source: str) -> str:
    """The sentences of ``text`` that rest on ``source``, in their order; empty where none does."""
    kept, letters = [], 0
    for sentence in re.findall(r"[^.!?]+[.!?]+(?:[\"”'’](?!\w))?", " ".join(text.split())):
        letters += len(sentence)
        if letters <= LONGEST and unfaithful(sentence.strip(), source) is None:
            kept.append(sentence.strip())
    return " ".join(kept)


def unfaithful(sentence: str, source: str) -> str | None:
    """Why ``sentence`` may not stand for ``source``; ``None`` when it may."""
    if len(sentence) < 8 or len(sentence.split()) < 2:
        return "it is too short"
    if _REFUSAL.search(sentence):
        return "it is no summary"
    known = set(content_words(source))
    if set(re.findall(r"\d+", sentence)) - set(re.findall(r"\d+", source)):
        return "it has a number of its own"
    names = {word.casefold() for word in re.findall(r"(?<!^)\b[A-Z][a-z]+", sentence)}
    if any(not near(name, known) for name in names - _TELLING):
        return "it has a name of its own"
    words = [word for word in content_words(sentence) if word not in _TELLING]
    invented = sum(not near(word, known) for word in words)
    if words and invented > INVENTED_SHARE * len(words):
        return "too much of it was not said or seen"
    return None
