"""A Furhat robot as the body: its microphone, camera and speaker, and a face that looks at who it talks with.

Speaks Furhat's Realtime API (docs.furhat.io) through the maker's own client, ``furhat-realtime-api``. The
robot's sound goes through the companion's own ears and its voice through the robot's mouth, which moves its
lips to it; the robot's own recogniser and voice are not used, so nothing is heard by a cloud of its maker.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any

import numpy as np

from os1_edge.clock import Clock
from os1_edge.device.microphone import Retry, reopened
from os1_edge.device.programs import NoSound
from os1_edge.events import RATE, AudioFrame, Image, Samples, SceneFrame

log = logging.getLogger(__name__)

PORT = 9000

CONNECT_S = 5.0

RETRY = Retry()

SOUND_WAITS = 64
"""Blocks of its microphone (about two seconds) that may wait; the oldest goes."""

OUT_WAITS = 256
"""Requests that may wait: five seconds of speech. A robot that is so far behind is gone."""

LATENCY_S = 0.25
"""From a block sent to its sound, before the robot has told (``response.speak.start``)."""

AWAY = (0.5, 0.25, 1.0)
"""Metres right, up and ahead of its eyes: where people look who think of an answer."""


class NoFurhat(OSError):
    """No robot answers; the message says what to do."""


class Furhat:
    """One robot, whether it is there just now or not. Use it in one loop, inside ``connected``."""

    in_a_room = True
    """Its microphone hears its speaker."""

    def __init__(
        self,
        host: str,
        decode: Callable[[bytes], Image],
        *,
        key: str | None = None,
        retry: Retry = RETRY,
    ) -> None:
        """Args:
        host: its name or address, with ":PORT" where that is not ``PORT``.
        decode: makes a picture of a JPEG, and raises for anything else.
        key: what the robot's Realtime API asks for, if it does.
        retry: how often it is looked for when it is gone.

        Raises:
            NoFurhat: the client's package is not installed.
        """
        self._host, self._decode, self._key, self._retry = host, decode, key, retry
        self._client: Any = None
        self._here = asyncio.Event()
        self._sound: asyncio.Queue[Samples | None] = asyncio.Queue(SOUND_WAITS)
        self._out: asyncio.Queue[Coroutine[Any, Any, Any]] = asyncio.Queue(OUT_WAITS)
        self._picture: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._sees = False
        self._attends = "user"
        self.speaker = FurhatSpeaker(self)
        _client_class()

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Furhat]:
        """The robot is held until the block is left; one that goes away is looked for.

        Raises:
            NoFurhat: it is not there to begin with.
        """
        client = await self._connect()
        holding = asyncio.create_task(self._hold(client))
        try:
            yield self
        finally:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)
            while not self._out.empty():
                self._out.get_nowait().close()

    async def _connect(self) -> Any:
        name, _, port = self._host.partition(":")
        client = _client_class()(name, self._key)
        client.set_logging_level(logging.CRITICAL)  # it would print what is said
        client.ws_url = f"ws://{name}:{port or PORT}/v1/events"
        for kind, work in (
            ("response.audio.data", self._heard),
            ("response.camera.data", self._saw),
            ("response.speak.start", self.speaker.began),
        ):
            client.add_handler(kind, work)
        try:
            async with asyncio.timeout(CONNECT_S):
                await client.connect()
        except Exception as e:
            await _leave(client)
            if isinstance(e, RuntimeError):
                raise NoFurhat(
                    f"the Furhat at {self._host} wants another key; give it in OS1_FURHAT_KEY"
                ) from None
            raise NoFurhat(
                f"no Furhat answers at {self._host}; is it on, and its Realtime API skill started?"
            ) from None
        return client

    async def _hold(self, client: Any) -> None:
        failures = 0
        while True:
            if client is not None:
                failures = 0
                await self._live(client)
                log.warning("the Furhat is gone; looking for it")
                client = None
            failures += 1
            await asyncio.sleep(self._retry.wait_s(failures))
            with contextlib.suppress(NoFurhat):
                client = await self._connect()
                log.info("the Furhat is back")

    async def _live(self, client: Any) -> None:
        """As long as the connection lasts."""
        self._client = client
        sender = asyncio.create_task(self._send())
        try:
            await client.request_audio_start(RATE, microphone=True, speaker=False)
            if self._sees:
                await client.request_camera_start()
            self._here.set()
            self._attend()
            await client.ws.wait_closed()
        except Exception as e:
            log.debug("the Furhat's connection ended: %s", type(e).__name__)
        finally:
            self._here.clear()
            self._client = None
            if self._sound.full():
                self._sound.get_nowait()
            self._sound.put_nowait(None)
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            await _leave(client)

    async def _send(self) -> None:
        while True:
            request = await self._out.get()
            try:
                await request
            except Exception as e:
                log.debug("the Furhat takes no request: %s", type(e).__name__)

    def ask(self, request: Callable[[Any], Coroutine[Any, Any, Any]]) -> bool:
        """Sends a request in its turn, never waits; whether there is a robot to take it."""
        if self._client is None or self._out.full():
            return False
        self._out.put_nowait(request(self._client))
        return True

    # What it hears and sees.

    def microphone(self, clock: Clock) -> AsyncIterator[AudioFrame]:
        """Its microphone's frames, whether it is there or not."""
        return reopened(self._open, clock, self._retry)

    async def _open(self) -> _FurhatMicrophone:
        await self._here.wait()
        return _FurhatMicrophone(self._sound)

    async def _heard(self, event: dict[str, Any]) -> None:
        data = _bytes(event.get("microphone"))
        if data is None or len(data) % 2:
            return
        if self._sound.full():
            self._sound.get_nowait()
        self._sound.put_nowait(np.frombuffer(data, "<i2").astype(np.float32) / 32768.0)

    async def camera(self, clock: Clock, every_s: float = 0.5) -> AsyncGenerator[SceneFrame, None]:
        """Its camera's pictures, at most one each ``every_s`` seconds; it is on as long as this is open."""
        self._sees = True
        self.ask(lambda robot: robot.request_camera_start())
        try:
            while True:
                data = await self._picture.get()
                at_s = clock.now()
                try:
                    image = await asyncio.to_thread(self._decode, data)
                except Exception as e:
                    log.warning("a picture of the Furhat is none: %s", type(e).__name__)
                else:
                    yield SceneFrame(at_s, "furhat", image)
                await clock.sleep_until(at_s + every_s)
        finally:
            self._sees = False
            self.ask(lambda robot: robot.request_camera_stop())

    async def _saw(self, event: dict[str, Any]) -> None:
        data = _bytes(event.get("image"))
        if data is None:
            return
        if self._picture.full():
            self._picture.get_nowait()
        self._picture.put_nowait(data)

    # Where it looks.

    def told(self, event: dict[str, Any]) -> None:
        """What the companion does; a ``live.record.Watcher``. While it thinks it looks away, as people do,
        else at who is closest."""
        if event.get("kind") != "state":
            return
        attends = "away" if event.get("state") == "thinking" else "user"
        if attends != self._attends:
            self._attends = attends
            self._attend()

    def _attend(self) -> None:
        if self._attends == "away":
            self.ask(lambda robot: robot.request_attend_location(*AWAY))
        else:
            self.ask(lambda robot: robot.request_attend_user("closest"))


