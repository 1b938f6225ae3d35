"""A microphone that vanishes and comes back."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np
import pytest

from os1_edge import clock
from os1_edge.clock import Clock
from os1_edge.device.microphone import SILENT_S, Retry, reopened
from os1_edge.events import CHUNK, RATE, AudioFrame, Samples


@dataclass
class Tone:
    """A device that gives a tone of 440 Hz for a while, then ends as it is told to."""

    rate: int
    seconds: float
    end: BaseException | None = None
    hangs: bool = False

    async def blocks(self) -> AsyncGenerator[Samples, None]:
        size = self.rate // 50
        for n in range(round(self.seconds * 50)):
            await asyncio.sleep(0.02)
            t = (np.arange(size) + n * size) / self.rate
            yield (0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32)
        if self.hangs:
            await asyncio.sleep(1e6)
        if self.end is not None:
            raise self.end


def listened(devices: list[Tone | OSError], until_s: float) -> list[AudioFrame]:
    """The frames up to a session second; each opening takes the next of ``devices``."""
    left = list(devices)

    async def open_device() -> Tone:
        found = left.pop(0) if left else OSError("no such device")
        if isinstance(found, OSError):
            raise found
        return found

    async def go() -> list[AudioFrame]:
        got: list[AudioFrame] = []

        async def take() -> None:
            async with aclosing(reopened(open_device, Clock())) as frames:  # type: ignore[type-var]
                async for frame in frames:
                    got.append(frame)

        task = asyncio.create_task(take())
        await asyncio.sleep(until_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return got

    return clock.run(go(), virtual=True)


def pitch(frames: list[AudioFrame]) -> float:
    """The strongest frequency, Hz."""
    sound = np.concatenate([f.samples for f in frames])
    return float(np.abs(np.fft.rfft(sound)).argmax() * RATE / len(sound))


def test_a_device_that_comes_back_with_another_rate_is_heard_at_the_right_pitch() -> None:
    frames = listened([Tone(48_000, 2.0, OSError("unplugged")), OSError("none"), Tone(44_100, 2.0)], 6.0)
    before = [f for f in frames if f.start < 2 * RATE]
    after = [f for f in frames if f.start >= 2 * RATE]
    assert pitch(before[2:]) == pytest.approx(440, abs=2)
    assert pitch(after[2:]) == pytest.approx(440, abs=2)
    assert len(before) == pytest.approx(2 * RATE / CHUNK, abs=2)


def test_while_it_was_gone_time_went_on() -> None:
    frames = listened(
        [Tone(16_000, 1.0, OSError("unplugged")), *[OSError("none")] * 3, Tone(16_000, 1.0)], 9.0
    )
    starts = [f.start for f in frames]
    assert starts == sorted(set(starts))
    gap = max(b - a for a, b in itertools.pairwise(starts)) / RATE
    assert gap == pytest.approx(0.25 + 0.5 + 1.0 + 2.0, abs=0.1)  # one failure after the other


def test_a_device_that_falls_silent_without_an_error_is_opened_anew() -> None:
    frames = listened([Tone(16_000, 1.0, hangs=True), Tone(16_000, 1.0)], 6.0)
    gaps = [b.start - a.start - CHUNK for a, b in itertools.pairwise(frames)]
    assert max(gaps) / RATE == pytest.approx(SILENT_S + 0.25, abs=0.1)


def test_an_outage_is_one_line_in_the_log_however_long(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="os1_edge")
    listened([Tone(16_000, 1.0), *[OSError("none")] * 40, Tone(16_000, 1.0)], 180.0)
    lines = [r.getMessage() for r in caplog.records if r.name.endswith("microphone")]
    assert [line.split(" (")[0] for line in lines] == [
        "the microphone is gone",
        "the microphone is back at 16000 Hz",
        "the microphone is gone",
    ]


def test_looking_for_a_device_slows_down_to_a_bound() -> None:
    waits = [Retry().wait_s(n) for n in range(1, 2000)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.25, 4.0)


def test_samples_that_are_no_numbers_become_silence() -> None:
    class Broken(Tone):
        async def blocks(self) -> AsyncGenerator[Samples, None]:
            async for block in Tone.blocks(self):
                block[::3] = np.nan
                block[1::3] = np.inf
                yield block

    frames = listened([Broken(16_000, 1.0)], 2.0)
    assert frames
    assert all(np.isfinite(f.samples).all() and np.abs(f.samples).max() <= 1.1 for f in frames)
