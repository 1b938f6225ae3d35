"""One wearer's companion, on one loop.

*Listen* finds turns in the microphone's frames, *look* has the camera's frames described, *talk* answers
turns one after the other. Work on a turn begins at its first short pause, in a draft; *talk* commits to the
draft of the revision with which the turn ended. Models run in worker threads, one each. A turn is made only
of what had been captured when the wearer stopped speaking, counted in samples, so the same recording gives
the same answers on the wall clock and on the virtual one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import Literal

from os1_edge.app.answer import Answerer, Hearing
from os1_edge.app.captions import Captions
from os1_edge.app.commanding import Commanding, Links, online
from os1_edge.app.draft import Draft
from os1_edge.app.floor import Floor
from os1_edge.app.gazing import Gazing
from os1_edge.app.initiative import Initiative, Stage
from os1_edge.app.listening import Listening
from os1_edge.app.looking import Looking, Pictures
from os1_edge.app.night import Night, retention
from os1_edge.app.partials import Partials
from os1_edge.app.scenery import Overheard, Scenery
from os1_edge.app.talk import EndedTurn, Talk
from os1_edge.app.thinking import Thinking
from os1_edge.app.trace import Observer
from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config
from os1_edge.converse.reply import Replier
from os1_edge.converse.view_writer import ViewWriter
from os1_edge.device.power import STEPS, Step
from os1_edge.events import (
    CHUNK,
    RATE,
    AudioFrame,
    EyeFrame,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
)
from os1_edge.faculties import Faculties
from os1_edge.hear.capture import Canceller, Capture, CaptureRules, Spotter
from os1_edge.hear.pauses import Pauses
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.offload.journal import Journal
from os1_edge.offload.router import Router
from os1_edge.offload.settings import make_router, rules_of
from os1_edge.offload.watch import Watch
from os1_edge.see.album import Album
from os1_edge.see.camera import FrameTaker
from os1_edge.see.gaze.track import GazeTracker
from os1_edge.see.indicator import Indicator, Light
from os1_edge.see.light import Led, ScreenLight
from os1_edge.see.place import guess_place
from os1_edge.see.scene import SceneDescription
from os1_edge.see.shrink import shrink
from os1_edge.speak.playback import Player
from os1_edge.speak.sink import Sink

log = logging.getLogger(__name__)

State = Literal["listening", "hearing", "thinking", "speaking", "muted"]

DRAFTS_A_TURN = 4
"""Pauses of one turn at which an answer is begun; for who makes more of them that work is mostly lost."""


HEAR_AHEAD = 2 * CHUNK
"""Silence (64 ms) after which recognition is begun, for the pause that it may become."""

PAUSES = "pauses"
"""Where the memory keeps what was learned of the wearer's pauses."""