class _FurhatMicrophone:
    """``device.microphone.Device`` of one connection."""

    rate = RATE

    def __init__(self, sound: asyncio.Queue[Samples | None]) -> None:
        self._sound = sound

    async def blocks(self) -> AsyncGenerator[Samples, None]:
        """See ``Device``."""
        while (block := await self._sound.get()) is not None:
            yield block


class FurhatSpeaker:
    """``speak.sink.Sink``: sound streamed to the robot, which moves its lips to it."""

    def __init__(self, robot: Furhat) -> None:
        self._robot = robot
        self._rate = RATE
        self._open = False
        self._waits_since: float | None = None
        self.latency_s = LATENCY_S
        """See ``Sink``; as the robot last told."""

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``Sink``."""
        self._rate, self._open = rate, False
        self._start()

    def write(self, block: Samples, at_s: float) -> None:
        """See ``Sink``. The robot plays what it has; a block comes when it is due, so gaps stay gaps."""
        if not self._open:  # taken back before: the robot's stream ended with that
            self._start()
        sound = base64.b64encode((np.clip(block, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()).decode()
        self._ask(lambda robot: robot.request_speak_audio_data(sound))

    def drop(self, from_s: float) -> None:
        """See ``Sink``. All that it still holds is due later."""
        self._open = False
        self._robot.ask(lambda robot: robot.request_speak_stop())

    def end(self) -> str | None:
        """See ``Sink``."""
        if self._open:
            self._open = False
            self._robot.ask(lambda robot: robot.request_speak_audio_end())
        return None

    def close(self) -> None:
        """Silence."""
        self._robot.ask(lambda robot: robot.request_speak_stop())

    def _start(self) -> None:
        rate = self._rate
        self._ask(lambda robot: robot.request_speak_audio_start(rate, lipsync=True))
        self._open = True
        self._waits_since = asyncio.get_running_loop().time()

    def _ask(self, request: Callable[[Any], Coroutine[Any, Any, Any]]) -> None:
        if not self._robot.ask(request):
            raise NoSound("the Furhat is gone")

    async def began(self, _event: dict[str, Any]) -> None:
        """The robot has begun to sound."""
        since, self._waits_since = self._waits_since, None
        if since is not None:
            self.latency_s = min(1.0, max(0.0, asyncio.get_running_loop().time() - since))


def _client_class() -> Any:
    try:
        from furhat_realtime_api import AsyncFurhatClient
    except ModuleNotFoundError:
        raise NoFurhat("the Furhat's client is not installed; run: pip install 'os1[furhat]'") from None
    return AsyncFurhatClient


async def _leave(client: Any) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(1.0):
            await client.disconnect()


def _bytes(text: object) -> bytes | None:
    """What base64 ``text`` holds; nothing, where it is none."""
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
