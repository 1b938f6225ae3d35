"""When the agents think: inline where it fits the turn's budget, else ahead of the turn that uses it.

The strategy and the retrieval agent need several language calls a turn; one after the other they cost
seconds. So each job's time is learned, and a job is done while the wearer waits only if what is left of the
budget holds it; otherwise the newest result of an earlier turn is used, and the reply is grounded by recall
alone (design 3). An inline job that takes longer than foreseen is dropped when the budget is spent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from os1_edge.converse.jobs import A, LanguageJob, ask
from os1_edge.converse.retrieval import Report, RetrievalAgent
from os1_edge.converse.strategy import DECIDE, PLAN, Strategy, advanced, decided, refined
from os1_edge.offload.engine import EngineError, LanguageEngine
from os1_edge.offload.estimate import K, Rtt
from os1_edge.remember.chores import Busy
from os1_edge.remember.memory import Memory

LINES = 6
"""Lines of the conversation that the agents read: three exchanges say what it is about."""

RETRIEVAL = "retrieval"
"""The name under which the retrieval agent's time is learned, all its steps together."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a job may be done while the wearer waits, and why."""

    yes: bool
    reason: str


def fits(predicted_s: float | None, left_s: float) -> Fit:
    """Whether a job that should take ``predicted_s`` (``None``: nobody knows yet) fits into ``left_s``."""
    if left_s <= 0:
        return Fit(False, "the budget is spent")
    if predicted_s is None:
        return Fit(False, "how long it takes is not known yet")
    if predicted_s > left_s:
        return Fit(False, f"it should take {predicted_s:.2f} s and {left_s:.2f} s are left")
    return Fit(True, f"its {predicted_s:.2f} s fit into the {left_s:.2f} s left")


class Times:
    """How long each kind of job takes: smoothed, with its deviation (RFC 6298). Bounded by the kinds."""

    def __init__(self) -> None:
        self._kinds: dict[str, Rtt] = {}

    def predicted_s(self, kind: str) -> float | None:
        """Within this a job should be done; ``None`` before the first."""
        known = self._kinds.get(kind)
        if known is None or known.srtt_s is None:
            return None
        return known.srtt_s + K * known.rttvar_s

    def learn(self, kind: str, seconds: float) -> None:
        """A job of that kind took so long."""
        self._kinds.setdefault(kind, Rtt()).sample(seconds)

    @asynccontextmanager
    async def measured(self, kind: str) -> AsyncIterator[None]:
        """Learns from what is done inside; of what was given up, only that it was not quicker."""
        began = asyncio.get_running_loop().time()
        known = self._kinds.setdefault(kind, Rtt())
        try:
            yield
        except BaseException:
            known.at_least(asyncio.get_running_loop().time() - began)
            raise
        known.sample(asyncio.get_running_loop().time() - began)


@dataclass(frozen=True, slots=True)
class Thoughts:
    """What the agents have for a turn."""

    strategy: Strategy
    report: Report | None = None
    """The retrieval agent's newest; it may be of the turn before."""
    inline: tuple[str, ...] = ()
    """What was done while the wearer waited."""
    reasons: tuple[str, ...] = ()
    """Why each job was done inline or not, for the trace."""


@dataclass(slots=True)
class _Line:
    speaker: str
    text: str


