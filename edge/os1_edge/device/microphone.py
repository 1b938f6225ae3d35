"""A microphone that may vanish and come back, perhaps as another device with another rate.

PortAudio freezes its list of devices when it starts (python-sounddevice#125, #382), and services die with the
microphone (ovos-dinkum-listener#21): so a device is opened anew, again and again, until there is one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import soxr

from os1_edge.clock import Clock
from os1_edge.events import CHUNK, RATE, AudioFrame, Samples

log = logging.getLogger(__name__)

SILENT_S = 2.0
"""A device that gives nothing for so long is gone; a live one gives a block every few hundredths of it."""


class Device(Protocol):
    """One opened microphone."""

    rate: int
    """Samples a second."""

    def blocks(self) -> AsyncGenerator[Samples, None]:
        """Mono float32 blocks of any length as they come; ends, or raises, when the device is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Retry:
    """How often to look for a device that is gone."""

    first_s: float = 0.25
    most_s: float = 4.0

    def wait_s(self, failures: int) -> float:
        """Seconds to wait after the ``failures``-th failure in a row, counted from 1."""
        return min(self.first_s * 2.0 ** min(failures - 1, 10), self.most_s)


async def reopened(
    open_device: Callable[[], Awaitable[Device]],
    clock: Clock,
    retry: Retry = Retry(),  # frozen
) -> AsyncIterator[AudioFrame]:
    """Frames of whatever device there is, for ever. Time goes on while there is none: the first frame of a
    device that came back starts at the session's time, so what lies between is a gap, not silence.

    ``open_device`` raises ``OSError`` when there is none. Nothing is queued: a frame that nobody takes waits
    in the device.
    """
    failures, end = 0, 0
    while True:
        try:
            device = await open_device()
        except OSError as e:
            failures = _told(failures, e)
        else:
            start = max(end, round(clock.now() * RATE))
            try:
                async with aclosing(_frames(device, start)) as frames:
                    async for frame in frames:
                        if failures:
                            log.info("the microphone is back at %d Hz", device.rate)
                        failures, end = 0, frame.start + CHUNK
                        yield frame
                failures = _told(failures, OSError("it ended"))
            except OSError as e:  # TimeoutError is one
                failures = _told(failures, e)
        await asyncio.sleep(retry.wait_s(failures))


def _told(failures: int, error: OSError) -> int:
    """One line an outage."""
    if not failures:
        log.warning("the microphone is gone (%s); looking for one", error or type(error).__name__)
    return failures + 1


async def _frames(device: Device, start: int) -> AsyncGenerator[AudioFrame, None]:
    """The device's sound at 16 kHz, in whole frames."""
    resampler = soxr.ResampleStream(device.rate, RATE, 1, dtype="float32")
    rest = np.zeros(0, np.float32)
    async with aclosing(device.blocks()) as blocks:
        while True:
            try:
                block = await asyncio.wait_for(anext(blocks), SILENT_S)
            except StopAsyncIteration:
                return
            clean = np.clip(np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
            rest = np.concatenate([rest, np.asarray(resampler.resample_chunk(clean), np.float32)])
            while len(rest) >= CHUNK:
                yield AudioFrame(start, rest[:CHUNK])
                start, rest = start + CHUNK, rest[CHUNK:]
