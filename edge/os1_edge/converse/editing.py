"""A reply, edited clause by clause while it is written: what may be spoken, what is left off, where it ends.
Pure, and it keeps what it has let through: the length, the questions and the loops are the whole reply's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from os1_edge.converse import balance, safety
from os1_edge.converse.claims import unfounded
from os1_edge.converse.guard import fault, paints
from os1_edge.converse.question import kind_of, seeks

SENTENCES = 2
"""Of a reply, unless the persona says otherwise."""

LONG = 12
"""Of a reply for which the wearer asked at length; the tokens of a reply bound it further."""

_AT_LENGTH = re.compile(
    r"\b(?:tell|read|sing|write|make up|recite) (?:me |us )?(?:a|an|the|another) (?:\w+ ){0,2}"
    r"(?:story|tale|joke|poem|song|letter|list)\b|\b(?:explain|describe|tell me more|in detail|step by step"
    r"|all about|go on|keep going|recipe|learning plan|plan for|list (?:all|the))\b",
    re.I,
)

_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\ufe0e\ufe0f\u200d\u20e3]"
    r"|(?<!\w)(?::-?[)(DPp/|]|;-?\)|<3|\^_\^|xD)(?!\w)"
)
_STAGE = re.compile(r"\*[^*]{1,40}\*|\((?:smil|laugh|nod|wink|giggl|chuckl)\w*\)", re.I)
"""Stage directions, as chat models write them."""

_SERVES = re.compile(
    r"\b(?:how|what) (?:can|may|could) I (?:assist|help|do for) you\b|\banything else I can\b", re.I
)

_OF_EXAMPLES = re.compile(r"\b(?:cinema|madrid|rose|aunt|cousin)\b|\bnext one comes|\bonly one test", re.I)
"""What the prompt's examples tell of; a test holds them to it."""

_SENTENCE = re.compile(r"[.!?…]+(?:[\"”'’)](?!\w))?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a persona and the wearer's settings allow."""

    sentences: int = SENTENCES
    questions: float = balance.SHARES["some"]
    """Share of the replies that may end with a question."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of a clause."""

    kind: Literal["say", "leave off", "end", "wrong"]
    """"wrong" ends the reply too: the model went astray, and what would follow rests on it."""
    text: str
    reason: str = ""


@dataclass(slots=True)
class Editor:
    """Edits one reply."""

    heard: str
    evidence: str
    """All that the prompt told: facts, what was recalled, the wearer's words; nothing of the companion's."""
    mind: Sequence[str] = ()
    """The profile lines that the turn must mind."""
    scene: str = ""
    limits: Limits = Limits()
    asked: Sequence[bool] = ()
    """Of the replies so far, whether each asked something."""
    closing: str = ""
    """Said at the end, unless the reply itself sends the wearer to somebody."""
    said: str = field(default="", init=False)

    def take(self, clause: str) -> Edit:
        """What becomes of the next clause."""
        clause = cleaned(clause)
        if not re.search(r"\w", clause):
            return Edit("leave off", "", "nothing in it can be said")
        most = LONG if _AT_LENGTH.search(self.heard) else self.limits.sentences
        if len(_SENTENCE.findall(self.said)) >= most and _ended(self.said):
            return Edit("end", "", f"{most} sentences are enough")
        if (found := fault(clause, self.heard, self.mind, self.said, self.evidence)) is not None:
            return Edit("wrong", "", found)
        if not seeks(self.heard) and borrows(clause, f"{self.heard} {self.evidence}"):
            return Edit("wrong", "", "it is of an example")
        if _SERVES.search(clause):
            return Edit("leave off", "", "a friend is no help desk")
        if (found := unfounded(self._sentence(clause), self.evidence, self.heard)) is not None:
            return Edit("wrong", "", found)
        if dose := safety.doses(clause, self.evidence):
            return Edit("wrong", "", f"it names a dose of its own: {dose}")
        if kind_of(self.heard) != "view question" and paints(self._sentence(clause), self.scene):
            return Edit("leave off", "", "it describes the picture for its own sake")
        if balance.asks(clause) and not self._may_ask():
            return Edit("leave off", "", "the wearer was asked enough")
        self.said = f"{self.said} {clause}".lstrip()
        return Edit("say", clause)

    def last(self) -> str:
        """What is still to be said when the model is done; mostly nothing."""
        if not self.closing or safety.refers(self.said):
            return ""
        self.said = f"{self.said} {self.closing}".lstrip()
        return self.closing

    def _may_ask(self) -> bool:
        """A reply that is nothing but a question is an answer to something: two in a row are a habit."""
        if not self.said and self.limits.questions > 0 and not (self.asked and self.asked[-1]):
            return True
        return balance.may_ask(self.limits.questions, self.asked, self.heard).yes

    def _sentence(self, clause: str) -> str:
        """The sentence that ``clause`` goes on with, as far as it is written."""
        begun = "" if _ended(self.said) else _SENTENCE.split(self.said)[-1]
        return f"{begun.strip()} {clause}".lstrip()


def borrows(clause: str, known: str) -> bool:
    """Whether ``clause`` tells what the prompt's examples tell, and nothing ``known`` does."""
    found = _OF_EXAMPLES.search(clause)
    if found is None:
        return False
    word = {"next one comes": "bus", "only one test": "test"}.get(found[0].lower(), found[0].lower())
    return word not in known.lower()


def cleaned(clause: str) -> str:
    """``clause`` without emoji and stage directions."""
    return " ".join(_STAGE.sub(" ", _EMOJI.sub(" ", clause)).split()).strip(" *_#")


def _ended(said: str) -> bool:
    return not said or said.rstrip(" \"”’')").endswith((".", "!", "?", "…"))
