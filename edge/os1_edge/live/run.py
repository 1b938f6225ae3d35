"""Runs the companion on live devices until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from os1_edge.app import Os1, front_end
from os1_edge.clock import Clock, WallCalendar
from os1_edge.config import Config
from os1_edge.device.metered import metered
from os1_edge.device.power import STEPS, Pace, Power, pace
from os1_edge.events import turn_ids
from os1_edge.faculties import Faculties, Loading
from os1_edge.live.devices import Devices
from os1_edge.live.ending import alone, since_start_s
from os1_edge.live.notify import Notifier
from os1_edge.live.record import Watched
from os1_edge.live.standing import kept_up, power_event, tell_standing
from os1_edge.native import give_back
from os1_edge.offload.journal import Journal, default_file
from os1_edge.remember.choices import Choices, load_choices
from os1_edge.see.gaze.calibration import load as load_calibration
from os1_edge.see.gaze.track import GazeTracker

log = logging.getLogger(__name__)

POWER_S = 20.0
"""How often battery and heat are read."""


@dataclass(frozen=True, slots=True)
class Live:
    """A running companion and what one may know of it."""

    os1: Os1
    clock: Clock
    faculties: Faculties
    watched: Watched
    settings: Config
    """As they are written, without the choices: what was switched off comes back as it was."""
    life: asyncio.Task[None]
    """Ends only when it fails."""
    choices: Choices

    def choose(self, choices: Choices) -> None:
        """Keeps to what the wearer chose, from now on."""
        self.os1.choose(chosen(self.settings, choices))


@asynccontextmanager
async def companion(
    config: Config,
    memory_file: Path,
    key: bytes,
    devices: Devices,
    watched: Watched,
    models: Loading | None = None,
) -> AsyncIterator[Live]:
    """A companion that lives until the block is left; then what it holds is closed, whatever happened.
    ``models``: those of ``config``, where they are being loaded already.

    Raises:
        AlreadyWorn: another companion lives on the memory.
        os1_models.ModelMissing, EngineError, BadMemory: see ``faculties.load``.
    """
    with alone(memory_file):
        faculties = await _loaded(models or Loading(config), memory_file, key)
        async with _companion(config, faculties, devices, watched) as live:
            yield live


@asynccontextmanager
async def _companion(
    config: Config, faculties: Faculties, devices: Devices, watched: Watched
) -> AsyncIterator[Live]:
    try:
        store = faculties.memory.store
        choices = await faculties.memory.run(load_choices, store) or of_settings(config)
        settings, config = config, chosen(config, choices)
        clock = Clock()
        speaker = devices.speaker(clock)
        ears = front_end(config, in_a_room=devices.in_a_room)
        calendar = WallCalendar(clock)
        os1 = Os1(
            config,
            faculties,
            clock,
            calendar,
            speaker,
            watched,
            *ears,
            turn_ids=turn_ids(),
            routes=Journal(default_file()),
            gaze=tracker(config) if devices.eye is not None else None,
        )
        life = asyncio.create_task(_life(os1, devices, clock))
        beside = (
            asyncio.create_task(_warm(os1)),
            asyncio.create_task(
                kept_up("following the battery", lambda: _power(os1, devices.power, watched))
            ),
            asyncio.create_task(kept_up("telling how it stands", lambda: tell_standing(os1, watched))),
        )
        try:
            yield Live(os1, clock, faculties, watched, settings, life, choices)
        finally:
            for task in (life, *beside):
                task.cancel()
            await asyncio.gather(life, *beside, return_exceptions=True)
            speaker.close()
    finally:
        await asyncio.to_thread(faculties.close)


async def _loaded(models: Loading, memory_file: Path, key: bytes) -> Faculties:
    """Cancelled, it still waits for the loading threads: what those have opened must be closed."""

    def wait() -> Faculties:
        with models:
            return models.faculties(memory_file, key)

    loading = asyncio.ensure_future(asyncio.to_thread(wait))
    try:
        return await asyncio.shield(loading)
    except asyncio.CancelledError:
        with suppress(Exception):
            (await loading).close()
        raise


def of_settings(config: Config) -> Choices:
    """The choices that the settings make."""
    keep, offload = config.remember, config.offload
    return Choices(
        keep_turns_days=keep.keep_turns_days,
        keep_contexts_days=keep.keep_contexts_days,
        keep_events_days=keep.keep_events_days,
        keep_summaries_days=keep.keep_summaries_days,
        share_text=offload.policy != "prefer-private",
        share_pictures=offload.pictures,
    )


def chosen(config: Config, choices: Choices) -> Config:
    """``config`` as the wearer's choices change it."""
    days = {name: getattr(choices, name) for name in Choices.model_fields if name.startswith("keep_")}
    policy = config.offload.policy if config.offload.policy != "prefer-private" else "prefer-quality"
    offload = {
        "policy": policy if choices.share_text else "prefer-private",
        "pictures": choices.share_pictures,
    }
    return config.model_copy(
        update={
            "remember": config.remember.model_copy(update=days),
            "offload": config.offload.model_copy(update=offload),
        }
    )


def tracker(config: Config) -> GazeTracker:
    """What follows the eye: with the wearer's calibration where there is one, else with an honest guess.

    Raises:
        CalibrationError: the calibration cannot be read.
    """
    file = config.device.calibration
    return GazeTracker(config.see.gaze, load_calibration(file) if file is not None else None)


async def _warm(os1: Os1) -> None:
    """Beside listening, which need not wait for it: a first turn takes longer to be said than this."""
    try:
        await os1.warm()
    except Exception as e:
        log.warning("the prompt's beginning could not be read ahead: %s", type(e).__name__)
    give_back()


async def _life(os1: Os1, devices: Devices, clock: Clock) -> None:
    async with AsyncExitStack() as open_:
        eye = None
        if devices.eye is not None:
            eye = await open_.enter_async_context(aclosing(devices.eye(clock)))
        # A camera that is not to look is closed, so that its own light goes out.
        await os1.run(devices.microphone(clock), lambda: devices.camera(clock), eye)


async def _power(os1: Os1, read: Callable[[], Awaitable[Power]], watched: Watched) -> None:
    """Follows battery, heat and what the network costs; one line when the step changes."""
    now, told = Pace(STEPS[0], ""), dict[str, Any]()
    os1.go(now.step)  # where this begins again, it may be at another
    while True:
        power = await read()
        found = pace(power, now.step)
        if found.step is not now.step:
            log.warning("going at step %r: %s", found.step.name, found.reason)
            os1.go(found.step)
        now = found
        if (event := power_event(power, found)) != told:
            watched.tell(event)
            told = event
        if os1.link is not None:
            os1.link.told_costs(await metered())
        await asyncio.sleep(POWER_S)


async def live(
    config: Config,
    memory_file: Path,
    key: bytes,
    devices: Devices,
    watched: Watched,
    tell: Callable[[str], None],
    models: Loading | None = None,
) -> None:
    """Lives until it is cancelled, and tells systemd of it. ``models``: see ``companion``."""
    async with companion(config, memory_file, key, devices, watched, models) as found, notified():
        took = since_start_s()
        tell(f"listening{f' after {took:.1f} s' if took is not None else ''}; Ctrl-C ends it")
        await found.life


@asynccontextmanager
async def notified() -> AsyncIterator[None]:
    """systemd is told that the companion is ready, that it is alive, and that it ends."""
    notifier = Notifier()
    notifier.tell("READY=1")
    alive = asyncio.create_task(notifier.alive())
    try:
        yield
    finally:
        alive.cancel()
        notifier.tell("STOPPING=1")
