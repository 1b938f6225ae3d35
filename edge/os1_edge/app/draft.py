"""An answer made ahead of the turn's end: at the first short pause the turn may be over, and mostly is.

A draft belongs to one ``(turn_id, revision)``. Nobody hears of it and nothing is remembered of it until the
turn has ended with that revision; when the wearer speaks on, it is cancelled and leaves no trace.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from time import perf_counter

from os1_edge.app.answer import Answerer, Hearing, Spoken
from os1_edge.app.floor import Floor, Verdict
from os1_edge.app.trace import TurnTrace
from os1_edge.app.views import NOTHING_SEEN, View
from os1_edge.converse.commands import Command
from os1_edge.converse.reply import Asked
from os1_edge.events import RATE, SpeechPaused, TurnEnded
from os1_edge.see.scene import SceneDescription

CLAUSES_AHEAD = 4
"""Clauses spoken into a draft before it is committed to, or before the last has been handed to the player."""


class Draft:
    """One revision of a turn, being answered."""

    def __init__(
        self,
        paused: SpeechPaused | TurnEnded,
        view: View | None,
        answerer: Answerer,
        floor: Floor,
        hearing: Hearing | None = None,
    ) -> None:
        """``hearing`` is a recognition of the same speech that was begun already."""
        self.of = paused.turn_id, paused.revision
        self.trace = TurnTrace(ended_so_far(paused), paused_at=paused.decided)
        self.verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        """Is there as soon as the words are; raises what recognition raised."""
        self.clauses: asyncio.Queue[Spoken | None] = asyncio.Queue(CLAUSES_AHEAD)
        """The reply; ``None`` ends it."""
        self.composed: list[str] = []
        """The clauses, as text; bounded by the reply's tokens."""
        self.asked: Asked | None = None
        self.command: Command | None = None
        """What is to be done instead of a reply, once the turn is over: nothing is done in a draft."""
        self.view: SceneDescription = NOTHING_SEEN
        self.heard_at: float | None = None
        """When the words were there, by ``perf_counter``."""
        self.failed: Exception | None = None
        """What ended it early, after the verdict."""
        self._answerer, self._floor = answerer, floor
        self._hearing = hearing or Hearing(answerer, paused)
        self._looked_at = view
        self._began = asyncio.get_running_loop().time() - (paused.decided - paused.end) / RATE
        """When the wearer's last sound was, on the loop's clock."""
        self._task = asyncio.create_task(self._work())

    def void(self) -> None:
        """The wearer spoke on, or it has been heard; native work that is under way is told to stop."""
        self._hearing.void()
        self._task.cancel()
        if not self.verdict.done():
            self.verdict.cancel()

    async def _work(self) -> None:
        try:
            verdict = await self._hear()
            self.verdict.set_result(verdict)
        except Exception as e:
            self.verdict.set_exception(e)
            self.verdict.exception()  # seen, even if nobody waits for it
            return
        if verdict.kind == "turn" and self.command is None:
            try:
                await self._compose()
            except Exception as e:
                self.failed = e
        await self.clauses.put(None)

    async def _hear(self) -> Verdict:
        trace = self.trace
        text = await self._hearing.text()
        self.heard_at = perf_counter()
        trace.asr_s = self.heard_at - self._hearing.began
        verdict = await self._floor.judge(self.of[0], text, (trace.ended.end - trace.ended.start) / RATE)
        trace.heard, trace.took_up = verdict.heard, verdict.took_up
        self.command = self._answerer.command(trace) if verdict.kind == "turn" else None
        return verdict

    async def _compose(self) -> None:
        loop = asyncio.get_running_loop()
        if self._looked_at is not None:
            self.view = await self._looked_at.description()
        self.asked = await self._answerer.prepare(self.trace, self.view, loop.time() - self._began)
        prepared, sounded = loop.time(), False
        async with aclosing(self._answerer.clauses(self.trace, self.asked)) as clauses:
            async for clause in clauses:
                self.composed.append(clause)
                if (spoken := await self._answerer.say(self.trace, clause)) is not None:
                    if not sounded:
                        self._answerer.sounded(loop.time() - prepared)
                    sounded = True
                    await self.clauses.put(spoken)


def ended_so_far(paused: SpeechPaused | TurnEnded) -> TurnEnded:
    """A pause as the turn's end that it may be."""
    if isinstance(paused, TurnEnded):
        return paused
    return TurnEnded(
        turn_id=paused.turn_id,
        revision=paused.revision,
        start=paused.start,
        end=paused.end,
        decided=paused.decided,
        reason="a pause",
        audio=paused.audio,
        audio_start=paused.audio_start,
    )
