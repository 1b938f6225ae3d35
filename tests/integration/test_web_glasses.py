"""A page as the glasses, over real sockets: what it hears, sees and says, and which page it is."""

from __future__ import annotations

import asyncio
import struct

import aiohttp
import cv2
import numpy as np
import pytest
from page_world import HELLO, Served, run, until

from os1_edge.app import TurnTrace
from os1_edge.events import AudioFrame, SceneFrame, TurnEnded
from os1_edge.web.glasses import AHEAD_S, BEHIND, OUT_WAITS, TAKEN


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
