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
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Protocol

from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config
from os1_edge.converse.reply import Asked, Replier
from os1_edge.device.speaker import Speaker
from os1_edge.events import RATE, AudioFrame, RealtimeContext, SceneFrame, TurnEnded
from os1_edge.faculties import Faculties
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.offload.engine import EngineError
from os1_edge.offload.route import decide
from os1_edge.remember.recall import Hit
from os1_edge.see.place import guess_place
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

SORRY = "Sorry, I could not think of an answer."
"""Spoken when the language engine fails."""


@dataclass(slots=True)
class TurnTrace:
    """All that happened in one turn. Durations are wall seconds, ``spoke_at_s`` is a session second."""

    ended: TurnEnded
    heard: str = ""
    reply: str = ""
    route: Literal["local", "cloud", "fallback"] = "local"
    route_reason: str = ""
    scene: str = ""
    location: str = ""
    hits: list[Hit] = field(default_factory=list)
    asr_s: float | None = None
    recall_s: float | None = None
    first_token_s: float | None = None
    first_audio_s: float | None = None
    spoke_at_s: float | None = None
    spoken_s: float = 0.0
    spoken_file: str | None = None
    """Where a replay's speaker wrote the reply."""


class Observer(Protocol):
    """Is told what happened: a report, a page, a log. Must return at once."""

    def frame_described(self, frame: SceneFrame, description: SceneDescription) -> None:
        """A scene frame was described; the picture is dropped after this."""
        ...

    def turn_answered(self, trace: TurnTrace) -> None:
        """A turn was answered and the reply has been heard."""
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
            except Exception:
                log.exception("could not describe the scene frame at %.1f s", frame.at_s)
                continue
            self._observer.frame_described(frame, description)
            if description.usable:
                await self._keep_context(frame.at_s, description, "")

    async def _talk(self) -> None:
        while True:
            while not self._waiting:
                if self._heard_all:
                    return
                self._something_new.clear()
                await self._something_new.wait()
            ended, view = self._waiting.popleft()
            try:
                await self._answer(ended, view)
            except Exception:
                log.exception("turn %s could not be answered", ended.turn_id)

    async def _answer(self, ended: TurnEnded, looked_at: View | None) -> None:
        trace = TurnTrace(ended)
        loop = asyncio.get_running_loop()
        began = perf_counter()
        trace.heard = await loop.run_in_executor(self._ears, self._faculties.asr.text, ended.audio)
        trace.asr_s = perf_counter() - began
        if not trace.heard:
            log.info("turn %s held no words", ended.turn_id)
            return
        view = await _described(looked_at)
        guess = guess_place(view, trace.heard)
        trace.scene, trace.location = view.sentence, guess.location
        now = self._calendar.at(ended.end / RATE)
        began = perf_counter()
        asked = await self._replier.prepare(trace.heard, now, view.sentence)
        trace.recall_s, trace.hits = perf_counter() - began, list(asked.hits)
        await self._reply(trace, asked)
        await self._faculties.memory.keep_turn(
            ended.turn_id, ended.revision, now, trace.heard, trace.reply, guess.location
        )
        await self._keep_context(ended.end / RATE, view, trace.heard)
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
            splitter = ClauseSplitter()
            began = perf_counter()
            try:
                async for text in self._replier.stream(asked):
                    if trace.first_token_s is None:
                        trace.first_token_s = perf_counter() - began
                    trace.reply += text
                    for clause in splitter.add(text):
                        clauses.put_nowait(clause)
            except EngineError as e:
                log.warning("the language engine failed in turn %s: %s", trace.ended.turn_id, e)
                trace.route, trace.route_reason = "fallback", "the language engine failed"
            if not trace.reply.strip():
                if trace.route != "fallback":
                    trace.route, trace.route_reason = "fallback", "the language engine said nothing"
                trace.reply = SORRY
                clauses.put_nowait(SORRY)
            for clause in splitter.finish():
                clauses.put_nowait(clause)
            clauses.put_nowait(None)
        trace.reply = trace.reply.strip()

    async def _speak(self, trace: TurnTrace, clauses: asyncio.Queue[str | None]) -> None:
        loop = asyncio.get_running_loop()
        voice = self._faculties.voice
        while (clause := await clauses.get()) is not None:
            began = perf_counter()
            try:
                samples = await loop.run_in_executor(self._mouth, voice.say, clause)
            except Exception as e:
                # The message may hold the clause.
                log.warning("the voice failed in turn %s: %s", trace.ended.turn_id, type(e).__name__)
                continue
            if not len(samples):
                continue
            if trace.first_audio_s is None:
                trace.first_audio_s = perf_counter() - began
            heard_at = await self._speaker.play(trace.ended.turn_id, samples, voice.rate)
            trace.spoken_s += len(samples) / voice.rate
            if trace.spoke_at_s is None:
                trace.spoke_at_s = heard_at
        trace.spoken_file = await self._speaker.finish(trace.ended.turn_id)

    async def _keep_context(self, at_s: float, view: SceneDescription, utterance: str) -> None:
        guess = guess_place(view, utterance)
        context = RealtimeContext(at_s, view.sentence, utterance, guess.location, guess.activity)
        await self._faculties.memory.keep_context(context, self._calendar.at(at_s))


async def _described(view: View | None) -> SceneDescription:
    """The description of ``view``, which may still be in the making."""
    if view is None:
        return NOTHING_SEEN
    try:
        return await asyncio.shield(view.described)
    except Exception:
        return NOTHING_SEEN
