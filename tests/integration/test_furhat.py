"""A Furhat robot as the body, against a server that speaks the Realtime API as its documentation tells."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import pytest
from aiohttp import WSMsgType, web

pytest.importorskip(
    "furhat_realtime_api", reason="the Furhat's client is not installed: pip install 'os1[furhat]'"
)

from os1_edge.clock import Clock
from os1_edge.device.furhat import AWAY, LATENCY_S, Furhat, NoFurhat
from os1_edge.device.microphone import Retry
from os1_edge.events import AudioFrame, SceneFrame
from os1_edge.live.record import Watched
from os1_edge.see.image import decode_image

AT_ONCE = Retry(0.01, 0.02)


@dataclass
class Robot:
    """The robot's side of the Realtime API."""

    key: str | None = None
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    connected: int = 0
    ws: web.WebSocketResponse | None = None

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        self.ws = ws = web.WebSocketResponse()
        await ws.prepare(request)
        self.connected += 1
        async for message in ws:
            assert message.type == WSMsgType.TEXT
            event = json.loads(message.data)
            if event["type"] == "request.auth":
                granted = self.key is None or event.get("key") == self.key
                reply = {"type": "response.auth", "access": granted, "scope": "all"}
                await ws.send_json({**reply, "request_id": event["request_id"]})
            else:
                self.asked.append(event)
            if event["type"] == "request.speak.audio.start":
                await ws.send_json({"type": "response.speak.start", "text": "", "gen_time": 0})
        return ws

    async def say(self, kind: str, **event: object) -> None:
        assert self.ws is not None
        await self.ws.send_json({"type": kind, **event})

    def kinds(self) -> list[str]:
        return [event["type"].removeprefix("request.") for event in self.asked]

    def spoken(self) -> Any:
        data = [e["audio"] for e in self.asked if e["type"] == "request.speak.audio.data"]
        return np.frombuffer(b"".join(base64.b64decode(d) for d in data), "<i2")


@asynccontextmanager
async def robot(key: str | None = None) -> AsyncIterator[Robot]:
    made = Robot(key)
    app = web.Application()
    app.router.add_get("/v1/events", made.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server: Any = site._server
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        await runner.cleanup()


def body(made: Robot, key: str | None = None) -> Furhat:
    return Furhat(f"127.0.0.1:{made.port}", decode_image, key=key, retry=AT_ONCE)


def run(work: Callable[[Robot], Awaitable[None]], key: str | None = None) -> None:
    async def go() -> None:
        async with robot(key) as made, asyncio.timeout(20):
            await work(made)

    asyncio.run(go())


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.005)


def sound(samples: Any) -> str:
    return base64.b64encode(samples.astype("<i2").tobytes()).decode()


def test_its_microphone_is_heard_and_heard_again_after_it_was_gone() -> None:
    async def work(made: Robot) -> None:
        frames: list[AudioFrame] = []

        async def listen(furhat: Furhat) -> None:
            async for frame in furhat.microphone(Clock()):
                frames.append(frame)

        async with body(made).connected() as furhat:
            listening = asyncio.create_task(listen(furhat))
            for turn in range(2):
                await until(lambda turn=turn: made.kinds().count("audio.start") == turn + 1)
                before = len(frames)
                await made.say("response.audio.data", microphone="no base64!")
                for _ in range(8):
                    await made.say("response.audio.data", microphone=sound(np.full(512, 8192)))
                await until(lambda before=before: len(frames) > before + 4)
                assert made.ws is not None
                await made.ws.close()
            listening.cancel()
        start = next(e for e in made.asked if e["type"] == "request.audio.start")
        assert (start["sample_rate"], start["microphone"], start["speaker"]) == (16_000, True, False)
        assert np.allclose(frames[3].samples, 0.25, atol=0.01)
        starts = [f.start for f in frames]
        assert starts == sorted(set(starts))

    run(work)


