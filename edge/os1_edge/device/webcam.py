"""A camera that may vanish and come back: V4L2 by its stable path, a network stream, or a film.

One thread grabs; a grabbed picture is decoded only when one is due, and always the newest (a driver's queue
gives the past: esp32-camera#363). Nothing waits: a picture that nobody took is replaced by the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Protocol

from os1_edge.clock import Clock
from os1_edge.device.microphone import Retry
from os1_edge.events import Image, SceneFrame

log = logging.getLogger(__name__)

BY_ID = Path("/dev/v4l/by-id")
"""Stable names of the cameras on Linux; /dev/video0 may be another one after a reboot."""

WARM_S = 0.4
"""A camera's first pictures are dark until its exposure has settled (MentraOS#1750)."""

MISSES = 10
"""Grabs that fail one after the other before the camera counts as gone."""

FILM_FPS = 30.0
"""Of a film that does not say it."""


RETRY = Retry()


class Capture(Protocol):
    """What this needs of ``cv2.VideoCapture``."""

    def grab(self) -> bool: ...
    def retrieve(self) -> tuple[bool, Any]: ...
    def isOpened(self) -> bool: ...
    def release(self) -> None: ...


def cameras() -> list[Path]:
    """The stable paths of the cameras here; of several of one device the first carries pictures."""
    return sorted(BY_ID.glob("*-video-index0")) if BY_ID.is_dir() else []


def open_camera(source: str, width: int, height: int) -> Capture:
    """Opens ``source``: "auto" (the first camera there is), a device's path, a number, a film's path, or a
    stream's address.

    Raises:
        OSError: it cannot be opened.
    """
    import cv2

    if source == "auto":
        found = cameras()
        if not found and not Path("/dev/video0").exists():
            raise OSError("there is no camera")
        source = str(found[0]) if found else "/dev/video0"
    device = source.startswith("/dev/") or source.isdigit()
    if device and not source.isdigit():
        # OpenCV wants the number: by name it tries to read the device as a film first.
        path = Path(source).resolve()
        if not path.exists():
            raise OSError(f"{source} is not there")
        number = path.name.removeprefix("video")
        source = number if number.isdigit() else source
    capture = cv2.VideoCapture(int(source), cv2.CAP_V4L2) if source.isdigit() else cv2.VideoCapture(source)
    if not capture.isOpened():
        capture.release()
        raise OSError(f"{source} cannot be opened as a camera")
    if device:
        capture.set(cv2.CAP_PROP_FRAME_WIDTH, width)
        capture.set(cv2.CAP_PROP_FRAME_HEIGHT, height)
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
    return capture


class Camera:
    """The newest picture of one camera, again and again."""

    def __init__(
        self,
        name: str,
        open_capture: Callable[[], Capture],
        clock: Clock,
        every_s: float,
        retry: Retry = RETRY,
        paced: float | None = None,
        rewinds: bool = False,
    ) -> None:
        """Args:
        name: what the frames are called.
        open_capture: opens the camera; raises OSError when there is none. Called in the camera's thread.
        clock: the session's.
        every_s: seconds between pictures.
        paced: pictures a second of a film, which would else be over at once; none: the device paces.
        rewinds: it is a film: at its end it begins anew, and nothing is amiss.
        """
        self._name, self._open, self._clock = name, open_capture, clock
        self._every_s, self._retry, self._paced = every_s, retry, paced
        self._rewinds = rewinds
        self._stop = threading.Event()

    async def frames(self) -> AsyncGenerator[SceneFrame, None]:
        """Pictures with the session's seconds at which they were exposed, for ever; closing it lets the
        camera go."""
        loop = asyncio.get_running_loop()
        newest: asyncio.Queue[tuple[float, Image]] = asyncio.Queue(1)

        def give(taken: tuple[float, Image]) -> None:
            if newest.full():
                newest.get_nowait()
            newest.put_nowait(taken)

        def taken(image: Image, at: float) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody looks any more
                loop.call_soon_threadsafe(give, (at, image))

        stop = self._stop = threading.Event()
        # The session's second of a monotonic second, for the thread.
        origin = loop.time() - self._clock.now()
        thread = threading.Thread(target=self._run, args=(taken, stop), name=self._name, daemon=True)
        thread.start()
        try:
            while True:
                at, image = await newest.get()
                yield SceneFrame(at - origin, self._name, image)
        finally:
            stop.set()

    def _run(self, taken: Callable[[Image, float], None], stop: threading.Event) -> None:
        failures = 0
        while not stop.is_set():
            try:
                capture = self._open()
            except OSError as e:
                if not failures:
                    log.warning("the %s camera is gone (%s); looking for one", self._name, e)
                failures += 1
            else:
                try:
                    gave = self._grab(capture, taken, stop, back=failures > 0)
                finally:
                    capture.release()
                if gave:
                    failures = 0
                    if self._rewinds:
                        continue  # the film is over: from the beginning
                if not stop.is_set():
                    if not failures:
                        log.warning("the %s camera is gone; looking for one", self._name)
                    failures += 1
            stop.wait(self._retry.wait_s(failures))

    def _grab(
        self, capture: Capture, taken: Callable[[Image, float], None], stop: threading.Event, *, back: bool
    ) -> bool:
        """Grabs until the camera is gone; whether it gave any picture."""
        misses, gave = 0, False
        due = time.monotonic() + (0.0 if self._paced else WARM_S)
        while not stop.is_set() and misses < MISSES:
            if not capture.grab():
                misses += 1
                stop.wait(0.02)
                continue
            misses, at = 0, time.monotonic()
            if at >= due:
                ok, image = capture.retrieve()
                if ok and image is not None:
                    if not gave and back:
                        log.info("the %s camera is back", self._name)
                    gave = True
                    taken(image, at)
                due = max(due + self._every_s, at)
            if self._paced:
                stop.wait(1.0 / self._paced)
        return gave
