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
from os1_edge.converse.commands import Command
from os1_edge.converse.reply import Asked, Replier
from os1_edge.converse.sight import Sight
from os1_edge.events import RATE, Samples, SpeechPaused, TurnEnded
from os1_edge.faculties import Faculties
from os1_edge.offload.engine import EngineError
from os1_edge.see.scene import SceneDescription
from os1_edge.speak.clauses import ClauseSplitter
from os1_edge.speak.heard import Word


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

    async def prepare(self, trace: TurnTrace, view: SceneDescription) -> Asked:
        """Recalls for what was heard and writes the prompt."""
        trace.scene, trace.looked_at = view.sentence, view.attended
        now = self._calendar.at(trace.ended.end / RATE)
        began = perf_counter()
        before = self._before(trace.ended.end / RATE)
        asked = await self._replier.prepare(trace.heard, now, *_sight(view, before))
        trace.recall_s, trace.hits = perf_counter() - began, list(asked.hits)
        return asked

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
        if asked.plan.fixed is not None:
            trace.route, trace.route_reason = "rule", asked.plan.reason
            yield asked.plan.fixed
            if asked.plan.closing:
                yield asked.plan.closing
            return
        editor, wrong = self._replier.editor(asked), "the language engine said nothing"
        try:
            async with aclosing(self._written(trace, asked)) as written:
                async for clause in written:
                    edit = editor.take(clause)
                    if edit.kind == "say":
                        yield edit.text
                        continue
                    wrong = edit.reason
                    if edit.kind != "leave off":
                        break
        except EngineError as e:
            tell_failure(f"the language engine in turn {trace.ended.turn_id}", e)
            wrong = trace.route_reason = "the language engine failed"
            trace.route = "fallback"
        if not editor.said:
            trace.route, trace.route_reason = "fallback", wrong
            yield asked.plan.fallback
        if last := editor.last():
            yield last

    async def _written(self, trace: TurnTrace, asked: Asked) -> AsyncGenerator[str, None]:
        """The clauses that the language engine writes."""
        splitter = ClauseSplitter()
        began = perf_counter()
        async with aclosing(self._replier.stream(asked)) as stream:
            async for text in stream:
                if trace.first_token_s is None:
                    trace.first_token_s = perf_counter() - began
                    decision = self._replier.decision
                    trace.route, trace.route_reason = decision.route, decision.reason
                for clause in splitter.add(text):
                    _note_first_clause(trace, began)
                    yield clause
        for clause in splitter.finish():
            _note_first_clause(trace, began)
            yield clause

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


def _sight(view: SceneDescription, before: tuple[str, ...]) -> tuple[str, Sight]:
    """The scene for the prompt, and what is looked at apart from it."""
    return view.whole or view.sentence, Sight(view.attended, view.in_view, before)


def _note_first_clause(trace: TurnTrace, began: float) -> None:
    if trace.first_clause_s is None and trace.first_token_s is not None:
        trace.first_clause_s = perf_counter() - began - trace.first_token_s
