"""The devices that a live companion has, chosen from the settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.device.microphone import reopened
from os1_edge.device.pipes import PipeMicrophone, PipeSpeaker
from os1_edge.device.power import Power, read_power
from os1_edge.device.programs import player, recorder
from os1_edge.device.termux import TermuxCamera, battery, is_termux
from os1_edge.device.webcam import FILM_FPS, Camera, open_camera
from os1_edge.events import RATE, AudioFrame, EyeFrame, SceneFrame
from os1_edge.see.image import load_image
from os1_edge.speak.sink import Sink

LOOKS = 5
"""Glimpses for each frame that is due: a scene that changes is noticed between two."""

EYE_FPS = 30.0
"""Enough to tell a fixation from a saccade."""

TERMUX = "termux:"


class Closing(Sink, Protocol):
    """A sink that holds a device."""

    def close(self) -> None:
        """Lets the device go."""
        ...


@dataclass(frozen=True, slots=True)
class Devices:
    """What ``live.run`` runs on; made inside its loop."""

    microphone: Callable[[Clock], AsyncIterator[AudioFrame]]
    camera: Callable[[Clock], AsyncGenerator[SceneFrame, None]]
    speaker: Callable[[Clock], Closing]
    power: Callable[[], Awaitable[Power]]
    eye: Callable[[Clock], AsyncGenerator[EyeFrame, None]] | None = None
    in_a_room: bool = True
    """The microphone hears the speaker."""


def own_devices(config: Config) -> Devices:
    """This machine's devices.

    Raises:
        NoSound: no program here carries sound.
    """
    device = config.device
    ears = recorder(device.microphone)
    player(RATE, device.speaker)  # says now what would be said at the first reply

    def microphone(clock: Clock) -> AsyncIterator[AudioFrame]:
        return reopened(lambda: PipeMicrophone.open(ears), clock)

    def speaker(clock: Clock) -> Closing:
        loop = asyncio.get_running_loop()
        origin = loop.time() - clock.now()
        return PipeSpeaker(lambda rate: player(rate, device.speaker), lambda: loop.time() - origin)

    def camera(clock: Clock) -> AsyncGenerator[SceneFrame, None]:
        every_s = min(config.see.in_dialogue_s, config.see.every_s) / LOOKS
        return scene_frames(device.scene_camera, clock, every_s)

    def eye(clock: Clock) -> AsyncGenerator[EyeFrame, None]:
        return eye_frames(device.eye_camera, clock)

    return Devices(microphone, camera, speaker, own_power, eye if device.eye_camera != "none" else None)


def scene_frames(source: str, clock: Clock, every_s: float) -> AsyncGenerator[SceneFrame, None]:
    """Pictures of the scene camera that the settings name, each ``every_s`` seconds."""
    if source == "none":
        return no_camera()
    if source.startswith(TERMUX):
        number = source.removeprefix(TERMUX)
        return TermuxCamera(int(number) if number.isdigit() else 0, load_image, clock, every_s).frames()
    film = FILM_FPS if is_film(source) else None
    camera = Camera(
        "scene", lambda: open_camera(source, 640, 480), clock, every_s, paced=film, rewinds=film is not None
    )
    return camera.frames()


async def eye_frames(source: str, clock: Clock) -> AsyncGenerator[EyeFrame, None]:
    """Pictures of the near-eye camera, ``EYE_FPS`` a second."""
    film = FILM_FPS if is_film(source) else None
    camera = Camera(
        "eye",
        lambda: open_camera(source, 320, 240),
        clock,
        1.0 / EYE_FPS,
        paced=film,
        rewinds=film is not None,
    )
    async with aclosing(camera.frames()) as frames:
        async for frame in frames:
            yield EyeFrame(frame.at_s, frame.source, frame.image)


def is_film(source: str) -> bool:
    """Whether the source is no device, which paces itself."""
    return not (source == "auto" or source.isdigit() or source.startswith("/dev/"))


async def own_power() -> Power:
    """This device's battery and heat."""
    return await battery() if is_termux() else await asyncio.to_thread(read_power)


async def no_camera() -> AsyncGenerator[SceneFrame, None]:
    """Nothing is seen."""
    await asyncio.Event().wait()
    yield  # type: ignore[misc]  # makes this a generator
