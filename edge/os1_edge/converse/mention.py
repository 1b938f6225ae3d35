"""Something that a reply should name, and a sentence that names it where the reply does not. Pure.

A small model answers a statement kindly and forgets the fact beside it. Telling it twice makes it read the
fact aloud instead; so the fact is said behind its words, unless they hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from os1_edge.converse.evidence import against
from os1_edge.converse.safety import barred
from os1_edge.remember.grounding import near
from os1_edge.remember.sessions import content_words

_SAYING = frozenset("mind remember told nice there how about you your have fact".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Mention:
    """A sentence, and the words of which one is enough."""

    sentence: str
    words: frozenset[str]
    must: bool = False
    """It must not be left unsaid, whatever else is."""

    @staticmethod
    def of(sentence: str, heard: str) -> Mention:
        """One that is named by any of its content words that the wearer did not use."""
        return Mention(sentence, frozenset(content_words(sentence)) - set(content_words(heard)) - _SAYING)

    @staticmethod
    def warning(sentence: str, line: str) -> Mention:
        """One of what the wearer must not have: named by a word for it, or as what it is."""
        own = {
            word for word in content_words(line) if word.startswith(("allerg", "intoler", "diabet", "vega"))
        }
        return Mention(sentence, barred(line) | against(line) | own, must=True)

    def named_in(self, reply: str) -> bool:
        """Whether ``reply`` names it."""
        said = set(content_words(reply))
        return not self.words or any(near(word, said) for word in self.words)


def unnamed(mentions: Sequence[Mention], reply: str) -> list[Mention]:
    """What is to be said behind ``reply``: all that must be, and one of the rest, the first, where it lacks
    them."""
    if any(m.named_in(reply) for m in mentions if not m.must):
        rest: list[Mention] = []
    else:
        rest = [m for m in mentions if not m.must][:1]
    return [*(m for m in mentions if m.must and not m.named_in(reply)), *rest]
