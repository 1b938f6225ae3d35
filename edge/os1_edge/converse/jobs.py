"""The language jobs that the memory needs, as data: a prompt file, the shape of the answer, a bound.

The answer is JSON, constrained by a grammar to the shape (a pydantic model). What does not fit it all the
same is asked for once more; then the job has no answer, and the memory's own rules stand in. Jobs run in the
background: they make way for whoever waits.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from os1_edge.offload.engine import LanguageEngine, Message, Preempted, Schema, Task
from os1_edge.remember.chores import Busy
from os1_edge.remember.keys import Keys
from os1_edge.remember.profile import Candidate, telling
from os1_edge.remember.revise import Proposal
from os1_edge.remember.rows import WEARER, StoredContext, StoredEvent, StoredTurn
from os1_edge.remember.sessions import content_words

TRIES = 2
"""How often a job is asked for before it has no answer."""

LINE = 200
"""Characters of one note or utterance in a prompt."""

PAGE = 2400
"""Characters of all of them: about 600 tokens, so that a job reads in a second or two and leaves the
conversation its room."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Phrase = Annotated[str, Field(min_length=2, max_length=60)]


class EventSentence(_Answer):
    """What the wearer did."""

    sentence: Annotated[str, Field(min_length=8, max_length=200)]


class SessionSummary(_Answer):
    """What was talked of."""

    summary: Annotated[str, Field(min_length=8, max_length=500)]


class IndexPhrases(_Answer):
    """The phrases by which a memory is looked for."""

    temporal: Annotated[list[Phrase], Field(max_length=3)]
    spatial: Annotated[list[Phrase], Field(max_length=3)]
    semantic: Annotated[list[Phrase], Field(max_length=4)]


class Rating(_Answer):
    """Emotional arousal."""

    importance: Annotated[int, Field(ge=1, le=10)]


class Fact(_Answer):
    """Something that the wearer said of themselves."""

    quote: Annotated[str, Field(min_length=3, max_length=LINE)]
    kind: Literal["personality", "preference", "social background", "habit", "health"]
    text: Annotated[str, Field(pattern=r"^The wearer [a-z][a-zA-Z0-9 ,'-]+[.]$")]


class Facts(_Answer):
    """All that an exchange tells."""

    facts: Annotated[list[Fact], Field(max_length=4)]


class Revised(_Answer):
    """What becomes of two lines of the profile."""

    verdict: Literal["both", "one", "over"]
    text: Annotated[str, Field(pattern=r"^The wearer [a-z][a-zA-Z0-9 ,'-]+[.]$")]


A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class LanguageJob(Generic[A]):
    """One kind of work for a language model."""

    prompt: str
    """Name of the file in ``prompts``: a system message, then examples and the question under "## user" and
    "## assistant"; ``{name}`` is filled in, in the last part only."""
    answer: type[A]
    max_tokens: int
    """Bound of the answer."""
    own_words: bool = False
    """Whether an answer that borrows from the examples is no answer."""
    budget: Task = "consolidate"
    """Task class: decides where it may be worked on."""
    seconds: float = 60.0
    """Bound of each answer's making."""


EVENT = LanguageJob("summarise_event", EventSentence, 90, own_words=True)
SESSION = LanguageJob("summarise_session", SessionSummary, 150, own_words=True)
KEYS = LanguageJob("index_keys", IndexPhrases, 150)
IMPORTANCE = LanguageJob("importance", Rating, 12)
PROFILE = LanguageJob("profile", Facts, 240)
REVISE = LanguageJob("revise_profile", Revised, 90)


_PLAIN = frozenset(
    ("wearer", "companion", "sentence", "summary", "seen", "place", "activity", "asked", "asks")
)
"""Words of the examples that any answer may have."""


@cache
def parts(name: str) -> tuple[Message, ...]:
    """The messages of a prompt file, the system's first."""
    text = files("os1_edge.converse").joinpath(f"prompts/{name}.md").read_text("utf-8")
    system, *rest = re.split(r"^## (user|assistant)\n", text, flags=re.M)
    messages = [Message("system", system.strip())]
    for role, part in zip(rest[::2], rest[1::2], strict=True):
        messages.append(Message("user" if role == "user" else "assistant", part.strip()))
    return tuple(messages)


def prompt_of(job: LanguageJob[A], slots: Mapping[str, str]) -> list[Message]:
    """The whole prompt of ``job``. What is filled in cannot open a slot of its own."""
    *examples, asked = parts(job.prompt)
    text = re.sub(r"\{(\w+)\}", lambda found: slots[found[1]], asked.text)
    return [*examples, Message("user", text)]


