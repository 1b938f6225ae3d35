"""A phone's camera and battery through Termux's own commands (the Termux:API add-on). Its microphone and
speaker come through Termux's PulseAudio, as on any Linux (``device/programs.py``); ``docs/android.md`` tells
how."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from os1_edge.clock import Clock
from os1_edge.device.microphone import Retry
from os1_edge.device.power import Power
from os1_edge.device.processes import end
from os1_edge.events import Image, SceneFrame

log = logging.getLogger(__name__)

PHOTO = "termux-camera-photo"
BATTERY = "termux-battery-status"

PHOTO_S = 10.0
"""A photo takes one to three seconds; without the add-on the command hangs for ever."""

SHARED = Path("/data/data/com.termux/files/usr/tmp")
"""Where photos go. Termux:API, an app of Android's, knows it by the same path as Debian inside Termux
(``docs/android.md`` binds it); Debian's own ``/tmp`` it does not see."""

BATTERY_S = 5.0

ANSWER = 64 * 1024
"""Bytes of an answer; a battery's has 300."""


RETRY = Retry(first_s=2.0, most_s=30.0)


def is_termux() -> bool:
    """Whether this phone can be asked for its battery."""
    return shutil.which(BATTERY) is not None


async def battery() -> Power:
    """The phone's battery; nothing known where the command fails."""
    try:
        found = json.loads(await _asked(BATTERY_S, BATTERY))
        percent, celsius = float(found["percentage"]), float(found["temperature"])
        charging = found.get("plugged") != "UNPLUGGED" or found.get("status") in ("CHARGING", "FULL")
    except (OSError, ValueError, KeyError, TypeError, TimeoutError, RecursionError) as e:
        log.debug("%s gave nothing: %s", BATTERY, type(e).__name__)
        return Power()
    return Power(percent if 0 <= percent <= 100 else None, charging, celsius)


class TermuxCamera:
    """Photos of one of the phone's cameras, again and again."""

    def __init__(
        self,
        camera: int,
        load: Callable[[Path], Image],
        clock: Clock,
        every_s: float,
        retry: Retry = RETRY,
    ) -> None:
        """Args:
        camera: its number; 0 is the back's.
        load: reads a photo.
        clock: the session's.
        every_s: seconds between photos.
        retry: how long to wait after one that failed.
        """
        self._camera, self._load, self._clock = camera, load, clock
        self._every_s, self._retry = every_s, retry

    async def frames(self) -> AsyncGenerator[SceneFrame, None]:
        """Photos with the session's seconds at which they were asked for, for ever. Each is deleted as soon
        as it was read."""
        failures = 0
        with tempfile.TemporaryDirectory(prefix="os1-", dir=_shared()) as folder:
            photo = Path(folder) / "photo.jpg"
            while True:
                at_s = self._clock.now()
                try:
                    await _asked(PHOTO_S, PHOTO, "-c", str(self._camera), str(photo))
                    image = await asyncio.to_thread(self._read, photo)
                except Exception as e:
                    if not failures:
                        why = str(e) if isinstance(e, OSError) else type(e).__name__
                        log.warning("the phone's camera gives no photo (%s); trying again", why)
                    failures += 1
                    await asyncio.sleep(self._retry.wait_s(failures))
                    continue
                if failures:
                    log.info("the phone's camera is back")
                failures = 0
                yield SceneFrame(at_s, "phone", image)
                del image
                await self._clock.sleep_until(at_s + self._every_s)

    def _read(self, photo: Path) -> Image:
        try:
            if not photo.exists() or photo.stat().st_size == 0:
                raise OSError("it wrote nothing; may Termux:API use the camera?")
            return self._load(photo)
        finally:
            photo.unlink(missing_ok=True)


def _shared() -> Path | None:
    return SHARED if SHARED.is_dir() else None


async def _asked(within_s: float, *command: str) -> str:
    """What a command prints.

    Raises:
        OSError: it is not here, or says that it failed.
        TimeoutError: it did not end.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), within_s)
    except BaseException:
        await end(process)
        raise
    if process.returncode != 0:
        lines = err.decode("utf-8", "replace").strip().splitlines()
        raise OSError(lines[-1][:200] if lines else f"{command[0]} ended with {process.returncode}")
    said = out[:ANSWER].decode("utf-8", "replace").strip()
    if said.startswith("ERROR"):  # the app's own failures come so, with an exit status of 0
        raise OSError(said.splitlines()[0][:200])
    return said
