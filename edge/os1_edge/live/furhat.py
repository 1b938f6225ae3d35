"""``os1 run --furhat``: the companion with a Furhat robot as its body."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from os1_edge.config import Config
from os1_edge.device.furhat import Furhat
from os1_edge.faculties import Loading
from os1_edge.live.devices import Devices, no_camera, own_power
from os1_edge.live.record import Watched
from os1_edge.live.run import live
from os1_edge.see.image import decode_image

KEY = "OS1_FURHAT_KEY"
"""Environment variable with the key of the robot's Realtime API."""


async def run_on_furhat(
    config: Config,
    memory_file: Path,
    key: bytes,
    host: str,
    watched: Watched,
    tell: Callable[[str], None],
    models: Loading | None = None,
) -> None:
    """Lives until it is cancelled. ``models``: see ``companion``.

    Raises:
        NoFurhat: no robot answers at ``host``, or its client is not installed.
    """
    async with Furhat(host, decode_image, key=os.environ.get(KEY)).connected() as robot:
        sees = config.device.scene_camera != "none"
        devices = Devices(
            robot.microphone,
            robot.camera if sees else lambda clock: no_camera(),
            lambda clock: robot.speaker,
            own_power,
            in_a_room=Furhat.in_a_room,
        )
        leave = watched.watch(robot.told)
        try:
            await live(config, memory_file, key, devices, watched, tell, models)
        finally:
            leave()
