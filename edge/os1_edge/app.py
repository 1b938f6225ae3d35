"""Wires a Config into a running system: the one module that knows every room.

Three jobs share one loop. *Listen* finds turns in the microphone's frames, *look* has the camera's frames
described, *talk* answers turns one after the other. Models run in worker threads, one each. A turn is made
only of what had been captured when the wearer stopped speaking, counted in samples, so the same recording
gives the same answers on the wall clock and on the virtual one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Protocol

from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config
from os1_edge.converse.guard import fault
from os1_edge.converse.reply import Asked, Replier
from os1_edge.device.speaker import Speaker
from os1_edge.events import RATE, AudioFrame, RealtimeContext, SceneFrame, TurnEnded
from os1_edge.faculties import Faculties
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.offload.engine import EngineError
from os1_edge.offload.route import decide
from os1_edge.remember.recall import Hit
from os1_edge.see.place import PlaceGuess, guess_place
from os1_edge.see.scene import SceneDescription
from os1_edge.speak.clauses import ClauseSplitter

log = logging.getLogger(__name__)

TURNS_WAITING = 8
"""Turns that may wait for an answer; a ninth pushes the oldest out."""

VIEWS_KEPT = 16
"""Descriptions kept to look back at; a turn needs the newest one before its end."""

FRAMES_AHEAD = 4
"""Frames that may wait to be described, as pictures are large; beyond that the camera waits."""

NOTHING_SEEN = SceneDescription("", (), 0, "dark", False, "no frame has come yet")


@dataclass(slots=True)
class TurnTrace:
    """All that happened in one turn. Durations are wall seconds, ``spoke_at_s`` is a session second."""

    ended: TurnEnded
    heard: str = ""
    reply: str = ""
    route: Literal["local", "cloud", "rule", "fallback"] = "local"
    route_reason: str = ""
    scene: str = ""
    hits: list[Hit] = field(default_factory=list)
    asr_s: float | None = None
    recall_s: float | None = None
    first_token_s: float | None = None
    first_clause_s: float | None = None
    """First token -> the first clause was complete."""
    first_audio_s: float | None = None
    spoke_at_s: float | None = None
    spoken_s: float = 0.0
    spoken_file: str | None = None
    """Where a replay's speaker wrote the reply."""
    failed: str | None = None
    """Why the turn was not answered."""


class Observer(Protocol):
    """Is told what happened: a report, a page, a log. Must return at once."""

    def frame_described(self, frame: SceneFrame, description: SceneDescription) -> None:
        """A scene frame was described; the picture is dropped after this."""
        ...

    def turn_answered(self, trace: TurnTrace) -> None:
        """A turn was answered and the reply has been heard, or it failed (``trace.failed`` says why)."""
        ...


@dataclass(slots=True)
class View:
    """A scene frame and its description, which may still be in the making."""

    frame_at_s: float
    described: asyncio.Future[SceneDescription]


