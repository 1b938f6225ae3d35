"""Each live device tried for a moment: a level meter for the microphone, a tone for the speaker, a test frame
of each camera, battery and heat. Nothing of it is kept."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import numpy as np

from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.device.pipes import PipeMicrophone, PipeSpeaker
from os1_edge.device.power import pace
from os1_edge.device.programs import NoSound, player, recorder
from os1_edge.doctor import Check
from os1_edge.events import RATE, EyeFrame, Samples, SceneFrame
from os1_edge.live.devices import eye_frames, own_power, scene_frames
from os1_edge.see.gaze.track import GazeTracker
from os1_edge.see.quality import judge_picture

LISTEN_S = 3.0
FRAME_S = 8.0
"""A camera that has given no picture by then gives none; its exposure settles in half a second."""

TONE_S = 0.4

SILENT_DB = -70.0
"""Below this a microphone is muted in the system, or none: a quiet room has -60 dB and more."""

CLIPPED = 0.98

Tell = Callable[[str], None]


async def examine_live(config: Config, tell: Tell) -> list[Check]:
    """All checks; ``tell`` is given what happens meanwhile, such as the level."""
    checks = [await _microphone(config, tell), await _speaker(config, tell)]
    clock = Clock()
    device = config.device
    if device.scene_camera != "none":
        frames = scene_frames(device.scene_camera, clock, 0.2)
        checks.append(await _camera("scene camera", frames, _told_scene))
    if device.eye_camera != "none":
        tracker = GazeTracker(config.see.gaze, None)
        checks.append(await _camera("eye camera", eye_frames(device.eye_camera, clock), _told_eye(tracker)))
    return [*checks, await _power()]


async def _microphone(config: Config, tell: Tell) -> Check:
    fix = "see what it is called with `pactl list short sources` or `arecord -L`; then [device] microphone"
    levels: list[float] = []
    peak = 0.0
    try:
        microphone = await PipeMicrophone.open(recorder(config.device.microphone))
        tell("say something for three seconds")
        async with aclosing(microphone.blocks()) as blocks, asyncio.timeout(LISTEN_S + 5):
            heard = 0
            async for block in blocks:
                heard += len(block)
                levels.append(level_db(block))
                peak = max(peak, float(np.abs(block).max(initial=0.0)))
                tell(meter(levels[-1]))
                if heard >= LISTEN_S * microphone.rate:
                    break
    except (OSError, TimeoutError) as e:
        return Check("microphone", False, str(e) or "it gives no sound", fix)
    loudest = max(levels, default=-math.inf)
    told = f"{microphone.rate} Hz, loudest {loudest:.0f} dB"
    if loudest < SILENT_DB:
        return Check(
            "microphone", False, f"{told}: silence", "unmute it, or turn it up, in the sound settings"
        )
    if peak >= CLIPPED:
        return Check("microphone", False, f"{told}, distorted", "turn it down in the sound settings")
    return Check("microphone", True, told)


def level_db(block: Samples) -> float:
    """Loudness of ``block`` (float32 in -1..1) against full scale."""
    power = float(np.mean(np.square(block))) if len(block) else 0.0
    return 10 * math.log10(power) if power > 1e-12 else -120.0


def meter(db: float, width: int = 40) -> str:
    """A bar from -60 to 0 dB."""
    filled = round(width * min(1.0, max(0.0, (db + 60) / 60)))
    return f"[{'#' * filled}{' ' * (width - filled)}] {db:4.0f} dB"


async def _speaker(config: Config, tell: Tell) -> Check:
    fix = "see what it is called with `pactl list short sinks` or `aplay -L`; then [device] speaker"
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        sink = PipeSpeaker(lambda rate: player(rate, config.device.speaker), lambda: loop.time() - began)
        sink.begin("doctor", 0, RATE)
    except OSError as e:
        return Check("speaker", False, str(e), fix)
    try:
        tell("a tone should sound")
        size = RATE // 50
        for n in range(round(TONE_S * 50)):
            t = (np.arange(size) + n * size) / RATE
            tone = (0.2 * np.sin(2 * np.pi * 660 * t)).astype(np.float32)
            sink.write(tone, loop.time() - began + 0.1)
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        sink.write(np.zeros(size, np.float32), loop.time() - began + 0.1)
    except NoSound as e:
        return Check("speaker", False, str(e), fix)
    finally:
        await asyncio.to_thread(sink.close)
    return Check("speaker", True, "a tone was played")


async def _camera(
    name: str,
    frames: AsyncGenerator[SceneFrame, None] | AsyncGenerator[EyeFrame, None],
    told: Callable[[SceneFrame | EyeFrame], tuple[bool, str]],
) -> Check:
    fix = 'connect it, or name it in [device]; `ls /dev/v4l/by-id` shows those there are; "none" does without'
    found = "it gives no picture"
    try:
        async with asyncio.timeout(FRAME_S), aclosing(frames):
            async for frame in frames:
                good, found = told(frame)
                if good:
                    return Check(name, True, found)
    except TimeoutError:
        pass
    return Check(name, False, found, fix)


def _told_scene(frame: SceneFrame | EyeFrame) -> tuple[bool, str]:
    height, width = frame.image.shape[:2]
    quality = judge_picture(frame.image)
    return quality.usable, f"{width}x{height}, {quality.reason or 'sharp and bright enough'}"


def _told_eye(tracker: GazeTracker) -> Callable[[SceneFrame | EyeFrame], tuple[bool, str]]:
    def told(frame: SceneFrame | EyeFrame) -> tuple[bool, str]:
        height, width = frame.image.shape[:2]
        sample = tracker.step(frame.image, frame.at_s)
        found = "a pupil" if sample.gaze is not None else "no pupil; turn it to the eye"
        return sample.gaze is not None, f"{width}x{height}, {found}"

    return told


async def _power() -> Check:
    power = await own_power()
    known = []
    if power.battery_percent is not None:
        known.append(f"battery {power.battery_percent:.0f} %{', charging' if power.charging else ''}")
    if power.hottest_c is not None:
        known.append(f"{power.hottest_c:.0f} °C")
    found = pace(power)
    return Check("power", True, f"{', '.join(known) or 'tells nothing'}; step {found.step.name!r}")
