"""The reply's prompt. Pure. Its beginning stays the same byte for byte from turn to turn, so that the model
reads only what is new: persona and profile first, then the conversation as it was sent, then this turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files

from os1_edge.converse.address import addressed
from os1_edge.converse.question import kind_of
from os1_edge.offload.engine import Message
from os1_edge.remember.recall import Hit

ANSWER = "Answer the wearer with the fact that answers this."
ADMIT = 'You do not know this yet. Reply: "I do not know that yet."'
TALK = "Reply kindly to the wearer in one short sentence."
REACT = 'Reply kindly to what the wearer said, with "you".'


_OWN = re.compile(r"\b(?:I|I'm|me|my|mine|we|us|our)\b", re.I)
"""A question with one of these is about the wearer: without a fact there is no answer to it."""


def persona() -> str:
    """Who OS-1 is and how it answers: ``prompts/reply.md``."""
    return files("os1_edge.converse").joinpath("prompts/reply.md").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Notes:
    """What the reply may rest on."""

    time: datetime
    scene: str
    recalled: tuple[Hit, ...] = ()


def system_message(health: Sequence[str]) -> Message:
    """The persona, and what must never be forgotten: allergies and the like."""
    known = "".join(f"\nYou know about the wearer: {addressed(line)}" for line in health)
    return Message("system", persona() + known)


def ask(heard: str, notes: Notes) -> str:
    """The user message of a turn: its facts, what was heard, what to do."""
    kind = kind_of(heard)
    facts = [f"Fact from {_when(hit, notes.time)}: {addressed(hit.text)}" for hit in notes.recalled]
    seen = notes.scene[:1].lower() + notes.scene[1:]
    if kind == "view question":
        facts = [f"Fact in view now: You see {seen}"] if seen else []
    if kind == "statement":
        return "\n".join([*facts, f"The wearer says: {heard}", REACT])
    task = ANSWER if facts else ADMIT if _OWN.search(heard) else TALK
    return "\n".join([*facts, f"The wearer asks: {heard}", task])


def _when(hit: Hit, now: datetime) -> str:
    if hit.time.date() == now.date():
        return f"today at {hit.time:%H:%M}"
    return f"{hit.time:%A} {hit.time.day} {hit.time:%B}"


@dataclass(slots=True)
class Conversation:
    """The running exchange. Bounded: when it is full, its older half is dropped at once, because each
    dropping makes the model read the rest again."""

    limit: int
    _exchanges: list[tuple[str, str, str]] = field(default_factory=list)
    _last: datetime | None = None

    def messages(self, system: Message, asked: str) -> list[Message]:
        """The whole prompt for ``asked``."""
        out = [system]
        for message, _, reply in self._exchanges:
            out += [Message("user", message), Message("assistant", reply)]
        return [*out, Message("user", asked)]

    def said(self) -> Sequence[str]:
        """What the wearer said in the exchanges that the prompt holds."""
        return [heard for _, heard, _ in self._exchanges]

    def begin(self, time: datetime, gap_s: float) -> None:
        """A turn begins at ``time``; after ``gap_s`` of idle time it opens a new conversation."""
        if self._last is not None and (time - self._last).total_seconds() > gap_s:
            self._exchanges.clear()
        self._last = time

    def add(self, message: str, heard: str, reply: str) -> None:
        """The exchange as it was sent and spoken."""
        if self.limit == 0:
            return
        if len(self._exchanges) >= self.limit:
            del self._exchanges[: (self.limit + 1) // 2]
        self._exchanges.append((message, heard, reply))
