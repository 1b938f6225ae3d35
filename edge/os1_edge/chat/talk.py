"""A chat: each line is a turn that has ended, and is answered before the next is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

from os1_edge.app import Os1, TurnTrace
from os1_edge.chat.faculties import Overheard, Typed
from os1_edge.clock import Calendar, Clock, WallCalendar
from os1_edge.config import Config
from os1_edge.device.speaker import NullSink
from os1_edge.events import (
    RATE,
    AudioFrame,
    Image,
    PartialTranscript,
    SceneFrame,
    SeenFrame,
    SpeechStarted,
    TurnEnded,
    turn_ids,
)
from os1_edge.faculties import Faculties
from os1_edge.see.scene import SceneDescription

Told = Callable[[TurnTrace], None]
"""Is told each turn that was answered, and what the companion said unasked."""

UNMUTE = "unmute"
"""What is typed to be heard again."""


LOOKS_S = 30.0
"""How long a new picture may take to be described; its models are loaded with the first one."""


class Chat:
    """One conversation. Make it with ``chat``."""

    def __init__(self, config: Config, faculties: Faculties, told: Told, calendar: Calendar | None) -> None:
        self._clock = Clock()
        self._calendar = calendar or WallCalendar(self._clock)
        self._told = told
        self._typed = cast(Typed, faculties.asr)
        self._shown: asyncio.Queue[SceneFrame | None] = asyncio.Queue()  # bounded: one a line, taken at once
        self._picture: tuple[str, Image] | None = None
        self._seen = asyncio.Event()
        """The picture has been looked at."""
        self._answered: asyncio.Future[TurnTrace] | None = None
        self._over = asyncio.Event()
        self._broken: Exception | None = None
        """What the chat ended of."""
        self._turn_id = turn_ids(lambda: self._calendar.at(0.0))
        self._os1 = Os1(
            config, faculties, self._clock, self._calendar, NullSink(), self, back="type unmute"
        )  # fmt: skip
        self.calls = cast(Overheard, faculties.llm).calls
        """What the language model was asked since they were last cleared."""

    @property
    def muted(self) -> bool:
        """Whether nothing typed is heard but ``UNMUTE``."""
        return self._os1.state == "muted"

    def unmute(self) -> None:
        """Listens again."""
        self._os1.unmute()

    def show(self, name: str, image: Image) -> None:
        """Puts a picture before the companion's eyes, until another comes."""
        self._picture = name, image
        self._seen.clear()

    async def say(self, line: str) -> TurnTrace:
        """The wearer says ``line``; returns when it has been answered, or could not be.

        Raises:
            Exception: whatever the companion ended of, or telling of an exchange.
        """
        if self._broken is not None:
            raise self._broken
        if self._picture is not None:
            name, image = self._picture
            await self._shown.put(SceneFrame(self._clock.now(), name, image))
            with suppress(TimeoutError):  # then it is asked without having seen it
                await asyncio.wait_for(self._seen.wait(), LOOKS_S)
        at = round(self._clock.now() * RATE) + 1  # after the frame
        turn_id = self._turn_id()
        self._answered = asyncio.get_running_loop().create_future()
        self._os1.speech_started(SpeechStarted(turn_id, at))
        self._os1.turn_ended(TurnEnded(turn_id, 0, at, at, at, "typed", self._typed.sound(line), at))
        return await self._answered

    async def life(self) -> None:
        """Lives until ``end``."""
        self._clock.restart()
        warming = asyncio.create_task(self._os1.warm())  # who asks for no model need not wait for it
        try:
            await self._os1.run(self._no_sound(), self._camera())
        except Exception as e:
            self._break(e)
            raise
        finally:
            warming.cancel()
            await asyncio.gather(warming, return_exceptions=True)
            self._over.set()

    def end(self) -> None:
        """Nothing more is typed."""
        self._over.set()
        self._shown.put_nowait(None)

    def _break(self, error: Exception) -> None:
        self._broken = error
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)

    # What the companion tells.

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        """See ``Observer``."""
        self._seen.set()

    def partly_heard(self, partial: PartialTranscript) -> None:
        """See ``Observer``."""

    def being_said(self, trace: TurnTrace, clauses: Sequence[str]) -> None:
        """See ``Observer``."""

    def turn_answered(self, trace: TurnTrace) -> None:
        """See ``Observer``."""
        try:
            self._told(trace)
        except OSError as e:  # nobody reads any more; what was said is kept all the same
            self._break(e)
        if trace.heard and self._answered is not None and not self._answered.done():
            self._answered.set_result(trace)

    def forgot(self) -> None:
        """See ``Observer``. What a terminal has printed stands there."""

    # What it perceives.

    async def _no_sound(self) -> AsyncIterator[AudioFrame]:
        await self._over.wait()
        return
        yield

    async def _camera(self) -> AsyncIterator[SceneFrame]:
        while (frame := await self._shown.get()) is not None:
            yield frame


@asynccontextmanager
async def chat(
    config: Config, faculties: Faculties, told: Told, calendar: Calendar | None = None
) -> AsyncIterator[Chat]:
    """A chat that lives as long as the block; left by an error or not, what it holds is ended."""
    talk = Chat(config, faculties, told, calendar)
    life = asyncio.create_task(talk.life())
    try:
        yield talk
        talk.end()
        await life
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


def picture(named: str) -> tuple[str, Image]:
    """The picture in the file ``named``, with its name.

    Raises:
        UnreadableImage: it is none.
    """
    from os1_edge.see.image import load_image

    path = Path(named).expanduser()
    return path.name, load_image(path)
