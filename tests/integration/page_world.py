"""The page's server as tests use it: over real sockets, on a companion that notes what is done to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.live.record import Watched
from os1_edge.see.image import decode_image
from os1_edge.web.glasses import BrowserGlasses
from os1_edge.web.pairing import Doors
from os1_edge.web.run import HERE
from os1_edge.web.server import make_app, served

HELLO = {"kind": "hello", "rate_in": 48_000, "rate_out": 48_000, "latency_s": 0.01}


@dataclass
class Companion:
    """Stands in for the running one: what the page can do to it is noted."""

    state: str = "listening"
    done: list[str] = field(default_factory=list)

    @property
    def looking(self) -> Companion:
        return self

    @property
    def gazing(self) -> Companion:
        return self

    def look_away(self) -> None:
        self.done.append("look_away")

    def look_back(self) -> None:
        self.done.append("look_back")

    def point(self, x: float, y: float) -> None:
        self.done.append(f"gaze {x} {y}")

    def mute(self) -> None:
        self.done.append("mute")

    def unmute(self) -> None:
        self.done.append("unmute")

    def hold(self) -> None:
        self.done.append("hold")

    def release(self) -> None:
        self.done.append("release")


@dataclass
class Served:
    """A server under test."""

    url: str
    doors: Doors
    glasses: BrowserGlasses
    companion: Companion
    watched: Watched
    clock: Clock
    http: aiohttp.ClientSession

    async def paired(self) -> None:
        async with self.http.post(
            f"{self.url}/api/pair", json={"code": self.doors.code}, headers=self.own
        ) as r:
            assert r.status == 200

    @property
    def own(self) -> dict[str, str]:
        return {"Origin": self.url}

    def page(self) -> Any:
        return self.http.ws_connect(f"{self.url}/api/glasses", headers=self.own)


@dataclass
class Running:
    """``live.run.Live`` as far as the page's server needs it."""

    os1: Any
    clock: Clock
    faculties: Any
    watched: Watched
    config: Config
    life: Any = None


@asynccontextmanager
async def serving(
    tls: ssl.SSLContext | None = None, trusted: ssl.SSLContext | bool = True
) -> AsyncIterator[Served]:
    clock, watched, companion = Clock(), Watched(), Companion()
    glasses, doors = BrowserGlasses(decode_image), Doors()
    live: Any = Running(companion, clock, None, watched, Config())
    app = make_app(live, glasses, doors, frozenset(HERE))
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        served(app, ["127.0.0.1"], 0, tls) as port,
        aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(ssl=trusted)) as http,
    ):
        scheme = "https" if tls else "http"
        yield Served(f"{scheme}://127.0.0.1:{port}", doors, glasses, companion, watched, clock, http)


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.01)


def run(
    work: Callable[[Served], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
    trusted: ssl.SSLContext | bool = True,
) -> None:
    async def go() -> None:
        async with serving(tls, trusted) as found, asyncio.timeout(30):
            await work(found)

    asyncio.run(go())
