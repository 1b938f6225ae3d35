"""The page's server over real sockets: who is refused, what a page may send, and a conversation in sound."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import cv2
import numpy as np
import pytest

from os1_edge.app import TurnTrace
from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.events import AudioFrame, SceneFrame, TurnEnded
from os1_edge.live.record import Watched
from os1_edge.see.image import decode_image
from os1_edge.web.gate import EACH, Gate
from os1_edge.web.glasses import AHEAD_S, BEHIND, OUT_WAITS, TAKEN, BrowserGlasses
from os1_edge.web.pairing import Doors
from os1_edge.web.run import HERE
from os1_edge.web.server import make_app, served
from os1_edge.web.tls import certificate

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


def test_nothing_is_told_to_a_browser_that_is_not_paired() -> None:
    async def work(s: Served) -> None:
        for path in ("/api/state", "/api/nothing", "/anything"):
            async with s.http.get(s.url + path) as r:
                assert r.status == 401, path
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await s.page()
        async with s.http.post(f"{s.url}/api/pair", json={"code": "aaaa-aaaa"}, headers=s.own) as r:
            assert r.status == 403
            assert "not the code" in (await r.json())["error"]
        await s.paired()
        async with s.http.get(f"{s.url}/api/state") as r:
            assert (await r.json())["state"] == "listening"

    run(work)


def test_another_site_can_neither_call_nor_listen() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        for origin in ("https://evil.example", "http://localhost:1", "null"):
            async with s.http.get(f"{s.url}/api/state", headers={"Origin": origin}) as r:
                assert r.status == 403
            async with s.http.post(f"{s.url}/api/unpair", json={}, headers={"Origin": origin}) as r:
                assert r.status == 403
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await s.http.ws_connect(f"{s.url}/api/glasses", headers={"Origin": origin})
        async with s.http.post(f"{s.url}/api/unpair", json={}) as r:  # a form or a script without an origin
            assert r.status == 403
        async with s.http.get(f"{s.url}/api/state", headers={"Sec-Fetch-Site": "cross-site"}) as r:
            assert r.status == 403

    run(work)


def test_a_name_that_was_made_to_point_here_is_not_served() -> None:
    async def work(s: Served) -> None:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", ""):
            async with s.http.get(f"{s.url}/", headers={"Host": host}) as r:
                assert r.status in (400, 421), host

    run(work)


def test_only_the_pages_own_files_are_served() -> None:
    async def work(s: Served) -> None:
        async with s.http.get(f"{s.url}/page/main.js") as r:
            assert r.status == 200
            assert r.content_type == "text/javascript"
        names = (
            "..%2fserver.py",
            "%2e%2e/server.py",
            "..",
            "main.js%00",
            "missing.js",
            ".",
            "%2fetc%2fpasswd",
        )
        for name in names:
            async with s.http.get(aiohttp.client.URL(f"{s.url}/page/{name}", encoded=True)) as r:
                assert r.status in (400, 401, 404), name
                assert b"aiohttp" not in await r.read()

    run(work)


def test_every_answer_carries_the_headers_that_keep_text_from_becoming_markup() -> None:
    async def work(s: Served) -> None:
        for path in ("/", "/page/main.js", "/page/missing.js", "/api/state"):
            async with s.http.get(s.url + path) as r:
                assert "script-src 'self'" in r.headers["Content-Security-Policy"], path
                assert "unsafe-inline" not in r.headers["Content-Security-Policy"]
                assert r.headers["X-Content-Type-Options"] == "nosniff"
                assert r.headers["Cache-Control"] == "no-store"
        await s.paired()
        cookie = next(c for c in s.http.cookie_jar if c.key.startswith("os1-"))
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"

    run(work)


def test_the_page_is_small_and_calls_nothing_from_elsewhere() -> None:
    from os1_edge.web.server import PAGE

    texts = {entry.name: entry.read_text("utf-8") for entry in PAGE.iterdir()}
    assert sum(len(text.encode()) for text in texts.values()) < 300_000
    for name, text in texts.items():
        assert "innerHTML" not in text, name
        assert "http://" not in text.replace("http://www.w3.org", ""), name
        assert "https://" not in text, name


@pytest.mark.parametrize(
    "first",
    [
        "{}",
        "no json",
        "[]",
        '{"kind":"hello"}',
        '{"kind":"hello","rate_in":1,"rate_out":48000}',
        '{"kind":"hello","rate_in":"48000","rate_out":48000}',
        '{"kind":"hello","rate_in":1e9,"rate_out":48000}',
    ],
)
def test_a_page_that_does_not_say_what_it_is_is_let_go(first: str) -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_str(first)
            assert (await ws.receive()).type == aiohttp.WSMsgType.CLOSE
            assert ws.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION
        assert s.glasses.page is None

    run(work)


@pytest.mark.parametrize(
    "message", [b"", b"\x09abc", b"\x01\x00", '{"kind":"rm"}', "[" * 5000, "[]", '{"kind":7}']
)
def test_a_page_that_sends_nonsense_is_let_go_and_the_next_is_served(message: bytes | str) -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            await (ws.send_bytes(message) if isinstance(message, bytes) else ws.send_str(message))
            while (await ws.receive()).type not in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED):
                pass
        async with s.page() as ws:
            await ws.send_json(HELLO)
            assert (await ws.receive_json())["kind"] == "snapshot"

    run(work)


def test_a_message_of_many_megabytes_is_refused() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            await ws.send_bytes(b"\x02" + bytes(3 << 20))
            assert (await ws.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        async with s.http.post(f"{s.url}/api/pair", data=b"{" + b" " * (1 << 20), headers=s.own) as r:
            assert r.status in (400, 413)

    run(work)


@pytest.mark.parametrize("over_tls", [False, True])
def test_who_is_not_paired_can_neither_dawdle_nor_fill_the_house(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, over_tls: bool
) -> None:
    tls = certificate(tmp_path, HERE)[0] if over_tls else None
    trusted = ssl.create_default_context(cafile=str(tmp_path / "page.pem")) if over_tls else True
    entered: list[bool] = []
    enters = Gate.enters

    def counted(gate: Gate, address: str) -> bool:
        entered.append(enters(gate, address))
        return entered[-1]

    monkeypatch.setattr(Gate, "enters", counted)
    monkeypatch.setattr("os1_edge.web.gate.HEAD_S", 2.0)

    async def work(s: Served) -> None:
        port = int(s.url.rpartition(":")[2])
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            entered.clear()
            crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(EACH + 10)]
            if not over_tls:  # over TLS not even the handshake is begun
                for _, writer in crowd:
                    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            # Those too many are shut out at once, the others when they have said nothing of use.
            ends = await asyncio.gather(*(reader.read() for reader, _ in crowd), return_exceptions=True)
            assert all(end == b"" or isinstance(end, ConnectionError) for end in ends)
            assert len(entered) == EACH + 10
            assert sum(entered) < EACH  # the paired page has a place
            for _, writer in crowd:
                writer.close()
            s.watched.tell({"kind": "state", "state": "muted"})  # the paired page is still there
            assert (await ws.receive_json())["state"] == "muted"
        async with s.http.get(f"{s.url}/api/state") as r:
            assert r.status == 200

    run(work, tls, trusted)


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os1_edge.web.guard.PATIENCE_S", 0.3)

    async def work(s: Served) -> None:
        port = int(s.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /api/pair HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {s.url}\r\n"
        writer.write(f"{head}Content-Length: 20\r\n\r\n{{".encode())
        assert b" 408 " in await reader.readline()
        writer.close()

    run(work)


def test_what_the_page_hears_is_heard_at_16_khz_and_a_new_page_goes_on() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        frames: list[AudioFrame] = []

        async def listen() -> None:
            async for frame in s.glasses.microphone(s.clock):
                frames.append(frame)

        listening = asyncio.create_task(listen())
        tone = (0.5 * 32767 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)).astype("<i2")
        for _ in range(2):
            before = len(frames)
            async with s.page() as ws:
                await ws.send_json(HELLO)
                for n in range(20):
                    await ws.send_bytes(b"\x01" + tone[n * 1536 : (n + 1) * 1536].tobytes())
                await until(lambda wanted=before + 15: len(frames) >= wanted)
        listening.cancel()
        sound = np.concatenate([f.samples for f in frames[3:12]])
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
        assert np.argmax(spectrum) * 16_000 / len(sound) == pytest.approx(440, abs=5)

    run(work)


def test_pictures_of_the_page_are_seen_and_what_is_none_is_skipped() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        seen: list[SceneFrame] = []

        async def look() -> None:
            async for frame in s.glasses.camera(s.clock):
                seen.append(frame)

        looking = asyncio.create_task(look())
        await asyncio.sleep(0)
        ok, jpeg = cv2.imencode(".jpg", np.full((48, 64, 3), 99, np.uint8))
        assert ok
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.send_bytes(b"\x02not a picture")
            await asyncio.sleep(0.05)
            await ws.send_bytes(b"\x02" + jpeg.tobytes())
            await until(lambda: bool(seen))
        looking.cancel()
        assert seen[0].image.shape == (48, 64, 3)

    run(work)


def test_the_reply_reaches_the_page_in_its_time_and_can_be_taken_back() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        sink = s.glasses.speaker(s.clock)
        with pytest.raises(OSError, match="no page is open"):
            sink.begin("t1", 0, 22_050)
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            assert sink.latency_s == pytest.approx(AHEAD_S + 0.01)
            sink.begin("t1", 0, 22_050)
            for n in range(10):
                sink.write(np.full(441, 0.5, np.float32), 5.0 + n * 0.02)
            sink.end()
            sink.drop(5.1)
            assert (await ws.receive_json())["kind"] == "begin"
            end_s, total = 5.0, 0
            while total < 9500:
                data = (await ws.receive()).data
                (at_s,) = struct.unpack("<d", data[:8])
                samples = np.frombuffer(data[8:], "<i2")
                assert at_s == pytest.approx(end_s, abs=1e-3)
                end_s, total = at_s + len(samples) / 48_000, total + len(samples)
            assert total == pytest.approx(9600, abs=5)
            assert await ws.receive_json() == {"kind": "drop", "from_s": 5.1}

    run(work)


def test_the_newest_page_is_the_glasses_and_the_other_is_told() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as first, s.page() as second:
            await first.send_json(HELLO)
            await first.receive_json()
            await second.send_json(HELLO)
            await second.receive_json()
            assert (await first.receive_json())["kind"] == "taken"
            s.glasses.speaker(s.clock).begin("t1", 0, 22_050)
            assert (await second.receive_json())["kind"] == "begin"

    run(work)


async def closed_with(ws: aiohttp.ClientWebSocketResponse) -> int | None:
    while not ws.closed:
        await ws.receive()
    return ws.close_code


@pytest.mark.parametrize("silent", [False, True])
def test_a_page_that_is_too_far_behind_is_told_and_closed_and_commands_nothing_more(silent: bool) -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            page = s.glasses.page
            assert page is not None
            for _ in range(OUT_WAITS + 1):  # nothing can be sent meanwhile
                s.watched.tell({"kind": "state", "state": "listening"})
            if not silent:
                await ws.send_json({"kind": "mute"})
            assert await closed_with(ws) == BEHIND
        assert s.companion.done == []
        assert s.glasses.page is None
        assert len(s.watched._watchers) == 0

    run(work)


def test_an_old_page_that_finds_its_connection_again_does_not_take_the_glasses_back() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        old, new = HELLO | {"id": "old"}, HELLO | {"id": "new"}
        async with s.page() as first, s.page() as second:
            await first.send_json(old)
            await first.receive_json()
            await second.send_json(new)
            await second.receive_json()
            assert (await first.receive_json())["kind"] == "taken"
            assert await closed_with(first) == TAKEN
            async with s.page() as back:
                await back.send_json(old | {"again": True})
                assert (await back.receive_json())["kind"] == "taken"
                assert await closed_with(back) == TAKEN
            assert s.glasses.page is not None
            assert s.glasses.page.id == "new"
            # The page in use may come again before its lost connection is known to be lost.
            async with s.page() as again:
                await again.send_json(new | {"again": True})
                assert (await again.receive_json())["kind"] == "snapshot"

    run(work)


def test_mute_and_the_button_reach_the_companion_and_events_the_page() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        async with s.page() as ws:
            await ws.send_json(HELLO)
            await ws.receive_json()
            for kind in ("mute", "unmute", "hold", "release", "look_away", "look_back"):
                await ws.send_json({"kind": kind})
            await ws.send_json({"kind": "gaze", "x": 0.25, "y": 1})
            s.watched.tell({"kind": "state", "state": "muted"})
            assert await ws.receive_json() == {"kind": "state", "state": "muted"}
            await until(lambda: len(s.companion.done) == 7)
        wanted = ["mute", "unmute", "hold", "release", "look_away", "look_back", "gaze 0.25 1.0"]
        assert s.companion.done == wanted

    run(work)


def test_what_was_forgotten_is_on_no_page_neither_an_open_one_nor_a_new_one() -> None:
    async def work(s: Served) -> None:
        await s.paired()
        ended = TurnEnded("t1", 0, 0, 9, 9, "silence", np.zeros(4, np.float32), 0)
        s.watched.turn_answered(TurnTrace(ended, heard="My locker code is swordfish.", reply="A fine one."))
        s.watched.tell({"kind": "scene", "at_s": 1.0, "sentence": "A locker."})
        async with s.page() as ws:
            await ws.send_json(HELLO)
            assert "swordfish" in str(await ws.receive_json())
            s.watched.forgot()
            assert await ws.receive_json() == {"kind": "forgot"}
        async with s.http.get(f"{s.url}/api/state") as r:
            found = await r.json()
        assert (found["turns"], found["latest"]) == ([], [])

    run(work)


def test_on_the_network_it_is_tls_with_a_certificate_that_stays(tmp_path: Path) -> None:
    async def go() -> None:
        tls, fingerprint = certificate(tmp_path, HERE)
        trusted = ssl.create_default_context(cafile=str(tmp_path / "page.pem"))
        async with serving(tls) as s, s.http.get(s.url, ssl=trusted) as r:
            assert r.status == 200
        assert certificate(tmp_path, HERE)[1] == fingerprint
        assert certificate(tmp_path, [*HERE, "192.0.2.7"])[1] != fingerprint
        (tmp_path / "page.pem").write_bytes(b"broken")
        certificate(tmp_path, HERE)
        assert (tmp_path / "page.pem").stat().st_mode & 0o777 == 0o600

    asyncio.run(go())
