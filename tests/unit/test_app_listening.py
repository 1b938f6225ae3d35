"""Between the microphone and the detector."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from os1_edge.app.listening import FRAMES_WAITING, Listening
from os1_edge.events import CHUNK, AudioFrame
from os1_edge.hear.capture import Capture
from os1_edge.hear.turn import TurnDetector


class Deaf:
    """Nothing is speech; counts what it was given."""

    def __init__(self) -> None:
        self.given = 0

    def reset(self) -> None: ...

    def probability(self, chunk: Any) -> float:
        self.given += 1
        return 0.0


class Nobody:
    """Is told nothing that matters here."""

    answering = False

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def frame(number: int) -> AudioFrame:
    return AudioFrame(number * CHUNK, np.zeros(CHUNK, np.float32))


def made() -> tuple[Listening, Deaf]:
    vad = Deaf()
    holder: list[Listening] = []
    capture = Capture(changed=lambda change: holder[0].gate_changed(change))
    holder.append(Listening(capture, vad, TurnDetector(), None, Nobody()))  # type: ignore[arg-type]
    return holder[0], vad


def test_muting_drops_the_frames_that_wait_for_the_detector_but_not_the_microphones_end() -> None:
    async def go() -> None:
        listening, vad = made()

        async def burst():  # type: ignore[no-untyped-def]
            for number in range(10):
                yield frame(number)

        task = asyncio.create_task(listening.run(burst()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert listening._frames.qsize() > 5
        seen = vad.given
        listening.capture.mute()
        listening.capture.unmute()  # at once: what was said before must not be heard after
        await asyncio.wait_for(task, 5)
        assert vad.given == seen
        listening.close()

    asyncio.run(go())


def test_a_microphone_ahead_of_the_detector_loses_its_oldest_frames_and_no_memory() -> None:
    async def go() -> None:
        listening, vad = made()

        async def burst():  # type: ignore[no-untyped-def]
            for number in range(10 * FRAMES_WAITING):
                yield frame(number)

        await asyncio.wait_for(listening.run(burst()), 5)
        assert vad.given <= FRAMES_WAITING + 1
        listening.close()

    asyncio.run(go())
