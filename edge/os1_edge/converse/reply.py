"""One reply: recall, prompt, stream; and the conversation that it becomes a part of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from os1_edge.config import Config
from os1_edge.converse.prompt import Conversation, Notes, ask, system_message
from os1_edge.offload.engine import LanguageEngine, Message
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn's prompt and what it rests on."""

    heard: str
    message: str
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
        prompt = [await self._system(), Message("user", "Hello.")]
        async for _ in self._engine.stream(prompt, 1):
            pass

    async def prepare(self, heard: str, time: datetime, scene: str) -> Asked:
        """Recalls for ``heard`` and writes the prompt."""
        self._conversation.begin(time, self._settings.session_gap_s)
        hits = tuple(await self._memory.recall(heard, time, self._conversation.said()))
        message = ask(heard, Notes(time, scene, hits))
        return Asked(heard, message, self._conversation.messages(await self._system(), message), hits)

    async def stream(self, asked: Asked) -> AsyncIterator[str]:
        """The reply's text as it is written; then it belongs to the conversation."""
        reply = ""
        async for text in self._engine.stream(asked.prompt, self._settings.max_tokens):
            reply += text
            yield text
        self._conversation.add(asked.message, asked.heard, reply)

    async def _system(self) -> Message:
        return system_message([e.text for e in await self._memory.profile() if e.kind == "health"])