class Os1:
    """One wearer's companion. Build it inside a running loop."""

    def __init__(
        self,
        config: Config,
        faculties: Faculties,
        clock: Clock,
        calendar: Calendar,
        speaker: Speaker,
        observer: Observer,
    ) -> None:
        self._config = config
        self._observer = observer
        self._faculties = faculties
        self._clock = clock
        self._calendar = calendar
        self._speaker = speaker
        self._replier = Replier(config, faculties.llm, faculties.memory)
        hear = config.hear
        self._turns = TurnDetector(
            TurnRules(hear.start_above, hear.stop_below, silence=round(hear.silence_s * RATE))
        )
        self._waiting: deque[tuple[TurnEnded, View | None]] = deque(maxlen=TURNS_WAITING)
        self._heard_all = False
        self._something_new = asyncio.Event()
        self._views: deque[View] = deque(maxlen=VIEWS_KEPT)
        self._taken: asyncio.Queue[tuple[SceneFrame, View] | None] = asyncio.Queue(FRAMES_AHEAD)
        self._ears = ThreadPoolExecutor(1, thread_name_prefix="ears")
        self._eyes = ThreadPoolExecutor(1, thread_name_prefix="eyes")
        self._mouth = ThreadPoolExecutor(1, thread_name_prefix="mouth")

    async def warm(self) -> None:
        """Reads the prompt's unchanging beginning, so that the first turn need not."""
        await self._replier.warm()

    async def run(self, microphone: AsyncIterator[AudioFrame], camera: AsyncIterator[SceneFrame]) -> None:
        """Lives until both streams have ended and the last turn is answered."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._look(camera))
                tasks.create_task(self._note_views())
                tasks.create_task(self._talk())
                tasks.create_task(self._listen(microphone))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # one stream broke; its own message says it best
        finally:
            for worker in (self._ears, self._eyes, self._mouth):
                worker.shutdown(wait=False)

    async def _listen(self, microphone: AsyncIterator[AudioFrame]) -> None:
        vad = self._faculties.vad
        async for frame in microphone:
            event = self._turns.step(frame, vad.probability(frame.samples))
            if isinstance(event, TurnEnded):
                self._enqueue(event)
        if (last := self._turns.close()) is not None:
            self._enqueue(last)
        self._heard_all = True
        self._something_new.set()

    def _enqueue(self, ended: TurnEnded) -> None:
        if len(self._waiting) == TURNS_WAITING:
            log.warning("more than %d turns wait for an answer; the oldest is dropped", TURNS_WAITING)
            dropped = self._waiting.popleft()[0]
            self._observer.turn_answered(TurnTrace(dropped, failed=f"more than {TURNS_WAITING} turns waited"))
        # The view is taken now: while the turn waits, later frames push older descriptions out.
        self._waiting.append((ended, self._view_at(ended.end / RATE)))
        self._something_new.set()

    async def _look(self, camera: AsyncIterator[SceneFrame]) -> None:
        """Takes the frames; one is in view from its own time on, however long its description takes."""
        loop = asyncio.get_running_loop()
        async for frame in camera:
            described = loop.run_in_executor(self._eyes, self._faculties.eyes.look, frame.image)
            view = View(frame.at_s, described)
            self._views.append(view)
            await self._taken.put((frame, view))
        await self._taken.put(None)

    async def _note_views(self) -> None:
        """Tells and remembers what was seen, in the order of the frames."""
        while (taken := await self._taken.get()) is not None:
            frame, view = taken
            try:
                description = await view.described
                self._observer.frame_described(frame, description)
                if description.usable:
                    await self._keep_context(frame.at_s, description, "", guess_place(description))
            except Exception as e:
                _tell_failure(f"the scene frame at {frame.at_s:.1f} s", e)

    async def _talk(self) -> None:
        while True:
            while not self._waiting:
                if self._heard_all:
                    return
                self._something_new.clear()
                await self._something_new.wait()
            ended, view = self._waiting.popleft()
            trace = TurnTrace(ended)
            try:
                await self._answer(trace, view)
            except Exception as e:
                _tell_failure(f"turn {ended.turn_id}", e)
                trace.failed = type(e).__name__
                self._observer.turn_answered(trace)

    async def _answer(self, trace: TurnTrace, looked_at: View | None) -> None:
        ended = trace.ended
        loop = asyncio.get_running_loop()
        began = perf_counter()
        trace.heard = await loop.run_in_executor(self._ears, self._faculties.asr.text, ended.audio)
        trace.asr_s = perf_counter() - began
        if not trace.heard:
            log.info("turn %s held no words", ended.turn_id)
            return
        view = await _described(looked_at)
        guess = guess_place(view, trace.heard)
        trace.scene = view.sentence
        now = self._calendar.at(ended.end / RATE)
        began = perf_counter()
        asked = await self._replier.prepare(trace.heard, now, view.sentence)
        trace.recall_s, trace.hits = perf_counter() - began, list(asked.hits)
        await self._reply(trace, asked)
        await self._faculties.memory.keep_turn(
            ended.turn_id, ended.revision, now, trace.heard, trace.reply, guess.location
        )
        await self._keep_context(ended.end / RATE, view, trace.heard, guess)
        self._observer.turn_answered(trace)

    def _view_at(self, at_s: float) -> View | None:
        """What was in view at session second ``at_s``."""
        return next((view for view in reversed(self._views) if view.frame_at_s <= at_s), None)

    async def _reply(self, trace: TurnTrace, asked: Asked) -> None:
        """Streams the reply to the speaker, clause by clause."""
        decision = decide(self._config.offload.server)
        trace.route, trace.route_reason = decision.route, decision.reason
        clauses: asyncio.Queue[str | None] = asyncio.Queue()  # bounded by the reply's tokens
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._speak(trace, clauses))
            said: list[str] = []
            async for clause in self._compose(trace, asked):
                said.append(clause)
                clauses.put_nowait(clause)
            clauses.put_nowait(None)
        trace.reply = " ".join(said)
        self._replier.keep(asked, trace.reply)

    async def _compose(self, trace: TurnTrace, asked: Asked) -> AsyncIterator[str]:
        """The reply's clauses as they are complete, only such as may be spoken; always at least one."""
        if asked.plan.fixed is not None:
            trace.route, trace.route_reason = "rule", "nothing known or in view answers it"
            yield asked.plan.fixed
            return
        spoke, wrong = False, "the language engine said nothing"
        try:
            async for clause in self._written(trace, asked):
                if (found := fault(clause, asked.heard, asked.plan.health)) is not None:
                    wrong = found
                    break
                yield clause
                spoke = True
        except EngineError as e:
            _tell_failure(f"the language engine in turn {trace.ended.turn_id}", e)
            wrong = trace.route_reason = "the language engine failed"
            trace.route = "fallback"
        if not spoke:
            trace.route, trace.route_reason = "fallback", wrong
            yield asked.plan.fallback

    async def _written(self, trace: TurnTrace, asked: Asked) -> AsyncIterator[str]:
        """The clauses that the language engine writes."""
        splitter = ClauseSplitter()
        began = perf_counter()
        async with aclosing(self._replier.stream(asked)) as stream:
            async for text in stream:
                if trace.first_token_s is None:
                    trace.first_token_s = perf_counter() - began
                for clause in splitter.add(text):
                    _note_first_clause(trace, began)
                    yield clause
        for clause in splitter.finish():
            _note_first_clause(trace, began)
            yield clause

    async def _speak(self, trace: TurnTrace, clauses: asyncio.Queue[str | None]) -> None:
        loop = asyncio.get_running_loop()
        voice = self._faculties.voice
        try:
            while (clause := await clauses.get()) is not None:
                began = perf_counter()
                try:
                    samples = await loop.run_in_executor(self._mouth, voice.say, clause)
                except Exception as e:
                    _tell_failure(f"the voice in turn {trace.ended.turn_id}", e)
                    continue
                if not len(samples):
                    continue
                if trace.first_audio_s is None:
                    trace.first_audio_s = perf_counter() - began
                heard_at = await self._speaker.play(trace.ended.turn_id, samples, voice.rate)
                trace.spoken_s += len(samples) / voice.rate
                if trace.spoke_at_s is None:
                    trace.spoke_at_s = heard_at
        finally:
            trace.spoken_file = await self._speaker.finish(trace.ended.turn_id)

    async def _keep_context(
        self, at_s: float, view: SceneDescription, utterance: str, place: PlaceGuess
    ) -> None:
        context = RealtimeContext(at_s, view.sentence, utterance, place.location, place.activity)
        await self._faculties.memory.keep_context(context, self._calendar.at(at_s))


def _note_first_clause(trace: TurnTrace, began: float) -> None:
    if trace.first_clause_s is None and trace.first_token_s is not None:
        trace.first_clause_s = perf_counter() - began - trace.first_token_s


def _tell_failure(what: str, error: Exception) -> None:
    """Logs that ``what`` failed. Only the error's type: its message may hold what was said."""
    log.error("%s failed: %s", what, type(error).__name__)
    log.debug("%s failed", what, exc_info=error)


async def _described(view: View | None) -> SceneDescription:
    """The description of ``view``, which may still be in the making."""
    if view is None:
        return NOTHING_SEEN
    try:
        return await asyncio.shield(view.described)
    except Exception:
        return NOTHING_SEEN
