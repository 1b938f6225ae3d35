"""The devices that a live companion has, chosen from the settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.device.microphone import reopened
from os1_edge.device.pipes import PipeMicrophone, PipeSpeaker
from os1_edge.device.power import Power, read_power
from os1_edge.device.programs import player, recorder
from os1_edge.device.webcam import FILM_FPS, Camera, open_camera
from os1_edge.events import RATE, AudioFrame, SceneFrame
from os1_edge.speak.sink import Sink


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
    power: Callable[[], Power] = read_power
    in_a_room: bool = True
    """The microphone hears the speaker."""


def own_devices(config: Config) -> Devices:
    """This machine's devices.

    Raises:
        NoSound: no program here carries sound.
        OSError: a source named in the settings is not there.
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
        source = device.scene_camera
        if source == "none":
            return no_camera()
        film = not (source == "auto" or source.isdigit() or source.startswith("/dev/"))
        see = config.see
        return Camera(
            "scene",
            lambda: open_camera(source, 640, 480),
            clock,
            min(see.in_dialogue_s, see.every_s) / 5,
            paced=FILM_FPS if film else None,
        ).frames()

    return Devices(microphone, camera, speaker)


async def no_camera() -> AsyncGenerator[SceneFrame, None]:
    """Nothing is seen."""
    await asyncio.Event().wait()
    yield  # type: ignore[misc]  # makes this a generator
