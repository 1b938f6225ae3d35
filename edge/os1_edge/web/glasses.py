"""A browser as the glasses: its microphone, camera and speaker over one WebSocket.

To the companion: binary messages of one byte for the kind and then the data (sound: mono of 16 bits at the
rate that the page told; a picture: JPEG), and JSON. To the page: sound as a float64 with its session second
and then mono of 16 bits at the page's rate, and JSON events. The page on which the glasses were put on last
is the glasses; the one before is told and closed, and only a press on it takes them back, no reconnect.
"""

from __future__ import annotations

import asyncio
import json
import logging
import struct
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from aiohttp import WSMsgType, web

from os1_edge.clock import Clock
from os1_edge.device.microphone import reopened
from os1_edge.device.programs import NoSound
from os1_edge.device.retimed import Retimed
from os1_edge.events import AudioFrame, Samples, SceneFrame

log = logging.getLogger(__name__)

SOUND, SCENE = 1, 2
"""First byte of a binary message."""

LARGEST = 1 << 20
"""Bytes of a message; a 640x480 JPEG has 40 kB."""

SOUND_WAITS = 64
"""Messages of sound (two seconds) that may wait; the oldest goes."""

OUT_WAITS = 1000
"""Messages that may wait for a page; one that is so far behind is let go."""

TAKEN, BEHIND = 4001, 4002
"""Codes that close a page: another is the glasses; it was too far behind. From 4000 on they are free."""

CLOSE_S = 2.0
"""A page that is let go may take so long to be told."""

AHEAD_S = 0.06
"""The page plays so much later than it is told: what a radio link's packets differ by."""

RATES = range(8_000, 192_001)


class BadMessage(Exception):
    """A page sent what no page sends."""


@dataclass(slots=True, eq=False)
class Page:
    """One connected page."""

    socket: web.WebSocketResponse
    rate_in: int
    rate_out: int
    latency_s: float
    id: str = ""
    """The same over lost connections; empty: not told."""
    again: bool = False
    """It was connected before: nobody has pressed anything."""
    sound: asyncio.Queue[Samples | None] = field(default_factory=lambda: asyncio.Queue(SOUND_WAITS))
    """``None``: the page has gone."""
    out: asyncio.Queue[bytes | str] = field(default_factory=lambda: asyncio.Queue(OUT_WAITS))
    left: asyncio.Event = field(default_factory=asyncio.Event)
    code: int | None = None
    """Why it was let go, as its socket is told."""

    @property
    def gone(self) -> bool:
        """The page is the glasses no longer: it is told nothing, and what it sends counts for nothing."""
        return self.left.is_set()

    def send(self, message: bytes | str) -> None:
        """Hands ``message`` to the page's sender; never waits."""
        if self.gone:
            return
        try:
            self.out.put_nowait(message)
        except asyncio.QueueFull:
            log.warning("a page is %d messages behind and is let go", OUT_WAITS)
            self.leave(BEHIND)

    def event(self, event: dict[str, Any]) -> None:
        """Tells the page."""
        self.send(json.dumps(event))

    def leave(self, code: int | None = None) -> None:
        """The page is the glasses no longer; ``code`` tells it why."""
        if self.gone:
            return
        self.code = code
        self.left.set()
        if self.sound.full():
            self.sound.get_nowait()
        self.sound.put_nowait(None)

    def hear(self, data: bytes) -> None:
        """Sound came from the page."""
        if self.gone:
            return
        if len(data) % 2:
            raise BadMessage("half a sample")
        if self.sound.full():
            self.sound.get_nowait()
        self.sound.put_nowait(np.frombuffer(data, "<i2").astype(np.float32) / 32768.0)


class _PageMicrophone:
    """``device.microphone.Device`` of one page."""

    def __init__(self, page: Page, first: Samples) -> None:
        self.rate = page.rate_in
        self._page, self._first = page, first

    async def blocks(self) -> AsyncGenerator[Samples, None]:
        """See ``Device``."""
        yield self._first
        while (block := await self._page.sound.get()) is not None:
            yield block


class BrowserGlasses:
    """Whatever page is connected, as devices."""

    in_a_room = False
    """The browser cancels the echo of its own sound."""

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        """``decode`` makes a picture (uint8 BGR) of a JPEG, and raises for anything else."""
        self._decode = decode
        self._page: Page | None = None
        self._came = asyncio.Event()
        self._pictures: deque[tuple[float, bytes]] = deque(maxlen=2)
        self._picture_came = asyncio.Event()
        self._clock: Clock | None = None

    @property
    def page(self) -> Page | None:
        """The page that is the glasses now."""
        return self._page if self._page is not None and not self._page.gone else None

    def refuses(self, page: Page) -> bool:
        """Whether ``page`` only found its connection again while another is the glasses; its own one of
        before, which may not be known to be lost yet, is no other."""
        here = self.page
        return page.again and here is not None and (not page.id or here.id != page.id)

    def put_on(self, page: Page) -> None:
        """``page`` is the glasses from now on."""
        if (before := self.page) is not None:
            before.event({"kind": "taken"})
            before.leave(TAKEN)
        self._page = page
        self._came.set()

    def take_off(self, page: Page) -> None:
        """``page`` has gone."""
        page.leave()
        if self._page is page:
            self._page = None
            self._came.clear()

    # Devices.

    def microphone(self, clock: Clock) -> AsyncIterator[AudioFrame]:
        """Frames of whatever page there is."""
        self._clock = clock
        return reopened(self._open_microphone, clock)

    async def _open_microphone(self) -> _PageMicrophone:
        while True:
            await self._came.wait()
            page = self.page
            if page is None:
                self._came.clear()
                continue
            if (first := await page.sound.get()) is not None:
                return _PageMicrophone(page, first)
            self._came.clear()
            if self.page is not None:
                self._came.set()

    async def camera(self, clock: Clock) -> AsyncGenerator[SceneFrame, None]:
        """Pictures of whatever page there is."""
        self._clock = clock
        while True:
            await self._picture_came.wait()
            self._picture_came.clear()
            while self._pictures:
                at_s, data = self._pictures.popleft()
                try:
                    image = await asyncio.to_thread(self._decode, data)
                except Exception as e:
                    log.warning("a picture from the page is none: %s", type(e).__name__)
                    continue
                yield SceneFrame(at_s, "browser", image)

    def speaker(self, clock: Clock) -> PageSpeaker:
        """The page's speaker."""
        return PageSpeaker(self, clock)

    def saw(self, data: bytes) -> None:
        """A picture came from the page."""
        if self._clock is not None:
            self._pictures.append((self._clock.now(), data))
            self._picture_came.set()