class Os1:
    """One wearer's companion. Build it inside a running loop."""

    def __init__(
        self,
        config: Config,
        faculties: Faculties,
        clock: Clock,
        calendar: Calendar,
        sink: Sink,
        observer: Observer,
        echo: Canceller | None = None,
        wake: Spotter | None = None,
        turn_ids: Callable[[], str] | None = None,
        gaze: GazeTracker | None = None,
        light: Light | None = None,
        thumbnails: bool = False,
        routes: Journal | None = None,
        chance: random.Random | None = None,
        back: str = "press the button",
    ) -> None:
        """``echo`` takes the speaker's sound out of the microphone's, where both share a room; with ``wake``
        only what follows the wake word is heard. ``turn_ids`` makes the ids of turns, which a memory that
        outlives the run must not have seen before. ``gaze`` follows the eye camera; ``light`` is the capture
        light; with ``thumbnails`` the observer is given small copies of frames, without faces.
        ``routes`` keeps where answers were made, and why; a seeded ``chance`` makes a run repeatable.
        ``back``: the line of ``converse.texts`` that says how a muted companion hears again."""
        self._config, self._faculties, self._clock, self._calendar = config, faculties, clock, calendar
        self._engine = self._router(routes, chance)
        self._replier = Replier(config, self._engine, faculties.memory)
        self.scenery = self._scenery()
        self._observer = Overheard(observer, self.scenery)
        self._answerer = Answerer(faculties, self._replier, calendar, self.scenery.before)
        self._listening = self._ears(echo, wake, turn_ids)
        self._player = Player(sink, clock, self._listening.played)
        self._floor = Floor(self._player, config.hear.language)
        memory, manners = faculties.memory, self._replier.manners
        self._initiative = Initiative(config.converse, memory, manners, clock, calendar)
        self._commanding = Commanding(memory, manners, self._links(back))
        self._talk = self._talking()
        self.gazing = Gazing(gaze, clock, lambda at_s: self.looking.fixated(at_s))
        self.looking = self._sight(light, thumbnails)
        self._partials = Partials(self._answerer, self._observer, self.looking.at)
        self._night = Night(config, faculties, clock, calendar)
        self._thinking = Thinking(self._replier, self._talk.contexts, clock, calendar)
        self._draft: Draft | None = None
        """The open turn's newest."""
        self._hearing: Hearing | None = None
        """Recognition begun in a gap that may become a pause."""
        self._pauses_kept = self._listening.turns.pauses.to_dict()
        self._settling: set[asyncio.Task[None]] = set()
        """Turns that have ended and are not understood yet; bounded by those that wait."""
        self._paused, self._step = False, STEPS[0]

    def _router(self, routes: Journal | None, chance: random.Random | None) -> Router:
        near, far, rules = self._faculties.llm, self._faculties.far, self._config.offload
        return make_router(rules, near, far, self._clock, reencode=shrink, journal=routes, chance=chance)

    def _scenery(self) -> Scenery:
        eye = self._faculties.vision
        by_model = self._config.remember.written_by_model
        writer = ViewWriter(self._faculties.llm, eye).summarise if by_model else None
        return Scenery(writer, Album() if eye is not None else None)

    def _ears(self, echo: Canceller | None, wake: Spotter | None, ids: Callable[[], str] | None) -> Listening:
        hear = self._config.hear
        turns = TurnDetector(
            TurnRules(hear.start_above, hear.stop_below, silence=round(hear.silence_s * RATE)),
            ids=ids,
        )
        rules = CaptureRules(push_to_talk=hear.push_to_talk)
        capture = Capture(rules, echo, wake, changed=lambda change: self._listening.gate_changed(change))
        return Listening(capture, self._faculties.vad, turns, self._faculties.end_of_turn, self)

    def _links(self, back: str) -> Links:
        return Links(self.forgot, self.mute, lambda: online(self._engine.watch), back)

    def _talking(self) -> Talk:
        return Talk(
            self._faculties,
            self._replier,
            self._floor,
            self._player,
            self._calendar,
            self._observer,
            self._answerer.say,
            self._commanding,
            self._initiative,
            kept=self._keep_pauses,
            answered=self._rest,
        )

    def _sight(self, light: Light | None, thumbnails: bool) -> Looking:
        see, faculties = self._config.see, self._faculties
        light = light or (Led(see.led) if see.led else ScreenLight())
        taker = FrameTaker(see, Indicator(light), faculties.faces)
        sees = (see, taker, faculties.eyes, self.gazing, self._clock, self._observer, self._saw)
        return Looking(*sees, thumbnails, self.scenery, Captions(faculties.vision, self._engine))

    async def warm(self) -> None:
        """Reads the prompt's unchanging beginning, so that the first turn need not."""
        await self._replier.warm()

    async def run(
        self,
        microphone: AsyncIterator[AudioFrame],
        camera: Pictures,
        eye: AsyncIterator[EyeFrame] | None = None,
    ) -> None:
        """Lives until the streams have ended and the last turn is answered."""
        await self._recollect()
        stage = Stage(
            wearer_speaks=lambda: self._listening.speaking or not self._floor.free,
            busy=lambda: self._floor.busy,
            muted=lambda: self._listening.capture.muted,
            speak=self._talk.speak_first,
        )
        aside = [
            asyncio.create_task(work)
            for work in (self._night.run(), self._thinking.run(), self._initiative.run(stage))
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.looking.take(camera))
                tasks.create_task(self.looking.note())
                if eye is not None:
                    tasks.create_task(self.gazing.follow(eye))
                tasks.create_task(self._talk.run())
                tasks.create_task(self._listen(microphone))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # one stream broke; its own message says it best
        finally:
            for task in aside:
                task.cancel()
            await asyncio.gather(*aside, return_exceptions=True)
            self._partials.stop()
            self._void_hearing()
            self._void_draft()
            self._player.stop()
            await self._engine.close()
            for room in (self._listening, self._answerer, self.looking, self.gazing, self.scenery):
                room.close()

    async def _recollect(self) -> None:
        """How this wearer pauses, from the days before."""
        memory = self._faculties.memory
        if (kept := await memory.run(memory.store.meta, PAUSES)) is not None:
            self._listening.turns.pauses = Pauses.from_dict(json.loads(kept))
            self._pauses_kept = self._listening.turns.pauses.to_dict()

    def hold(self) -> None:
        """The push-to-talk button goes down."""
        self._listening.capture.hold()

    def release(self) -> None:
        """The push-to-talk button comes up: what was said while it was down is a turn."""
        self._listening.capture.release()

    def mute(self) -> None:
        """No sound is taken from now on; what an open turn held is gone."""
        self._listening.capture.mute()

    def go(self, step: Step) -> None:
        """Does as much as ``step`` allows from now on."""
        self._step = step
        self.looking.slow_down(step.frames_slower)
        self._engine.low_battery = step.name in ("low", "critical")

    @property
    def link(self) -> Watch | None:
        """The way to the server, as far as it is known; nothing without a server."""
        return self._engine.watch

    def choose(self, config: Config) -> None:
        """Keeps to the wearer's new choices: what is kept how long, and what may leave the device."""
        self._night.keep(retention(config.remember))
        self._engine.rules = rules_of(config.offload)

    @property
    def state(self) -> State:
        """What the wearer would say that it is doing."""
        if self._listening.capture.muted:
            return "muted"
        if self._listening.speaking:
            return "hearing"
        if self._floor.sounding:
            return "speaking"
        return "thinking" if self._floor.busy else "listening"

    def unmute(self) -> None:
        """Listens again."""
        self._listening.capture.unmute()

    async def _listen(self, microphone: AsyncIterator[AudioFrame]) -> None:
        await self._listening.run(microphone)
        self._talk.no_more()
        self.looking.no_more()

    # What the wearer does.

    @property
    def answering(self) -> bool:
        """See ``Listener``."""
        return self._floor.busy

    def speech_started(self, event: SpeechStarted) -> None:
        """See ``Listener``."""
        self._paused = False
        self._night.wake()
        self._thinking.wake()
        self._floor.wearer_speaks(event.turn_id, event.at / RATE)
        self._partials.begin(event.at / RATE, read=self._config.hear.partials and self._step.ahead)
        self._engine.wearer_speaks()
        self.looking.spoken(event.at / RATE)

    def speech_goes_on(self, turns: TurnDetector) -> None:
        """See ``Listener``."""
        if self._paused:
            return
        if HEAR_AHEAD <= turns.gap < HEAR_AHEAD + CHUNK:
            self.looking.spoken(turns.so_far().decided / RATE)
        if turns.gap >= HEAR_AHEAD and self._ahead:
            if self._hearing is None:
                self._partials.stop()
                self._hearing = Hearing(self._answerer, turns.so_far())
            return
        self._void_hearing()
        if self._config.hear.partials and self._step.ahead and self._partials.due(turns.length):
            self._partials.make(turns.so_far())

    def speech_paused(self, event: SpeechPaused) -> None:
        """See ``Listener``."""
        self._paused = True
        self._partials.stop()
        if self._ahead and event.revision < DRAFTS_A_TURN:
            self._begin_draft(event)

    def speech_resumed(self, event: SpeechResumed) -> None:
        """See ``Listener``."""
        self._paused = False
        self._void_draft()
        self._floor.wearer_speaks(event.turn_id, event.at / RATE)

    def turn_ended(self, event: TurnEnded) -> None:
        """See ``Listener``."""
        self._partials.stop()
        draft = self._draft
        if draft is None or draft.of != (event.turn_id, event.revision):
            draft = self._begin_draft(event)
        self._draft = None
        draft.trace.ended = event
        self._talk.add(EndedTurn(event, draft, self._floor.answers(event.turn_id, event.end / RATE)))
        settling = asyncio.create_task(self._settle(draft))
        self._settling.add(settling)
        settling.add_done_callback(self._settling.discard)

    @property
    def _ahead(self) -> bool:
        return self._config.hear.speculate and self._step.ahead

    def turn_discarded(self) -> None:
        """See ``Listener``."""
        self._partials.stop()
        self._void_hearing()
        self._void_draft()
        self._floor.discard()
        self._rest()

    def _begin_draft(self, event: SpeechPaused | TurnEnded) -> Draft:
        self._void_draft()
        hearing, self._hearing = self._hearing, None
        if hearing is not None and hearing.end != event.end:
            hearing.void()
            hearing = None
        # The view is taken now: while the turn waits, later frames push older descriptions out.
        self.looking.spoken(event.decided / RATE)
        view = self.looking.at(event.end / RATE, event.start / RATE)
        self._draft = Draft(event, view, self._answerer, self._floor, hearing)
        return self._draft

    async def _settle(self, draft: Draft) -> None:
        """Nothing is spoken into the wait for what the wearer has said."""
        await asyncio.wait((draft.verdict,))
        made = not draft.verdict.cancelled() and draft.verdict.exception() is None
        self._floor.settle(draft.of[0], draft.verdict.result() if made else None)

    def _void_hearing(self) -> None:
        if self._hearing is not None:
            self._hearing.void()
            self._hearing = None

    def _void_draft(self) -> None:
        if self._draft is not None:
            self._draft.void()
            self._draft = None

    def _rest(self) -> None:
        if not self._floor.busy and not self._listening.speaking and self._step.background:
            self._night.rest()
            self._thinking.rest()
            self.looking.captions.rest()

    async def _keep_pauses(self) -> None:
        """What was learned of the wearer's pauses, where it has changed: a write waits for the disk."""
        memory, learned = self._faculties.memory, self._listening.turns.pauses.to_dict()
        if learned != self._pauses_kept:
            self._pauses_kept = learned
            await memory.run(memory.store.set_meta, PAUSES, json.dumps(learned))

    async def forgot(self) -> None:
        """The memory lost or got back something: nothing else may hold words of it."""
        self._replier.forget()
        self._commanding.forget()
        self._observer.forgot()
        await self._initiative.forgot()

    async def _saw(self, at_s: float, view: SceneDescription) -> None:
        await self._talk.keep_context(at_s, view, "", guess_place(view))