class Ahead:
    """The agents of one wearer's conversations. Use it in one loop.

    ``for_turn`` changes nothing, so that a turn that is withdrawn leaves no trace; ``kept`` and ``think``
    move on. The state ends with the conversation.
    """

    def __init__(self, engine: LanguageEngine, memory: Memory, gap_s: float, *, by_model: bool) -> None:
        """
        Args:
            engine: for the agents' jobs; all are background work to it.
            memory: whose.
            gap_s: idle time after which a new conversation begins.
            by_model: whether a language model may be asked; else rules alone plan.
        """
        self._engine = engine
        self._retrieval = RetrievalAgent(engine, memory)
        self._gap_s = gap_s
        self._by_model = by_model
        self.times = Times()
        self._strategy: Strategy | None = None
        self._report: Report | None = None
        self._lines: deque[_Line] = deque(maxlen=LINES)
        self._last: datetime | None = None
        self._thought = True
        """Whether ``think`` has nothing more to do for the newest exchange."""

    async def for_turn(
        self, heard: str, time: datetime, place: str, said: Sequence[str], left_s: float | None
    ) -> Thoughts:
        """What there is for the reply to ``heard``.

        Args:
            heard: what the wearer said.
            time: their time.
            place: location and activity.
            said: what the prompt holds already.
            left_s: how long the turn may wait for the agents; ``None``: not at all.
        """
        over = self._is_over(time)
        strategy = advanced(None if over else self._strategy, heard)
        newest = Thoughts(strategy, None if over else self._report)
        if not self._by_model or left_s is None:
            return newest
        until = asyncio.get_running_loop().time() + left_s
        lines = [] if over else list(self._lines)
        thoughts = await self._decide_inline(newest, lines, heard, until)
        return await self._retrieve_inline(thoughts, lines, heard, time, place, said, until)

    def kept(self, heard: str, reply: str, time: datetime, strategy: Strategy | None) -> None:
        """An exchange took place; ``reply`` is what the wearer heard of it."""
        if self._is_over(time):
            self.forget()
        self._strategy, self._last = strategy, time
        self._lines.append(_Line("Wearer", heard))
        if reply:
            self._lines.append(_Line("Companion", reply))
        self._thought = not self._by_model

    def forget(self) -> None:
        """The conversation is over."""
        self._strategy = self._report = self._last = None
        self._lines.clear()
        self._thought = True

    async def think(self, now: datetime, place: str = "somewhere", said: Sequence[str] = ()) -> bool:
        """Works ahead for the next turn: plan, next action, report. Cancel it when somebody speaks.

        Returns:
            Whether all is thought; ``False``: the engine was needed elsewhere.
        """
        strategy = self._strategy
        if self._thought or strategy is None:
            return True
        heard = next((line.text for line in reversed(self._lines) if line.speaker == "Wearer"), "")
        try:
            if strategy.by == "rule":
                strategy = refined(strategy, answer) if (
                    answer := await self._ask(PLAN, conversation=_said(self._lines), place=place)
                ) else strategy  # fmt: skip
            strategy = await self._decided(strategy, _said(self._lines))
            self._strategy = strategy
            async with self.times.measured(RETRIEVAL):
                report = await self._retrieval.work(
                    heard, _said(self._lines), place, strategy.action, now, said
                )
        except Busy:
            return False
        self._report, self._thought = report, True
        return True

    async def _decide_inline(
        self, thoughts: Thoughts, lines: Sequence[_Line], heard: str, until: float
    ) -> Thoughts:
        fit = fits(self.times.predicted_s(DECIDE.prompt), until - asyncio.get_running_loop().time())
        if fit.yes:
            try:
                async with asyncio.timeout_at(until):
                    strategy = await self._decided(thoughts.strategy, _said([*lines, _Line("Wearer", heard)]))
                thoughts = replace(thoughts, strategy=strategy, inline=(*thoughts.inline, "decide"))
            except (TimeoutError, Busy):
                fit = Fit(False, "it took longer than foreseen")
        return replace(thoughts, reasons=(*thoughts.reasons, f"decide: {fit.reason}"))

    async def _retrieve_inline(
        self,
        thoughts: Thoughts,
        lines: Sequence[_Line],
        heard: str,
        time: datetime,
        place: str,
        said: Sequence[str],
        until: float,
    ) -> Thoughts:
        fit = fits(self.times.predicted_s(RETRIEVAL), until - asyncio.get_running_loop().time())
        if fit.yes:
            conversation = _said([*lines, _Line("Wearer", heard)])
            try:
                async with asyncio.timeout_at(until), self.times.measured(RETRIEVAL):
                    report = await self._retrieval.work(
                        heard, conversation, place, thoughts.strategy.action, time, said
                    )
                thoughts = replace(thoughts, report=report, inline=(*thoughts.inline, RETRIEVAL))
            except (TimeoutError, Busy):
                fit = Fit(False, "it took longer than foreseen")
        return replace(thoughts, reasons=(*thoughts.reasons, f"{RETRIEVAL}: {fit.reason}"))

    async def _decided(self, strategy: Strategy, conversation: str) -> Strategy:
        answer = await self._ask(
            DECIDE, objective=strategy.objective, steps=strategy.numbered, conversation=conversation
        )
        return decided(strategy, answer) if answer is not None else strategy

    async def _ask(self, job: LanguageJob[A], **slots: str) -> A | None:
        """Its answer; ``None`` where there is none that will do.

        Raises:
            Busy: somebody waits for the engine.
        """
        try:
            async with self.times.measured(job.prompt):
                return await ask(self._engine, job, None, **slots)
        except (EngineError, TimeoutError):
            return None

    def _is_over(self, time: datetime) -> bool:
        return self._last is not None and (time - self._last).total_seconds() > self._gap_s


def _said(lines: Sequence[_Line] | deque[_Line]) -> str:
    return "\n".join(f"{line.speaker}: {line.text[:200]}" for line in lines)