async def ask(
    engine: LanguageEngine, job: LanguageJob[A], schema: Schema | None = None, **slots: str
) -> A | None:
    """The answer to ``job``; ``None`` when none that fits was given.

    Args:
        engine: who is asked.
        job: what for.
        schema: a narrower shape than that of ``job.answer``.
        slots: what the prompt is filled with.

    Raises:
        Busy: somebody waits for the engine.
        EngineError: it cannot answer at all.
        TimeoutError: it takes longer than the job may.
    """
    prompt = prompt_of(job, slots)
    schema = schema or job.answer.model_json_schema()
    for _ in range(TRIES):
        try:
            stream = engine.stream(prompt, job.max_tokens, schema=schema, background=True, task=job.budget)
            async with asyncio.timeout(job.seconds), aclosing(stream):
                text = "".join([part async for part in stream])
        except Preempted:
            raise Busy from None
        try:
            answer = job.answer.model_validate_json(text)
        except ValidationError:
            reminder = "That was not the JSON asked for. Answer shorter, in JSON only."
        else:
            if not (job.own_words and copied(job, text, " ".join(slots.values()))):
                return answer
            reminder = "That was of the example. Write only of what was said here."
        prompt = [*prompt_of(job, slots), Message("assistant", text[:PAGE]), Message("user", reminder)]
    return None


def copied(job: LanguageJob[A], answer: str, given: str) -> frozenset[str]:
    """The words of ``answer`` that a small model took from the prompt's examples: nothing that was ``given``
    has them."""
    examples = {
        word
        for message in parts(job.prompt)[1:-1]
        for word in content_words(re.sub(r"\{\w+\}|\"\w+\":", " ", message.text))
    }
    return frozenset((examples - _PLAIN) & set(content_words(answer)) - set(content_words(given)))


class MemoryWriter:
    """``remember.chores.Writer`` on a language engine."""

    def __init__(self, engine: LanguageEngine) -> None:
        self._engine = engine

    async def summarise_event(self, event: StoredEvent, contexts: Sequence[StoredContext]) -> str | None:
        """See ``Writer``."""
        lines = [f"- seen: {_line(c.scene)}" for c in contexts if c.scene]
        lines += [f'- said: "{_line(c.utterance)}"' for c in contexts if c.utterance]
        if not lines:
            return None
        found = await ask(
            self._engine, EVENT, location=event.location, activity=event.activity, notes=_page(lines)
        )
        return found.sentence if found else None

    async def summarise_session(self, turns: Sequence[StoredTurn]) -> str | None:
        """See ``Writer``."""
        lines = []
        for turn in turns:
            who = "Wearer" if turn.speaker == WEARER else "Somebody else"
            lines.append(f"{who}: {_line(turn.heard)}")
            if turn.reply:
                lines.append(f"Companion: {_line(turn.reply)}")
        found = await ask(self._engine, SESSION, conversation=_page(lines))
        return found.summary if found else None

    async def keys(self, text: str, start: datetime, location: str) -> Keys | None:
        """See ``Writer``."""
        place = f"\n(At: {location}.)" if location else ""
        found = await ask(self._engine, KEYS, memory=f"{text[:PAGE]}{place}")
        if found is None:
            return None
        return Keys(tuple(found.temporal), tuple(found.spatial), tuple(found.semantic))

    async def importance(self, text: str) -> int | None:
        """See ``Writer``."""
        found = await ask(self._engine, IMPORTANCE, memory=text[:PAGE])
        return found.importance if found else None

    async def profile_candidates(self, said: Sequence[str]) -> list[Candidate]:
        """See ``Writer``."""
        sentences = list(dict.fromkeys(s for words in said for s in telling(words) if len(s) <= LINE))
        lines = _page([f"- {sentence}" for sentence in sentences]).splitlines()
        if not lines:
            return []
        schema = Facts.model_json_schema()
        # The words that a fact rests on are chosen from those that were said; none can be made up.
        schema["$defs"]["Fact"]["properties"]["quote"] = {"enum": [line.removeprefix("- ") for line in lines]}
        found = await ask(self._engine, PROFILE, schema, said="\n".join(lines))
        return [Candidate(f.kind, f.text, f.quote) for f in found.facts] if found else []

    async def revise_profile(self, new: str, old: str) -> Proposal | None:
        """See ``Writer``."""
        found = await ask(self._engine, REVISE, new=_line(new), old=_line(old))
        return Proposal(found.verdict, found.text) if found else None


def _line(text: str) -> str:
    return " ".join(text.split())[:LINE]


def _page(lines: Sequence[str]) -> str:
    """The lines that fit, each once, in their order; the first ones win."""
    kept, letters = [], 0
    for line in dict.fromkeys(lines):
        letters += len(line) + 1
        if letters > PAGE:
            break
        kept.append(line)
    return "\n".join(kept)