class PageSpeaker:
    """``speak.sink.Sink`` on the page."""

    def __init__(self, glasses: BrowserGlasses, clock: Clock) -> None:
        self._glasses, self._clock = glasses, clock
        self._page: Page | None = None
        self._retimed: Retimed | None = None

    @property
    def latency_s(self) -> float:
        """See ``Sink``."""
        page = self._glasses.page
        return AHEAD_S + (page.latency_s if page is not None else 0.0)

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``Sink``."""
        page = self._glasses.page
        if page is None:
            raise NoSound("no page is open")
        self._page = page
        self._retimed = Retimed(rate, page.rate_out)
        page.event({"kind": "begin", "now_s": self._clock.now(), "ahead_s": AHEAD_S})

    def write(self, block: Samples, at_s: float) -> None:
        """See ``Sink``."""
        page = self._page
        if page is None or page.gone or self._retimed is None:
            raise NoSound("the page has gone")
        _play(page, self._retimed.add(block, at_s))

    def drop(self, from_s: float) -> None:
        """See ``Sink``."""
        if self._page is not None and self._retimed is not None:
            self._retimed.drop()
            self._page.event({"kind": "drop", "from_s": from_s})

    def end(self) -> str | None:
        """See ``Sink``."""
        if self._page is not None and self._retimed is not None:
            _play(self._page, self._retimed.finish())
        return None

    def close(self) -> None:
        """See ``live.devices.Closing``."""


def _play(page: Page, blocks: list[tuple[Samples, float]]) -> None:
    for samples, at_s in blocks:
        page.send(struct.pack("<d", at_s) + (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def page_of(socket: web.WebSocketResponse, hello: object) -> Page:
    """The page that says ``hello``.

    Raises:
        BadMessage: it is not one of ours.
    """
    if not isinstance(hello, dict) or hello.get("kind") != "hello":
        raise BadMessage("the first message must be hello")
    rate_in, rate_out, latency = hello.get("rate_in"), hello.get("rate_out"), hello.get("latency_s", 0.0)
    for rate in (rate_in, rate_out):
        if not isinstance(rate, int) or rate not in RATES:
            raise BadMessage("no rate of sound")
    if not isinstance(latency, int | float) or not 0 <= latency <= 2:
        latency = 0.0
    assert isinstance(rate_in, int)
    assert isinstance(rate_out, int)
    name = hello.get("id")
    name = name if isinstance(name, str) and len(name) <= 64 else ""
    return Page(socket, rate_in, rate_out, float(latency), name, hello.get("again") is True)


async def serve_page(
    socket: web.WebSocketResponse,
    glasses: BrowserGlasses,
    page: Page,
    command: Callable[[dict[str, Any]], None],
) -> None:
    """Lives until the page has gone or is let go; ``page.code`` then says why. ``command`` is given its JSON
    messages.

    Raises:
        BadMessage: the page sent what no page sends.
    """
    reader = asyncio.create_task(_read(socket, glasses, page, command))
    beside = (asyncio.create_task(_send(page)), asyncio.create_task(page.left.wait()))
    glasses.put_on(page)
    try:
        await asyncio.wait((reader, beside[1]), return_when=asyncio.FIRST_COMPLETED)
        if reader.done():
            reader.result()
    finally:
        glasses.take_off(page)
        for task in (reader, *beside):
            task.cancel()
        await asyncio.gather(reader, *beside, return_exceptions=True)


async def close_page(page: Page) -> None:
    """Closes the socket of a page that ``serve_page`` is done with; one that takes nothing any more cannot
    hold it up."""
    if page.code is None:
        await page.socket.close()
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            while page.code == TAKEN and not page.out.empty():  # its last message says so
                await _tell(page.socket, page.out.get_nowait())
            await page.socket.close(code=page.code)


async def _read(
    socket: web.WebSocketResponse,
    glasses: BrowserGlasses,
    page: Page,
    command: Callable[[dict[str, Any]], None],
) -> None:
    async for message in socket:
        if page.gone:
            return
        if message.type == WSMsgType.BINARY:
            _binary(glasses, page, message.data)
        elif message.type == WSMsgType.TEXT:
            command(_json(message.data))


def _binary(glasses: BrowserGlasses, page: Page, data: bytes) -> None:
    if not data:
        raise BadMessage("an empty message")
    match data[0]:
        case 1:
            page.hear(data[1:])
        case 2:
            glasses.saw(data[1:])
        case _:
            raise BadMessage("an unknown kind")


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadMessage("no JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        raise BadMessage("no kind")
    return found


async def _send(page: Page) -> None:
    while True:
        await _tell(page.socket, await page.out.get())


async def _tell(socket: web.WebSocketResponse, message: bytes | str) -> None:
    if isinstance(message, bytes):
        await socket.send_bytes(message)
    else:
        await socket.send_str(message)
