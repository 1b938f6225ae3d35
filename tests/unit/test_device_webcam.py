"""A camera that comes and goes; and a real film through OpenCV."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from os1_edge.clock import Clock
from os1_edge.device.microphone import Retry
from os1_edge.device.webcam import Camera, open_camera
from os1_edge.events import SceneFrame

QUICK = Retry(first_s=0.01, most_s=0.02)


class Fake:
    """Gives ``pictures`` frames, then none."""

    def __init__(self, shade: int, pictures: int) -> None:
        self.shade, self.left, self.released = shade, pictures, False

    def grab(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def retrieve(self) -> tuple[bool, Any]:
        return True, np.full((4, 4, 3), self.shade, np.uint8)

    def isOpened(self) -> bool:
        return True

    def release(self) -> None:
        self.released = True


async def made(opened: list[Fake | OSError], every_s: float = 0.0) -> Camera:
    def open_capture() -> Any:
        found = opened.pop(0) if opened else OSError("none")
        if isinstance(found, OSError):
            raise found
        return found

    return Camera("scene", open_capture, Clock(), every_s, QUICK, paced=500)


def test_a_camera_that_is_pulled_out_comes_back_as_another(caplog: pytest.LogCaptureFixture) -> None:
    first, second = Fake(10, 5), Fake(200, 10_000)

    async def go() -> list[int]:
        camera = await made([first, OSError("unplugged"), OSError("unplugged"), second])
        shades: list[int] = []
        async with aclosing(camera.frames()) as frames, asyncio.timeout(20):
            async for frame in frames:
                shades.append(int(frame.image[0, 0, 0]))
                if shades[-1] == 200:
                    return shades
        raise AssertionError

    caplog.set_level("INFO", "os1_edge")
    assert asyncio.run(go())[0] == 10
    assert first.released
    assert sum("is gone" in r.message for r in caplog.records) == 1
    assert sum("is back" in r.message for r in caplog.records) == 1


def test_the_newest_picture_is_given_not_the_oldest() -> None:
    async def go() -> list[float]:
        camera = await made([Fake(1, 100_000)])
        out = []
        async with aclosing(camera.frames()) as frames, asyncio.timeout(20):
            await anext(frames)
            await asyncio.sleep(0.3)
            now = asyncio.get_running_loop().time()
            frame = await anext(frames)
            out.append(now - camera._clock._origin - frame.at_s)
        return out

    assert asyncio.run(go())[0] < 0.2


def test_leaving_the_camera_releases_it() -> None:
    fake = Fake(1, 100_000)

    async def go() -> None:
        camera = await made([fake])
        async with aclosing(camera.frames()) as frames:
            await anext(frames)
        for _ in range(200):
            if fake.released:
                return
            await asyncio.sleep(0.01)

    asyncio.run(go())
    assert fake.released


def test_a_film_is_a_camera(tmp_path: Path) -> None:
    film = tmp_path / "film.avi"
    writer = cv2.VideoWriter(str(film), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for n in range(5):
        writer.write(np.full((48, 64, 3), 40 * n, np.uint8))
    writer.release()

    async def go() -> SceneFrame:
        camera = Camera(
            "film", lambda: open_camera(str(film), 640, 480), Clock(), 0.0, QUICK, paced=100, rewinds=True
        )
        async with aclosing(camera.frames()) as frames, asyncio.timeout(20):
            return await anext(frames)

    frame = asyncio.run(go())
    assert frame.image.shape == (48, 64, 3)


@pytest.mark.parametrize("source", ["/dev/v4l/by-id/nothing-such", "nothing.mp4"])
def test_a_camera_that_is_not_there_is_told(source: str) -> None:
    with pytest.raises(OSError, match=r"is not there|cannot be opened"):
        open_camera(source, 640, 480)
