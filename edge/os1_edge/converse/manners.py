"""What a companion keeps to in every reply: its persona, care, length, how much it asks, the language.

Pure but for what it counts, and it counts only what was really said: a turn that is worked on ahead of its
end changes nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime

from os1_edge.config import Converse
from os1_edge.converse import balance, safety
from os1_edge.converse.commands import Command, answer, recognise
from os1_edge.converse.editing import Editor, Limits
from os1_edge.converse.language import LANGUAGES, NAMES, instruction, language_of
from os1_edge.converse.persona import Persona, load, share_of
from os1_edge.converse.plainly import answer as plain_answer
from os1_edge.converse.prompt import GLAD, I_SEE, NO_IDEA, NOTED, NOTHING_IN_VIEW, SORRY, UNKNOWN, Plan
from os1_edge.converse.reminders import found
from os1_edge.converse.texts import text

_LINES = {UNKNOWN: "unknown", NOTHING_IN_VIEW: "nothing in view", NOTED: "noted", NO_IDEA: "no idea",
          SORRY: "sorry", I_SEE: "i see", GLAD: "glad"}  # fmt: skip
"""The prompt's fixed lines, by their names in ``texts``."""


@dataclass(slots=True)
class Manners:
    """One companion's. Use it in one loop."""

    persona: Persona
    limits: Limits
    helpline: str = ""
    spoken: str = "en"
    """Code of the language that the wearer spoke last."""
    follows: bool = True
    """Whether the language is told from the words, or fixed by the settings."""
    reminds: bool = True
    """Whether it may speak first, and so may promise to."""
    confirm_until: datetime | None = None
    """Up to when a yes is awaited."""
    asked: deque[bool] = field(default_factory=lambda: deque(maxlen=balance.REMEMBERED))
    """Of the replies so far, whether each asked something."""

    @staticmethod
    def of(converse: Converse, language: str = "auto") -> Manners:
        """As the settings want them.

        Raises:
            BadFile: the persona cannot be read.
        """
        persona = load(converse.persona)
        share = None if converse.questions is None else share_of(converse.questions)
        limits = Limits(persona.length, persona.questions if share is None else share)
        follows = language not in NAMES
        spoken = "en" if follows else language
        return Manners(persona, limits, converse.helpline, spoken, follows, converse.proactive)

    def language(self, heard: str) -> str:
        """The language to answer ``heard`` in."""
        return language_of(heard, self.spoken) if self.follows else self.spoken

    def minded(self, plan: Plan, heard: str, now: datetime) -> Plan:
        """``plan`` with care where it is needed, in the wearer's language."""
        language = self.language(heard)
        care = safety.care(heard, language, self.helpline)
        if (command := recognise(heard)) is not None and command.kind == "remember" and not care.fixed:
            noted = text("noted", language)
            return replace(plan, fixed=noted, fallback=noted, reason="the wearer wants it remembered")
        ahead = found(heard, now)
        if ahead is not None and ahead.asked:
            reminded = text("will remind" if self.reminds else "noted", language)
            return replace(plan, fixed=reminded, fallback=reminded, mentions=(), reason="a reminder")
        if plan.fallback == NOTED and safety.distress(heard):
            plan = replace(plan, fallback=SORRY)
        told = plan.message.replace(heard, " ")
        if (plainly := plain_answer(heard, now, self.persona.name, told, language)) is not None:
            return replace(plan, fixed=plainly, fallback=plainly, mentions=(), reason="it needs no model")
        if care.fixed:
            return replace(plan, fixed=care.fixed, fallback=care.fixed, reason=care.reason)
        extra = " ".join(filter(None, (care.instruction, instruction(language))))
        return replace(
            plan,
            message=f"{plan.message}\n{extra}" if extra else plan.message,
            fixed=None if plan.fixed is None else _said_in(plan.fixed, language),
            fallback=_said_in(plan.fallback, language),
            closing=care.closing,
        )

    def command(self, heard: str, now: datetime) -> Command | None:
        """What is to be done instead of a reply, if anything. What is to be remembered is: as any turn is."""
        awaited = self.confirm_until is not None and now <= self.confirm_until
        command = (answer(heard) if awaited else None) or recognise(heard)
        return None if command is None or command.kind == "remember" else command

    def editor(self, heard: str, evidence: str, plan: Plan, scene: str) -> Editor:
        """Who edits the reply to ``heard``; see ``Editor``."""
        return Editor(heard, evidence, plan.health, scene, self.limits, tuple(self.asked), plan.closing)

    def replied(self, heard: str, reply: str) -> None:
        """``reply`` was heard, or as much of it as stands there."""
        self.spoken, self.confirm_until = self.language(heard), None
        self.asked.append(balance.asks(reply))


def _said_in(line: str, language: str) -> str:
    return text(_LINES[line], language) if line in _LINES and language in LANGUAGES else line
