"""From the camera's picture to what may be described, and to what may leave the device.

A thin shell over the decisions beside it: the indicator permits, the schedule says when, quality and likeness
say what is kept, faces go before a frame is released. It holds no picture between two calls.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from os1_edge.config import See
from os1_edge.events import Image
from os1_edge.see.crop import Box
from os1_edge.see.faces import Finder, blur_faces, shrink
from os1_edge.see.frames import FrameDecision, FrameSchedule, Keeper, Kept, Prompted, look_of, turned
from os1_edge.see.indicator import Ask, Indicator
from os1_edge.see.jpeg import Jpeg, JpegEncoder, frame_budget
from os1_edge.see.motion import Motion, MotionWatch
from os1_edge.see.quality import Quality, judge_picture

log = logging.getLogger(__name__)

LONG_SIDE = 640
"""Pixels of the longer side of every frame (paper 3.3.2): a larger one is scaled down before it waits."""


class NoFaceFinder(Exception):
    """Faces are to be blurred and nothing here can find them: the frame stays on the device."""


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A picture as the camera gave it, made ready to be taken or to be replaced by the next."""

    image: Image = field(repr=False)
    """Upright, `LONG_SIDE` at most."""
    changed: bool
    """It shows another scene than the last one kept."""
    motion: Motion
    """See `MotionWatch`."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A picture and what became of it."""

    at_s: float
    image: Image | None = field(repr=False)
    """None where it is not kept."""
    quality: Quality
    kept: Kept


class FrameTaker:
    """Decides over one scene camera. Times: seconds of the session's clock, as for audio and eye.

    `glimpse` and `take` may each run in a thread of their own; the rest belongs to one loop.
    """

    def __init__(self, settings: See, indicator: Indicator, faces: Finder | None = None) -> None:
        self._settings = settings
        self.indicator = indicator
        self._faces = faces
        if not settings.blur_faces:
            log.warning("[see] blur_faces is off: pictures that leave the device or are written show faces")
        self._schedule = FrameSchedule(self._settings.every_s, self._settings.in_dialogue_s)
        self._keeper = Keeper()
        self._motion = MotionWatch()
        self._encoder = JpegEncoder()

    def due(self, now_s: float, in_dialogue: bool = False, prompted: Prompted | None = None) -> FrameDecision:
        """Is a picture to be taken at `now_s`?"""
        return self._schedule.due(now_s, in_dialogue, prompted)

    def next_s(self, in_dialogue: bool = False, prompted: Prompted | None = None) -> float:
        """When `due` will say yes."""
        return self._schedule.next_s(in_dialogue, prompted)

    def slow_down(self, factor: float) -> None:
        """Takes pictures so many times more seldom; infinite: only when something asks for one."""
        self._schedule.slower = factor

    def begun(self, at_s: float) -> None:
        """A picture exposed at `at_s` has been handed to `take`, which may be slow."""
        self._schedule.begun(at_s)

    def glimpse(self, picture: Image, at_s: float) -> Glimpse:
        """`picture` (uint8 BGR, as the camera gave it) upright and small, and whether it is worth taking.

        Raises:
            NoCapture: no picture may be taken now; this one is not looked at.
        """
        self.indicator.permit()
        upright = turned(shrink(picture, LONG_SIDE), self._settings.turned_deg)
        look = look_of(upright)
        return Glimpse(upright, self._keeper.changed(look), self._motion.step(look, at_s))

    def take(self, upright: Image, at_s: float) -> Taken:
        """What becomes of a picture (`Glimpse.image`) exposed at `at_s`.

        Raises:
            NoCapture: no picture may be taken now; this one is not looked at.
        """
        self.indicator.permit()
        quality = judge_picture(upright)
        kept = self._keeper.judge(quality, look_of(upright))
        self._schedule.taken(at_s, again=kept.retake)
        return Taken(at_s, upright if kept.keep else None, quality, kept)

    def release(
        self,
        image: Image,
        bytes_per_s: float,
        seconds: float = 1.0,
        side: int = LONG_SIDE,
        box: Box | None = None,
    ) -> Jpeg:
        """`image` as it may leave the device or be written: without faces, its longer side at most `side`,
        as small as the link asks. With `box` only that part of it; faces go first, as half a face is found
        less surely than a whole one.

        Raises:
            FaceStays: a face is still found after it was blurred.
            NoFaceFinder: faces are to be blurred and there is no finder.
        """
        if self._settings.blur_faces:
            if self._faces is None:
                raise NoFaceFinder("faces cannot be blurred; run: os1 models pull centerface")
            image = blur_faces(image, self._faces).image
        if box is not None:
            x, y, wide, high = box
            image = image[y : y + high, x : x + wide]
        budget = frame_budget(bytes_per_s, seconds, self._settings.jpeg_bytes)
        return self._encoder.encode(shrink(image, side), budget)

    def start(self) -> str | None:
        """Capture begins, with its light; why not, where it cannot."""
        answer = self.indicator.ask(Ask.START)
        return None if answer.done else answer.reason

    def stop(self) -> None:
        """Capture ends, and its light with it."""
        self.indicator.ask(Ask.STOP)
