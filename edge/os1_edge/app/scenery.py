"""Frames and dialogue in one order: what was seen before, for who asks, and for a model that sees.

Of more than four frames the first three in a row become a sentence, by a model in the background, or by their
descriptions where there is none or it has no time (vision-dialogue paper).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from os1_edge.app.trace import Observer, TurnTrace, tell_failure
from os1_edge.converse.view_writer import lines_before
from os1_edge.converse.window import Frame, FrameWindow, Line, SummaryWanted
from os1_edge.events import RATE, PartialTranscript, SeenFrame
from os1_edge.remember.chores import Busy
from os1_edge.see.album import Album
from os1_edge.see.scene import SceneDescription

log = logging.getLogger(__name__)

EARLIER = 3
"""Earlier views that a question about them is given, newest first: a small model loses itself in more."""

TRIES, PATIENCE_S = 5, 2.0
"""How often, and after how long, a model that was busy is asked again; then the descriptions stand in."""

Summarise = Callable[[SummaryWanted, tuple[bytes, ...]], Awaitable[str]]
"""See ``ViewWriter.summarise``."""


class Scenery:
    """The frame window of one conversation. Use it in one loop."""

    def __init__(self, summarise: Summarise | None = None, album: Album | None = None) -> None:
        """``album`` keeps the pictures of the frames in the window, for a vision model."""
        self._summarise = summarise
        self._album = album
        self.window = FrameWindow()
        self._task: asyncio.Task[None] | None = None

    @property
    def wants_pictures(self) -> bool:
        """Whether frames are to come with their pictures."""
        return self._album is not None

    def close(self) -> None:
        """Ends what is being written."""
        if self._task is not None:
            self._task.cancel()

    def forget(self) -> None:
        """All that was said and seen so far is gone from here."""
        self.close()
        self.window, self._album = FrameWindow(), None if self._album is None else Album()

    def saw(self, at_s: float, seen: SceneDescription, jpeg: bytes | None = None) -> None:
        """A new frame was described; ``jpeg`` is its picture without faces."""
        frame = Frame(at_s, f"{at_s:.3f}", seen.sentence)
        if self._album is not None and jpeg is not None:
            self._album.put(frame.key, jpeg)
        self.window = self.window.add(frame)
        self._shorten()

    def said(self, at_s: float, speaker: str, text: str) -> None:
        """A line of the conversation."""
        if text:
            self.window = self.window.add(Line(at_s, speaker, text))

    def before(self, at_s: float) -> tuple[str, ...]:
        """What was in view before what is in view at session second ``at_s``, oldest first."""
        newest = max((f.at_s for f in self.window.frames if f.at_s <= at_s), default=None)
        return () if newest is None else lines_before(self.window.items, newest, EARLIER)

    def pictures(self) -> tuple[bytes, ...]:
        """The window's pictures as a prompt shows them, oldest first: the newest whole, others smaller."""
        if self._album is None:
            return ()
        shown = [one for one in self.window.shown() if isinstance(one.item, Frame)]
        found = [self._album.picture(one.item.key, one.scale) for one in shown if isinstance(one.item, Frame)]
        return tuple(picture for picture in found if picture is not None)

    def _shorten(self) -> None:
        wanted = self.window.wanted()
        if wanted is None or (self._task is not None and not self._task.done()):
            return
        if self._summarise is None:
            self._replaced(wanted, "")
        else:
            self._task = asyncio.create_task(self._write(wanted))

    async def _write(self, wanted: SummaryWanted) -> None:
        held = self._album
        found = [held.picture(frame.key) for frame in wanted.frames] if held is not None else []
        text = ""
        for _ in range(TRIES):
            try:
                assert self._summarise is not None
                text = await self._summarise(wanted, tuple(picture for picture in found if picture))
                break
            except Busy:
                await asyncio.sleep(PATIENCE_S)
            except Exception as e:
                tell_failure("the summary of earlier views", e)
                break
        self._replaced(wanted, text)

    def _replaced(self, wanted: SummaryWanted, text: str) -> None:
        self.window = self.window.summarised(wanted, text)
        if self._album is not None:
            self._album.drop(frame.key for frame in wanted.frames)


class Overheard(Observer):
    """An observer that keeps the lines of the conversation for the frame window, and passes all on."""

    def __init__(self, observer: Observer, scenery: Scenery) -> None:
        self._observer, self._scenery = observer, scenery

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        """See ``Observer``."""
        self._observer.frame_described(frame, description)

    def partly_heard(self, partial: PartialTranscript) -> None:
        """See ``Observer``."""
        self._observer.partly_heard(partial)

    def being_said(self, trace: TurnTrace, clauses: Sequence[str]) -> None:
        """See ``Observer``."""
        self._observer.being_said(trace, clauses)

    def turn_answered(self, trace: TurnTrace) -> None:
        """See ``Observer``."""
        if trace.failed is None:
            self._scenery.said(trace.ended.end / RATE, "Wearer", trace.heard)
            self._scenery.said(trace.ended.decided / RATE, "OS-1", trace.reply)
        self._observer.turn_answered(trace)

    def forgot(self) -> None:
        """See ``Observer``."""
        self._scenery.forget()
        self._observer.forgot()
