"""One reply: recall, prompt, stream; and the conversation that it becomes a part of."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime

from os1_edge.config import Config
from os1_edge.converse.food import concerns_food
from os1_edge.converse.prompt import Conversation, Notes, Plan, plan, system_message
from os1_edge.offload.engine import LanguageEngine, Message
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn's prompt and what it rests on."""

    heard: str
    plan: Plan
    prompt: list[Message]
    hits: tuple[Hit, ...]


class Replier:
    """Answers turns, one after the other."""

    def __init__(self, config: Config, engine: LanguageEngine, memory: Memory) -> None:
        self._settings = config.converse
        self._engine = engine
        self._memory = memory
        self._conversation = Conversation(config.converse.history)

    async def warm(self) -> None:
        """Has the engine read the prompt's beginning ahead of the first turn."""
        prompt = [system_message(), Message("user", "Hello.")]
        async for _ in self._engine.stream(prompt, 1):
            pass

    async def prepare(self, heard: str, time: datetime, scene: str) -> Asked:
        """Recalls for ``heard`` and writes the prompt."""
        self._conversation.begin(time, self._settings.session_gap_s)
        hits = tuple(await self._memory.recall(heard, time, self._conversation.said()))
        health: tuple[str, ...] = ()
        if concerns_food(heard):
            health = tuple(e.text for e in await self._memory.profile() if e.kind == "health")
        planned = plan(heard, Notes(time, scene, hits, health))
        return Asked(heard, planned, self._conversation.messages(system_message(), planned.message), hits)

    def stream(self, asked: Asked) -> AsyncGenerator[str, None]:
        """The reply's text as it is written.

        Raises:
            EngineError: the engine gave out.
        """
        return self._engine.stream(asked.prompt, self._settings.max_tokens)

    def keep(self, asked: Asked, spoken: str) -> None:
        """What was really spoken belongs to the conversation."""
        self._conversation.add(asked.plan.message, asked.heard, spoken)
