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
MIND = 'Reply kindly to what the wearer said, with "you".'

UNKNOWN = "I do not know that yet."
NOTHING_IN_VIEW = "I cannot make out anything right now."
NOTED = "I will remember that."
NO_IDEA = "I do not know what to say to that."


_OWN = re.compile(r"\b(?:I|I'm|(?<!tell )(?<!remind )me|my|mine|we|us|our)\b", re.I)
"""A question with one of these is about the wearer: without a fact there is no answer to it."""


def rules() -> str:
    """What every persona keeps to: ``prompts/reply.md``."""
    return files("os1_edge.converse").joinpath("prompts/reply.md").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Notes:
    """What the reply may rest on."""

    time: datetime
    scene: str
    recalled: tuple[Hit, ...] = ()
    health: tuple[str, ...] = ()
    """Profile lines that must not be forgotten in this turn: allergies, when it is about food."""


def system_message(
    persona: str = "You are OS-1, a warm companion who lives in the wearer's glasses.",
) -> Message:
    """The persona and the rules that it keeps to."""
    return Message("system", f"{persona} {rules()}")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a turn is to be answered."""

    message: str
    """The user message for the model: facts, what was heard, what to do."""
    fixed: str | None
    """The whole reply, where no model is needed: nothing known or in view answers the question."""
    fallback: str
    """What to say when the model gives nothing that can be spoken."""
    health: tuple[str, ...] = ()
    """The profile lines that the reply must mind."""
    closing: str = ""
    """Said at the end, unless the reply sends the wearer to somebody itself."""
    reason: str = "nothing known or in view answers it"
    """Why ``fixed`` is the reply."""


def plan(heard: str, notes: Notes) -> Plan:
    """Decides how to answer ``heard`` from ``notes``."""
    kind = kind_of(heard)
    known = [addressed(hit.text) for hit in notes.recalled]
    facts = [f"Fact from {_when(h, notes.time)}: {k}" for h, k in zip(notes.recalled, known, strict=True)]
    health = [line for text in notes.health if (line := addressed(text)) not in known]
    if kind == "statement":
        if not health:
            return Plan(heard, None, NOTED)
        minded = [f"Fact: {line}" for line in health]
        return Plan("\n".join([*minded, f"The wearer says: {heard}", MIND]), None, health[0], notes.health)
    if kind == "view question":
        seen = f"You see {notes.scene[:1].lower()}{notes.scene[1:]}"
        known, facts = ([seen], [f"Fact in view now: {seen}"]) if notes.scene else ([], [])
    facts = [*(f"Fact: {line}" for line in health), *facts]
    if facts:
        # What to do first: it is read ahead while the wearer still speaks.
        message = "\n".join([ANSWER, *facts, f"The wearer asks: {heard}"])
        return Plan(message, None, (health or known)[0], notes.health)
    if kind == "view question":
        return Plan(heard, NOTHING_IN_VIEW, NOTHING_IN_VIEW)
    return Plan(heard, UNKNOWN if _OWN.search(heard) else None, NO_IDEA)


def _when(hit: Hit, now: datetime) -> str:
    if hit.time.date() == now.date():
        return f"today at {hit.time:%H:%M}"
    return f"{hit.time:%A} {hit.time.day} {hit.time:%B}"


@dataclass(slots=True)
class Conversation:
    """The running exchange. Bounded: when it is full, its older half is dropped at once, because each
    dropping makes the model read the rest again. Only ``add`` changes it: a turn that is worked on ahead of
    its end, and then withdrawn, leaves no trace."""

    limit: int
    gap_s: float = 1200.0
    """Idle time after which a turn opens a new conversation."""
    _exchanges: list[tuple[str, str, str]] = field(default_factory=list)
    _last: datetime | None = None

    def messages(self, system: Message, asked: str, time: datetime) -> list[Message]:
        """The whole prompt for ``asked`` at ``time``."""
        out = [system]
        for message, _, reply in self._going_on(time):
            out += [Message("user", message), Message("assistant", reply)]
        return [*out, Message("user", asked)]

    def said(self, time: datetime) -> Sequence[str]:
        """What the wearer said in the exchanges that the prompt at ``time`` holds."""
        return [heard for _, heard, _ in self._going_on(time)]

    def add(self, message: str, heard: str, reply: str, time: datetime) -> None:
        """The exchange as it was sent, and as much of the reply as was heard."""
        self._exchanges = self._going_on(time)
        self._last = time
        if self.limit == 0:
            return
        if len(self._exchanges) >= self.limit:
            del self._exchanges[: (self.limit + 1) // 2]
        self._exchanges.append((message, heard, reply))

    def _going_on(self, time: datetime) -> list[tuple[str, str, str]]:
        idle = self._last is not None and (time - self._last).total_seconds() > self.gap_s
        return [] if idle else self._exchanges
