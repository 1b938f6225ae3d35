"""One reply: recall, prompt, stream; and the conversation that it becomes a part of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from os1_edge.config import Config
from os1_edge.converse.food import concerns_food
from os1_edge.converse.prompt import Conversation, Notes, ask, persona
from os1_edge.offload.engine import LanguageEngine, Message
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn's message to the model and what it rests on."""

    message: str
    hits: tuple[Hit, ...]


class Replier:
    """Answers turns, one after the other."""

    def __init__(self, config: Config, engine: LanguageEngine, memory: Memory) -> None:
        self._settings = config.converse
        self._engine = engine
        self._memory = memory
        self._conversation = Conversation(config.converse.history)

    async def warm(self) -> None:
        """Has the engine read the persona ahead of the first turn."""
        prompt = [Message("system", persona()), Message("user", "Hello.")]
        async for _ in self._engine.stream(prompt, 1):
            pass

    async def prepare(self, heard: str, notes: Notes, things: Sequence[str]) -> Asked:
        """Recalls for ``heard`` and writes the message; ``things`` are the labels in view."""
        self._conversation.begin(notes.time, self._settings.session_gap_s)
        hits = tuple(await self._memory.recall(heard, notes.time, self._conversation.said()))
        must: tuple[str, ...] = ()
        if concerns_food(heard, things):
            known = {hit.text for hit in hits}
            health = [e.text for e in await self._memory.profile() if e.kind == "health"]
            must = tuple(text for text in health if text not in known)
        return Asked(ask(heard, replace(notes, recalled=hits, must_know=must)), hits)

    async def stream(self, heard: str, message: str) -> AsyncIterator[str]:
        """The reply's text as it is written; then it belongs to the conversation."""
        reply = ""
        async for text in self._engine.stream(
            self._conversation.messages(message), self._settings.max_tokens
        ):
            reply += text
            yield text
        self._conversation.add(message, heard, reply)
