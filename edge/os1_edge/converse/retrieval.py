"""The information retrieval agent (paper 3.2.5): a proposer says what to look up, the worker looks it up in
the memory, a reporter says in a sentence what matters of it.

Two language jobs and a few searches: seconds on a small device, so it mostly works ahead of the reply that
uses it. Whatever the models do, the worker's finds are the memory's own rows, and a report that says more
than them is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from os1_edge.converse import evidence
from os1_edge.converse.address import addressed
from os1_edge.converse.jobs import LanguageJob, ask
from os1_edge.offload.engine import EngineError, LanguageEngine
from os1_edge.remember.grounding import faithful
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit

Query = Annotated[str, Field(min_length=3, max_length=60)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Queries(_Answer):
    """What to look up."""

    history: Annotated[list[Query], Field(max_length=3)]
    profile: Annotated[list[Query], Field(max_length=2)]


class Reported(_Answer):
    """What matters of what was found."""

    report: Annotated[str, Field(min_length=8, max_length=240)]


PROPOSE = LanguageJob("propose", Queries, 80, budget="plan", seconds=8.0)
REPORT = LanguageJob("report", Reported, 80, budget="plan", seconds=8.0)

MOST_FOUND = 6
"""Memories that a report is made of: a sentence cannot hold more."""


_TOLD_OF = "likes loves enjoys prefers dislikes hates"
"""Verbs that a report may have of its own: "I like tea" becomes "the wearer likes tea"."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked up for a turn, and what matters of it."""

    heard: str
    """What the wearer had said."""
    queries: tuple[str, ...]
    hits: tuple[Hit, ...]
    text: str
    """A sentence or two about "the wearer"; empty where nothing was found."""
    by: str
    """"model" or "rule": who wrote the text."""


class RetrievalAgent:
    """Looks up what a reply should know. Use it in one loop."""

    def __init__(self, engine: LanguageEngine, memory: Memory) -> None:
        self._engine = engine
        self._memory = memory

    async def work(
        self, heard: str, conversation: str, place: str, action: str, now: datetime, said: Sequence[str]
    ) -> Report:
        """The report for a reply to ``heard``.

        Args:
            heard: what the wearer said.
            conversation: its last lines, as "Wearer: …" and "Companion: …".
            place: location and activity.
            action: what the strategy wants of the reply.
            now: the wearer's time.
            said: what the prompt holds already.

        Raises:
            Busy: somebody waits for the engine.
        """
        proposed = await self._propose(conversation, place, action)
        wanted = proposed or evidence.queries(heard, now)
        hits = await self.look_up(wanted, now, said)
        if not hits:
            return Report(heard, tuple(wanted), (), "", "rule")
        text = await self._report(hits, conversation)
        by = "model" if text else "rule"
        return Report(heard, tuple(wanted), hits, text or joined(hits), by)

    async def look_up(self, queries: Sequence[str], now: datetime, said: Sequence[str]) -> tuple[Hit, ...]:
        """The worker: what the memory holds for ``queries``, the best first, each once."""
        found: dict[str, Hit] = {}
        for query in queries:
            for hit in await self._memory.recall(query, now, said):
                if hit.score >= evidence.SUGGESTED:
                    found.setdefault(hit.text.casefold(), hit)
        return tuple(sorted(found.values(), key=lambda hit: -hit.score)[:MOST_FOUND])

    async def _propose(self, conversation: str, place: str, action: str) -> tuple[str, ...]:
        try:
            answer = await ask(
                self._engine, PROPOSE, conversation=conversation, place=place, action=action or "answer"
            )
        except (EngineError, TimeoutError):
            return ()
        return tuple(dict.fromkeys([*answer.history, *answer.profile])) if answer is not None else ()

    async def _report(self, hits: Sequence[Hit], conversation: str) -> str:
        notes = "\n".join(f"- {hit.text}" for hit in hits)
        try:
            answer = await ask(self._engine, REPORT, notes=notes, conversation=conversation)
        except (EngineError, TimeoutError):
            return ""
        return reported(answer.report, notes) if answer is not None else ""


def reported(text: str, notes: str) -> str:
    """The sentences of the reporter's ``text`` that say no more than ``notes``."""
    return faithful(text, f"{notes} {_TOLD_OF}")


def joined(hits: Sequence[Hit]) -> str:
    """A report by rule: the two best, turned to the wearer."""
    return " ".join(addressed(hit.text) for hit in hits[:2])
