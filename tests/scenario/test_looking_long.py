"""The whole looking path alone: bad pictures through the session's camera, and ten thousand good ones."""

from __future__ import annotations

import asyncio
import resource
import struct
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import cv2
import numpy as np
import pytest
from companion import picture

from os1_edge import clock
from os1_edge.app.gazing import Gazing
from os1_edge.app.looking import FRAMES_AHEAD, Looking, Pictures
from os1_edge.app.scenery import Scenery
from os1_edge.config import See
from os1_edge.device.replay import camera
from os1_edge.device.session import load_session
from os1_edge.events import Image, SceneFrame, SeenFrame
from os1_edge.see.camera import FrameTaker
from os1_edge.see.image import iter_video, load_image
from os1_edge.see.indicator import Indicator
from os1_edge.see.light import ScreenLight
from os1_edge.see.objects import DetectedObject
from os1_edge.see.scene import SceneDescriber


class Detector:
    def detect(self, image: Image) -> tuple[DetectedObject, ...]:
        return (DetectedObject("mug", 0.9, (20, 60, 80, 100)),)


class Told:
    def __init__(self) -> None:
        self.frames: list[SeenFrame] = []

    def frame_described(self, frame: SeenFrame, _: Any) -> None:
        self.frames = [*self.frames[-50:], frame]


async def look_through(
    pictures: Pictures, told: Told, ticking: clock.Clock, acts: dict[float, str] | None = None
) -> Scenery:
    """Looks through the camera to its end; at some seconds something is asked of it."""

    async def seen(*_: Any) -> None: ...

    scenery = Scenery()
    gazing = Gazing(None, ticking, lambda _: None)
    taker = FrameTaker(See(), Indicator(ScreenLight()))
    eyes = SceneDescriber(Detector())
    looking = Looking(See(), taker, eyes, gazing, ticking, told, seen, scenery=scenery)  # type: ignore[arg-type]

    async def act() -> None:
        for at_s, name in (acts or {}).items():
            await ticking.sleep_until(at_s)
            getattr(looking, name)()
        looking.no_more()

    await asyncio.gather(looking.take(pictures), looking.note(), act())
    looking.close()
    gazing.close()
    return scenery


def png(width: int, height: int) -> bytes:
    """A small file that claims to be a picture of that size."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))


def test_bad_pictures_cost_one_line_each_and_the_good_ones_are_seen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = picture(0, "A table.")
    jpeg = cv2.imencode(".jpg", good)[1].tobytes()
    sixteen = cv2.imencode(".png", picture(1, "A hall.").astype(np.uint16) * 257)[1].tobytes()
    huge = cv2.imencode(".jpg", cv2.resize(picture(2, "A lake."), (8000, 6000)))[1].tobytes()
    files = {
        "1-good.jpg": jpeg,
        "2-empty.jpg": b"",
        "3-cut.jpg": jpeg[: len(jpeg) // 2],
        "4-text.png": b"hello",
        "5-bomb.png": png(20_000, 20_000),
        "6-gif.gif": b"GIF89a" + bytes(40),
        "7-16-bit.png": sixteen,
        "8-48-megapixels.jpg": huge,
        "9-good.jpg": cv2.imencode(".jpg", picture(3, "A wall."))[1].tobytes(),
    }
    toml = "schema = 1\nstart = 2026-03-02T08:00:00\n"
    for i, (name, data) in enumerate(files.items()):
        (tmp_path / name).write_bytes(data)
        toml += f'[[frame]]\nfile = "{name}"\nat_s = {10.0 * i}\n'
    (tmp_path / "session.toml").write_text(toml)
    told = Told()

    async def live() -> None:
        ticking = clock.Clock()
        pictures = camera(load_session(tmp_path), ticking, load_image, iter_video)
        await look_through(pictures, told, ticking)

    clock.run(live(), virtual=True)
    seen = [frame.source for frame in told.frames]
    assert seen == ["1-good.jpg", "7-16-bit.png", "8-48-megapixels.jpg", "9-good.jpg"]
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 5
    assert all(name in line for name, line in zip(list(files)[1:6], lines, strict=True))


def test_a_camera_is_closed_while_it_looks_away_and_opened_anew(tmp_path: Path) -> None:
    told, on = Told(), []

    async def device(ticking: clock.Clock) -> AsyncGenerator[SceneFrame, None]:
        on.append((ticking.now(), True))
        try:
            while ticking.now() < 30:
                yield SceneFrame(ticking.now(), "camera", picture(0, f"Room {ticking.now():.0f}."))
                await asyncio.sleep(1.0)
        finally:
            on.append((ticking.now(), False))

    async def live() -> None:
        ticking = clock.Clock()
        acts = {10.5: "look_away", 20.5: "look_back", 32.0: "no_more"}
        await look_through(lambda: device(ticking), told, ticking, acts)

    clock.run(live(), virtual=True)
    assert on == [(0, True), (11, False), (20.5, True), (pytest.approx(30.5), False)]
    assert not [frame for frame in told.frames if 10.5 < frame.at_s < 20.5]
    assert any(frame.at_s >= 20.5 for frame in told.frames)


def test_memory_is_flat_over_ten_thousand_frames(tmp_path: Path) -> None:
    rooms = [picture(i, f"Room {i}.") for i in range(40)]
    told, alive, most, resident = Told(), WeakSet[Any](), [], []

    async def pictures(ticking: clock.Clock) -> AsyncIterator[SceneFrame]:
        for i in range(10_000):
            await ticking.sleep_until(i * 0.5)
            image = rooms[i // 40 % 40].view(Watched).copy()
            alive.add(image)
            most.append(len(alive))
            if i % 1000 == 500:
                resident.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            yield SceneFrame(i * 0.5, f"{i}", image)

    async def live() -> Scenery:
        ticking = clock.Clock()
        return await look_through(pictures(ticking), told, ticking)

    scenery = clock.run(live(), virtual=True)
    assert len(told.frames) > 40
    assert max(most) <= FRAMES_AHEAD + 3, "those that are described, the newest, and the one in hand"
    assert resident[-1] - resident[1] < 8_000, "kB"
    assert len(scenery.window.frames) <= 4
    assert len(scenery.window.items) <= 200


class Watched(np.ndarray):
    """A picture that can be asked whether it is still there: compared by what it is, not by its pixels."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return self is other