def test_a_reply_is_spoken_with_its_lips_and_silence_comes_at_once_when_it_is_cut() -> None:
    async def work(made: Robot) -> None:
        async with body(made).connected() as furhat:
            await until(lambda: "attend.user" in made.kinds())
            speaker = furhat.speaker
            assert speaker.latency_s == LATENCY_S
            speaker.begin("t1", 0, 22_050)
            for n in range(5):
                speaker.write(np.full(441, 0.5, np.float32), n * 0.02)
            speaker.drop(0.04)
            speaker.write(np.full(441, 0.25, np.float32), 0.5)  # it goes on
            speaker.end()
            await until(lambda: "speak.audio.end" in made.kinds())
            await until(lambda: speaker.latency_s != LATENCY_S)
            kinds = [k for k in made.kinds() if k.startswith("speak")]
            data = ["speak.audio.data"]
            one = ["speak.audio.start", *data * 5, "speak.stop"]
            assert kinds == [*one, "speak.audio.start", *data, "speak.audio.end"]
            start = next(e for e in made.asked if e["type"] == "request.speak.audio.start")
            assert (start["sample_rate"], start["lipsync"]) == (22_050, True)
            assert np.allclose(made.spoken()[: 5 * 441] / 32767, 0.5, atol=1e-3)
            assert made.ws is not None
            await made.ws.close()
            await until(lambda: not furhat.ask(lambda robot: robot.request_speak_stop()))
            with pytest.raises(OSError, match="gone"):
                speaker.begin("t2", 0, 22_050)

    run(work)


def test_it_looks_at_who_speaks_and_away_while_it_thinks() -> None:
    async def work(made: Robot) -> None:
        watched = Watched()
        async with body(made).connected() as furhat:
            watched.watch(furhat.told)
            await until(lambda: "attend.user" in made.kinds())
            for state in ("listening", "hearing", "thinking", "thinking", "speaking", "listening"):
                watched.tell({"kind": "state", "state": state})
            watched.tell({"kind": "turn"})
            await until(lambda: made.kinds().count("attend.user") == 2)
        looks = [e for e in made.asked if e["type"].startswith("request.attend")]
        assert [e.get("user_id") for e in looks] == ["closest", None, "closest"]
        assert (looks[1]["x"], looks[1]["y"], looks[1]["z"]) == AWAY

    run(work)


def test_its_camera_is_on_while_the_companion_looks_and_no_longer() -> None:
    async def work(made: Robot) -> None:
        seen: list[SceneFrame] = []
        ok, jpeg = cv2.imencode(".jpg", np.full((48, 64, 3), 99, np.uint8))
        assert ok
        async with body(made).connected() as furhat:
            await until(lambda: "attend.user" in made.kinds())
            assert "camera.start" not in made.kinds()
            pictures = furhat.camera(Clock(), every_s=0.01)

            async def look() -> None:
                async for frame in pictures:
                    seen.append(frame)

            looking = asyncio.create_task(look())
            await until(lambda: "camera.start" in made.kinds())
            await made.say("response.camera.data", image=base64.b64encode(b"no picture").decode())
            await asyncio.sleep(0.05)
            await made.say("response.camera.data", image=base64.b64encode(jpeg.tobytes()).decode())
            await until(lambda: bool(seen))
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await pictures.aclose()
            await until(lambda: "camera.stop" in made.kinds())
        assert seen[0].image.shape == (48, 64, 3)

    run(work)


def test_a_robot_that_is_not_there_or_wants_another_key_is_told_of() -> None:
    async def work(made: Robot) -> None:
        with pytest.raises(NoFurhat, match="OS1_FURHAT_KEY"):
            async with body(made, "wrong").connected():
                pass
        async with body(made, "right").connected():
            pass
        with pytest.raises(NoFurhat, match="Realtime API"):
            async with Furhat("127.0.0.1:1", decode_image).connected():
                pass

    run(work, key="right")
