"""Makes an answer: words out of sound, recall, prompt, clauses that may be spoken, speech. Nothing here is
heard, kept or told: that is for who commits to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from time import perf_counter

from os1_edge.app.trace import TurnTrace, tell_failure
from os1_edge.clock import Calendar
from os1_edge.converse.ahead import Times
from os1_edge.converse.commands import Command
from os1_edge.converse.reply import Asked, Replier
from os1_edge.converse.saying import Outcome, sayable, split
from os1_edge.converse.sight import Sight
from os1_edge.events import RATE, Samples, SpeechPaused, TurnEnded
from os1_edge.faculties import Faculties
from os1_edge.see.place import guess_place
from os1_edge.see.scene import SceneDescription
from os1_edge.speak.clauses import ClauseSplitter
from os1_edge.speak.heard import Word

REST = "rest"
"""From a prompt to the first sound of its reply."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A clause and its sound."""

    clause: str
    samples: Samples = field(repr=False)
    rate: int
    words: tuple[Word, ...] | None
    """Where its words lie, if the voice knows."""


class Hearing:
    """A recognition under way, which can be told that nobody wants it any more."""

    def __init__(self, answerer: Answerer, so_far: SpeechPaused | TurnEnded) -> None:
        self.end = so_far.end
        """Sample index one after the last speech in it."""
        self.began = perf_counter()
        self._cancelled = False
        self._task = asyncio.create_task(answerer.hear(so_far.audio, lambda: self._cancelled))

    async def text(self) -> str:
        """The words, when they are there."""
        return await asyncio.shield(self._task)

    def void(self) -> None:
        """The wearer spoke on."""
        self._cancelled = True
        self._task.cancel()


class Answerer:
    """The faculties that an answer needs, each in a worker thread of its own."""

    def __init__(
        self,
        faculties: Faculties,
        replier: Replier,
        calendar: Calendar,
        before: Callable[[float], tuple[str, ...]] = lambda _at_s: (),
    ) -> None:
        """``before`` tells what had been in view before some session second."""
        self._faculties = faculties
        self._before = before
        self._replier = replier
        self._calendar = calendar
        self._times = Times()
        """How long the rest of an answer takes once its prompt is there."""
        self._ears = ThreadPoolExecutor(1, thread_name_prefix="ears")
        self._mouth = ThreadPoolExecutor(1, thread_name_prefix="mouth")

    def close(self) -> None:
        """Ends the workers."""
        for worker in (self._ears, self._mouth):
            worker.shutdown(wait=False)

    async def hear(self, audio: Samples, cancelled: Callable[[], bool]) -> str:
        """The words in ``audio``; empty when there are none, or when ``cancelled`` said so in between."""

        def work() -> str:
            return "" if cancelled() else self._faculties.asr.text(audio, cancelled)

        return await asyncio.get_running_loop().run_in_executor(self._ears, work)

    async def prepare(self, trace: TurnTrace, view: SceneDescription, waited_s: float | None = None) -> Asked:
        """Recalls for what was heard and writes the prompt. With ``waited_s`` (since the wearer's last sound)
        agents may use what is left of the budget."""
        trace.scene, trace.looked_at = f"{view.sentence} {view.caption}".strip(), view.attended
        now = self._calendar.at(trace.ended.end / RATE)
        began = perf_counter()
        before = self._before(trace.ended.end / RATE)
        asked = await self._replier.prepare(
            trace.heard,
            now,
            *_sight(view, before),
            place=_place(view, trace.heard),
            left_s=self._left_s(waited_s),
        )
        if asked.thoughts is not None:
            trace.inline, trace.agents = asked.thoughts.inline, asked.thoughts.reasons
        trace.recall_s, trace.hits = perf_counter() - began, list(asked.hits)
        return asked

    def sounded(self, after_s: float) -> None:
        """The first sound was there ``after_s`` seconds after the prompt."""
        self._times.learn(REST, after_s)

    def _left_s(self, waited_s: float | None) -> float | None:
        """What agents may take of the budget; ``None``: nothing, as nobody knows what the rest takes."""
        rest = self._times.predicted_s(REST)
        return None if waited_s is None or rest is None else self._replier.budget_s - waited_s - rest

    def command(self, trace: TurnTrace) -> Command | None:
        """What the wearer commands with what was heard, instead of asking for a reply."""
        now = self._calendar.at(trace.ended.end / RATE)
        return self._replier.manners.command(trace.heard, now)

    async def prime(self, heard: str, at_s: float, view: SceneDescription) -> None:
        """Has the language engine read ahead for the turn that ``heard`` is the beginning of."""
        sight = _sight(view, self._before(at_s))
        asked = await self._replier.prepare(heard, self._calendar.at(at_s), *sight)
        await self._replier.prime(asked)

    async def clauses(self, trace: TurnTrace, asked: Asked) -> AsyncGenerator[str, None]:
        """The reply's clauses as they are complete, only such as may be spoken; always at least one."""
        outcome = Outcome()
        written = split(self._written(trace, asked), ClauseSplitter())
        began = perf_counter()
        async with aclosing(sayable(asked, written, self._replier.editor(asked), outcome)) as clauses:
            async for clause in clauses:
                if trace.first_clause_s is None and trace.first_token_s is not None:
                    trace.first_clause_s = perf_counter() - began - trace.first_token_s
                if outcome.route:
                    trace.route, trace.route_reason = outcome.route, outcome.reason
                yield clause
        if outcome.error is not None:
            tell_failure(f"the language engine in turn {trace.ended.turn_id}", outcome.error)
            trace.route, trace.route_reason = "fallback", outcome.reason

    async def _written(self, trace: TurnTrace, asked: Asked) -> AsyncGenerator[str, None]:
        """What the language engine writes."""
        began = perf_counter()
        async with aclosing(self._replier.stream(asked)) as stream:
            async for text in stream:
                if trace.first_token_s is None:
                    trace.first_token_s = perf_counter() - began
                    decision = self._replier.decision
                    trace.route, trace.route_reason = decision.route, decision.reason
                yield text

    async def say(self, trace: TurnTrace, clause: str) -> Spoken | None:
        """``clause`` as speech; nothing where the voice failed, or the clause holds nothing to say."""
        voice = self._faculties.voice
        began = perf_counter()
        try:
            speech = await asyncio.get_running_loop().run_in_executor(self._mouth, voice.speak, clause)
        except Exception as e:
            tell_failure(f"the voice in turn {trace.ended.turn_id}", e)
            return None
        if not len(speech.samples):
            return None
        if trace.first_audio_s is None:
            trace.first_audio_s = perf_counter() - began
        return Spoken(clause, speech.samples, speech.rate, speech.words)


def _place(view: SceneDescription, heard: str) -> str:
    """Location and activity, as far as rules can tell."""
    guess = guess_place(view, heard)
    return f"{guess.location}, {guess.activity}"


def _sight(view: SceneDescription, before: tuple[str, ...]) -> tuple[str, Sight]:
    """The scene for the prompt, and what is looked at apart from it."""
    return view.whole or view.sentence, Sight(view.attended, view.in_view, view.caption, before)
