"""The scene camera: which of its pictures are taken, and what they show.

::

    picture ─ may it be looked at? ─ the newest one, replaced by the next ─┬─ due ───────── taken ─ described
              (indicator)            (at most one waits)                   ├─ other scene
                                                                           ├─ the wearer asks
                                                                           └─ their gaze rests: words are read

Nothing is held of a picture once it has been described, but for the newest, which a question or a look may
still be about for two seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from os1_edge.app.captions import Captions
from os1_edge.app.gazing import Gazing
from os1_edge.app.scenery import Scenery
from os1_edge.app.trace import Observer, tell_failure
from os1_edge.app.views import NOTHING_SEEN, Aim, View, Views
from os1_edge.clock import Clock
from os1_edge.config import See
from os1_edge.events import Image, SceneFrame, SeenFrame
from os1_edge.see.camera import LONG_SIDE, FrameTaker, NoFaceFinder
from os1_edge.see.crop import Box
from os1_edge.see.faces import FaceStays
from os1_edge.see.frames import Prompted
from os1_edge.see.indicator import Ask, NoCapture
from os1_edge.see.motion import Motion
from os1_edge.see.scene import SceneDescriber, SceneDescription, unusable

log = logging.getLogger(__name__)

FRAMES_AHEAD = 4
"""Frames that may wait to be described, as pictures are large; beyond that none is taken."""

HELD_S = 2.0
"""The newest picture, once described, is held so long for a question or a look at something in it."""

DIALOGUE_S = 20.0
"""So long after the wearer has spoken they still talk with somebody: a reply, and a breath to answer it."""

BEFORE_S = 1.0
"""Who asks about a thing looks at it from about a second before they say so."""

FRAME_REACH_S = 0.5
"""A gaze so much before a picture is still about what it shows."""

THUMBNAIL_SIDE = 160

Pictures = AsyncIterator[SceneFrame] | Callable[[], AsyncGenerator[SceneFrame, None]]
"""Gives pictures; or opens a camera that does, and is on as long as it is open."""

Seen = Callable[[float, SceneDescription], Awaitable[None]]
"""Is given each usable description with its frame's session second."""


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest picture of the camera."""

    frame: SceneFrame
    motion: Motion
    taken: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
    """A description, and what is to be done with it."""

    seen: SceneDescription
    new: bool
    again: bool
    """Another picture is wanted at once."""


class Looking:
    """Takes pictures and has them described. Use it in one loop; one thread of its own sees."""

    def __init__(
        self,
        see: See,
        taker: FrameTaker,
        eyes: SceneDescriber,
        gazing: Gazing,
        clock: Clock,
        observer: Observer,
        seen: Seen,
        thumbnails: bool = False,
        scenery: Scenery | None = None,
        captions: Captions | None = None,
    ) -> None:
        """``thumbnails``: the observer is given small copies without faces; ``scenery`` what was seen;
        ``captions`` the pictures of it, as they may leave."""
        self._see, self._taker, self._eyes = see, taker, eyes
        self._gazing, self._clock, self._observer, self._seen = gazing, clock, observer, seen
        self._thumbnails, self._scenery = thumbnails, scenery or Scenery()
        self.captions = captions or Captions()
        self._aim = Aim(eyes, gazing.scene, see)
        self._views = Views()
        self._taken: asyncio.Queue[tuple[SceneFrame, str, asyncio.Future[_Told]] | None]
        self._taken = asyncio.Queue(FRAMES_AHEAD + 1)  # and the mark of the end
        self._newest: _Newest | None = None
        self._last = NOTHING_SEEN
        """The last description kept; the worker's own."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="eyes")
        self._timer: asyncio.Task[None] | None = None
        self._spoke_s: float | None = None
        self._away_until_s = 0.0
        self._may = asyncio.Event()
        self._no_more = asyncio.Event()

    def close(self) -> None:
        """Ends the worker and the light."""
        self._taker.stop()
        self.captions.close()
        self._drop()
        self._worker.shutdown(wait=False)

    # What was in view.

    def at(self, at_s: float, since_s: float | None = None) -> View | None:
        """What was in view at session second ``at_s``; of what was said from ``since_s`` on, with what the
        gaze rested on meanwhile."""
        view = self._views.at(at_s)
        if view is None or since_s is None:
            return view
        gaze = self._gazing.rested(max(since_s - BEFORE_S, view.frame_at_s - FRAME_REACH_S), at_s)
        # Also without a gaze: what was looked at before is not what is asked about now.
        return replace(view, looked_at=gaze, aim=self._aim)

    # When a picture is taken.

    def spoken(self, at_s: float) -> None:
        """The wearer speaks, or has just paused: what they see now is what they may ask about."""
        self._spoke_s = at_s
        self.captions.pause()
        self._consider(at_s, "question")

    def fixated(self, at_s: float) -> None:
        """The wearer's gaze rests on something."""
        self._consider(at_s, "fixation")

    def slow_down(self, factor: float) -> None:
        """See ``FrameTaker.slow_down``."""
        self._taker.slow_down(factor)
        if factor > 1:
            self.captions.pause()

    @property
    def away(self) -> bool:
        """No picture is taken now."""
        return not self._may.is_set()

    def look_away(self) -> str:
        """No picture is taken from now on, and the light is off; what happened, in words."""
        answer = self._taker.indicator.ask(Ask.LOOK_AWAY)
        self._may.clear()
        self._drop()
        self.captions.forget()
        now = self._clock.now()
        unseen: asyncio.Future[SceneDescription] = asyncio.get_running_loop().create_future()
        unseen.set_result(replace(NOTHING_SEEN, reason="it was asked to look away"))
        self._views.add(View(now, unseen))
        return answer.reason

    def look_back(self) -> str:
        """Pictures may be taken again; what happened, in words."""
        answer = self._taker.indicator.ask(Ask.LOOK_BACK)
        if answer.done:
            self._away_until_s = self._clock.now()
            self._begin()
        return answer.reason

    def no_more(self) -> None:
        """Nothing more is heard: what the camera has still to give is not waited for."""
        self._no_more.set()
        self._may.set()

    async def take(self, camera: Pictures) -> None:
        """Looks through the camera until it ends and ``no_more`` was said. One that is given as a function
        is closed when it is to look away, and opened anew to look back; else it is not asked meanwhile."""
        self._begin()
        pictures: AsyncIterator[SceneFrame] | None = None
        try:
            while await self._may.wait() and not (self._no_more.is_set() and self._closed):
                if pictures is None:
                    pictures = camera() if callable(camera) else camera
                try:
                    await self._came(await anext(pictures))  # no name holds the picture until the next one
                except StopAsyncIteration:
                    break
                if callable(camera) and not self._may.is_set():
                    await _close(pictures)
                    pictures = None
            await self._no_more.wait()
        finally:
            if callable(camera):
                await _close(pictures)
            self._drop()
            await self._taken.put(None)

    @property
    def _closed(self) -> bool:
        try:
            self._taker.indicator.permit()
        except NoCapture:
            return True
        return False

    def _begin(self) -> None:
        if (trouble := self._taker.start()) is not None:
            log.warning("the scene camera stays off: %s", trouble)
            return
        self._may.set()

    async def _came(self, frame: SceneFrame) -> None:
        if frame.at_s < self._away_until_s:
            return
        loop = asyncio.get_running_loop()
        try:
            glimpse = await loop.run_in_executor(None, self._taker.glimpse, frame.image, frame.at_s)
        except NoCapture as e:
            if self._may.is_set() and not self._no_more.is_set():
                log.warning("%s", e)
                self._may.clear()
            return
        except Exception as e:
            tell_failure(f"the scene frame at {frame.at_s:.1f} s", e)
            return
        if frame.at_s < self._away_until_s or not self._may.is_set():
            return  # it was asked to look away meanwhile
        self._newest = _Newest(replace(frame, image=glimpse.image), glimpse.motion)
        self._consider(frame.at_s, "scene change" if glimpse.changed else None)

    def _consider(self, at_s: float, prompted: Prompted | None) -> None:
        """Takes the newest picture if it is time; else looks again when it will be."""
        newest = self._newest
        if newest is None or (newest.taken and prompted != "fixation"):
            return
        talking = self._spoke_s is not None and at_s - self._spoke_s <= DIALOGUE_S
        decision = self._taker.due(at_s, talking, prompted)
        if decision.yes and not self._taken.qsize() >= FRAMES_AHEAD:
            self._take(newest, at_s, decision.reason, read=prompted == "fixation")
            self._wake(at_s + HELD_S, None)
        elif not newest.taken or prompted is not None:
            self._wake(max(self._taker.next_s(talking, prompted), at_s + 0.05), prompted)

    def _take(self, newest: _Newest, at_s: float, why: str, *, read: bool) -> None:
        frame = newest.frame
        self._newest = replace(newest, taken=True)
        self._taker.begun(frame.at_s)
        gaze = self._gazing.rested(frame.at_s - FRAME_REACH_S, max(frame.at_s, at_s))
        height, width = frame.image.shape[:2]
        aimed = self._aim.on(gaze, width, height)
        loop = asyncio.get_running_loop()

        def work() -> _Told:
            taken = self._taker.take(frame.image, frame.at_s)
            again, wanted = taken.kept.retake, read and self._see.read_text and aimed is not None
            if not taken.quality.usable:
                return _Told(unusable(taken.quality), True, again)
            if taken.kept.keep or not self._last.usable:
                self._last = NOTHING_SEEN  # should this one fail, no later frame is taken for what was before
                seen = self._eyes.look(frame.image, aimed, wanted, taken.quality)
                self._last = replace(seen, motion=newest.motion, at_s=frame.at_s)
                return _Told(self._last, True, again)
            before = self._last.text
            self._last = self._eyes.again(self._last, aimed, frame.image if wanted else None)
            return _Told(self._last, self._last.text not in ((), before), again)

        told = loop.run_in_executor(self._worker, work)
        view = View(frame.at_s, asyncio.ensure_future(_description(told)), captions=self.captions)
        view.described.add_done_callback(_heeded)
        self._views.add(view)
        self._taken.put_nowait((frame, why, told))

    def _wake(self, at_s: float, prompted: Prompted | None) -> None:
        """Looks again at session second ``at_s``."""
        if self._timer is not None:
            self._timer.cancel()

        async def later() -> None:
            await self._clock.sleep_until(at_s)
            self._timer = None
            newest = self._newest
            if newest is not None and newest.taken and prompted is None:
                self._newest = None  # described, and no longer what is in view
            self._consider(at_s, prompted)

        self._timer = asyncio.create_task(later())

    def _drop(self) -> None:
        self._newest = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # What is told of it.

    async def note(self) -> None:
        """Tells and remembers what was seen, in the order of the frames."""
        while await self._note_next():
            pass

    async def _note_next(self) -> bool:
        """The next of them; what holds its picture goes with this call. False at the end."""
        taken = await self._taken.get()
        if taken is None:
            return False
        frame, why, told = taken
        try:
            what = await told
            picture = await self._tell(frame, why, what.seen) if what.new else None
            await self._caption(frame.image, what.seen, picture)
            if what.again:
                self._consider(self._clock.now(), None)
        except NoCapture:
            pass  # it was asked to look away before the picture was looked at
        except Exception as e:
            tell_failure(f"the scene frame at {frame.at_s:.1f} s", e)
        return True

    async def _caption(self, image: Image, seen: SceneDescription, whole: bytes | None) -> None:
        """``whole`` is all of the picture, where it was released already."""
        if not self.captions.wants(seen):
            return
        if seen.crop is not None or whole is None:
            whole = await self._released(image, LONG_SIDE, seen.crop)
        if whole is not None and self._may.is_set():
            self.captions.show(seen, whole)

    async def _tell(self, frame: SceneFrame, why: str, seen: SceneDescription) -> bytes | None:
        """The picture itself, where it was released."""
        small = await self._released(frame.image, THUMBNAIL_SIDE) if self._thumbnails else None
        self._observer.frame_described(SeenFrame(frame.at_s, frame.source, why, small), seen)
        if not seen.usable:
            return None
        wanted = self._scenery.wants_pictures
        picture = await self._released(frame.image, LONG_SIDE) if wanted else None
        self._scenery.saw(frame.at_s, seen, picture)
        await self._seen(frame.at_s, seen)
        return picture

    async def _released(self, image: Image, side: int, box: Box | None = None) -> bytes | None:
        """A copy without faces; nothing where that cannot be had."""
        most = self._see.jpeg_bytes
        loop = asyncio.get_running_loop()
        try:
            made = await loop.run_in_executor(
                self._worker, lambda: self._taker.release(image, most, side=side, box=box)
            )
        except (FaceStays, NoFaceFinder) as e:
            log.warning("no copy of a frame: %s", e)
            return None
        return made.data


async def _close(pictures: AsyncIterator[SceneFrame] | None) -> None:
    if isinstance(pictures, AsyncGenerator):
        await pictures.aclose()


def _heeded(described: asyncio.Future[SceneDescription]) -> None:
    """Whoever asks for the view learns that it failed; nobody may ask."""
    if not described.cancelled():
        described.exception()


async def _description(told: asyncio.Future[_Told]) -> SceneDescription:
    return (await asyncio.shield(told)).seen
