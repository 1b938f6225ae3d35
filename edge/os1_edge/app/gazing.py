"""Where the wearer looks: the eye camera's frames, followed one after the other, to look back at."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from os1_edge.app.trace import tell_failure
from os1_edge.clock import Clock
from os1_edge.events import Blink, EyeFrame, Fixation, Gaze
from os1_edge.see.gaze.attention import Attention
from os1_edge.see.gaze.calibration import CalibrationError
from os1_edge.see.gaze.scene_camera import SceneCamera
from os1_edge.see.gaze.track import EyeSample, GazeTracker

log = logging.getLogger(__name__)

LATE_S = 0.2
"""An eye frame that waited longer is passed over: where the wearer looks now counts, not each frame."""


POINTED_S = 30.0
"""A finger's point counts for so long: who taps a thing asks about it soon."""

POINTED_DEG = 2.0
"""Error of a finger on a small picture."""


@dataclass(slots=True)
class Followed:
    """What was made of the eye camera so far."""

    frames: int = 0
    pupils: int = 0
    """Frames that gave a gaze."""
    fixations: int = 0
    blinks: int = 0
    skipped: int = 0
    """Frames that came too late, or could not be used."""


class Gazing:
    """Follows one eye; without a tracker nothing is known of the gaze."""

    def __init__(self, tracker: GazeTracker | None, clock: Clock, fixated: Callable[[float], None]) -> None:
        """``fixated`` is told the session second at which a look has lasted long enough to mean something."""
        self._tracker = tracker
        self._clock = clock
        self._fixated = fixated
        self._attention = Attention()
        self._eye = ThreadPoolExecutor(1, thread_name_prefix="eye")
        self._failing = False
        self._pointed: Gaze | None = None
        self.followed = Followed()

    @property
    def scene(self) -> SceneCamera:
        """The picture that gaze is told on."""
        return self._tracker.scene if self._tracker is not None else SceneCamera()

    def close(self) -> None:
        """Ends the worker."""
        self._eye.shutdown(wait=False)

    def rested(self, from_s: float, to_s: float) -> Gaze | None:
        """Where the gaze rested longest between two session seconds; None where it is not known. Where the
        wearer pointed holds for ``POINTED_S``."""
        pointed = self._pointed
        if pointed is not None and to_s - POINTED_S <= pointed.at_s <= to_s:
            return pointed
        return self._attention.rested(from_s, to_s)

    def point(self, x: float, y: float) -> None:
        """The wearer shows where they look, as shares (0..1) of the scene picture's width and height."""
        scene = self.scene
        self._pointed = Gaze(self._clock.now(), x * scene.width, y * scene.height, 1.0, POINTED_DEG)
        self._fixated(self._pointed.at_s)

    async def follow(self, camera: AsyncIterator[EyeFrame]) -> None:
        """Follows the eye to the camera's end. A frame that cannot be used is told of and passed over; one of
        another camera than was calibrated with ends it."""
        if self._tracker is None:
            return
        async for frame in camera:
            if self._clock.now() - frame.at_s > LATE_S:
                self.followed.skipped += 1
                continue
            try:
                sample = await self._step(self._tracker, frame)
            except CalibrationError as e:
                log.warning("gaze is not followed: %s", e)
                return
            except Exception as e:
                self.followed.skipped += 1
                if not self._failing:  # one line for a camera that gives rubbish, not thirty a second
                    tell_failure(f"the eye frame at {frame.at_s:.2f} s", e)
                self._failing = True
                continue
            self._failing = False
            self._take(sample)

    async def _step(self, tracker: GazeTracker, frame: EyeFrame) -> EyeSample:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._eye, tracker.step, frame.image, frame.at_s)

    def _take(self, sample: EyeSample) -> None:
        count = self.followed
        count.frames += 1
        count.pupils += sample.gaze is not None
        count.fixations += sum(isinstance(event, Fixation) for event in sample.events)
        count.blinks += sum(isinstance(event, Blink) for event in sample.events)
        if self._attention.add(sample):
            self._fixated(sample.at_s)
