"""One reply: recall, prompt, stream; and the conversation that it becomes a part of."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime

from os1_edge.config import Config
from os1_edge.converse.editing import Editor
from os1_edge.converse.manners import Manners
from os1_edge.converse.prompt import Conversation, Notes, Plan, plan, system_message
from os1_edge.converse.safety import must_mind
from os1_edge.offload.engine import Message
from os1_edge.offload.route import Decision, RoutedEngine
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit

CUT = "\u2014"
"""Ends a reply in the conversation that the wearer did not let finish."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn's prompt and what it rests on."""

    heard: str
    time: datetime
    plan: Plan
    prompt: list[Message]
    hits: tuple[Hit, ...]
    scene: str = ""

    @property
    def evidence(self) -> str:
        """All that the prompt tells: facts, what was recalled, the wearer's words; nothing of the reply's."""
        return "\n".join(message.text for message in self.prompt if message.role != "assistant")


class Replier:
    """Answers turns, one after the other."""

    def __init__(self, config: Config, engine: RoutedEngine, memory: Memory) -> None:
        self._settings = config.converse
        self._engine = engine
        self._memory = memory
        self.manners = Manners.of(config.converse, config.hear.language)
        self._system = system_message(self.manners.persona.text)
        self._conversation = Conversation(config.converse.history, config.converse.session_gap_s)

    async def warm(self) -> None:
        """Has the engine read the prompt's beginning ahead of the first turn."""
        await self._engine.prime([self._system, Message("user", "Hello.")])

    async def prepare(self, heard: str, time: datetime, scene: str) -> Asked:
        """Recalls for ``heard`` and writes the prompt. Changes nothing: the turn may never be answered."""
        hits = tuple(await self._memory.recall(heard, time, self._conversation.said(time)))
        health = must_mind(heard, scene, await self._memory.profile())
        planned = self.manners.minded(plan(heard, Notes(time, scene, hits, health)), heard)
        prompt = self._conversation.messages(self._system, planned.message, time)
        return Asked(heard, time, planned, prompt, hits, scene)

    def editor(self, asked: Asked) -> Editor:
        """Who edits the reply to ``asked``."""
        return self.manners.editor(asked.heard, asked.evidence, asked.plan, asked.scene)

    async def prime(self, asked: Asked) -> None:
        """Has the engine read ahead for a turn whose end is still to come."""
        if asked.plan.fixed is None:
            await self._engine.prime(asked.prompt)

    def stream(self, asked: Asked) -> AsyncGenerator[str, None]:
        """The reply's text as it is written.

        Raises:
            EngineError: the engine gave out.
        """
        return self._engine.stream(asked.prompt, self._settings.max_tokens)

    @property
    def decision(self) -> Decision:
        """Where the newest reply was made, and why; known from its first text on."""
        return self._engine.decision

    def keep(self, asked: Asked, heard: str, *, whole: bool) -> None:
        """What the wearer really heard of the reply belongs to the conversation, and nothing else of it."""
        reply = heard if whole else f"{heard} {CUT}".lstrip()
        self._conversation.add(asked.plan.message, asked.heard, reply, asked.time)
        self.manners.replied(asked.heard, heard)

    def forget(self) -> None:
        """The running conversation is over: what was forgotten must not be said again out of it."""
        self._conversation = Conversation(self._settings.history, self._settings.session_gap_s)
