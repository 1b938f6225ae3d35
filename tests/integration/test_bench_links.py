"""The ways that `os1 bench system` shapes its links by, as it starts them: processes of their own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from os1_edge.bench import tun
from os1_edge.bench.packets import PacketWay, bits_a_second, weather
from os1_edge.bench.proxy import parse, timeline
from os1_edge.bench.system import started


@pytest.fixture
def echo() -> Iterator[str]:
    """host:port of a server that sends back what it gets."""
    ear = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                heard, _ = ear.accept()
            except OSError:
                return
            with heard:
                while data := heard.recv(65536):
                    heard.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{ear.getsockname()[1]}"
    ear.shutdown(socket.SHUT_RDWR)
    ear.close()


def round_trip(client: socket.socket, data: bytes) -> float:
    """Seconds until all of ``data`` has come back."""
    began, back = time.monotonic(), b""
    client.sendall(data)
    while len(back) < len(data):
        back += client.recv(65536)
    assert back == data
    return time.monotonic() - began


@pytest.mark.parametrize("way", ["proxy", "packets"])
def test_the_way_to_the_server_is_as_bad_as_the_link(way: str, echo: str) -> None:
    if way == "packets" and (why := tun.missing()) is not None:
        pytest.skip(f"no packets here: {why}")
    command = [sys.executable, "-m", f"os1_edge.bench.{way}", "--to", echo, "--timeline", "0 latency=0.06"]
    with started(command) as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as client:
            assert round_trip(client, b"x" * 20_000) >= 0.12
    if way == "packets":
        made = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        assert not [name for name in made.split() if name.startswith("os1") and not alive(name)]


def alive(namespace: str) -> bool:
    """Whether who made it is still there: others may measure at the same time."""
    number = "".join(c for c in namespace.removeprefix("os1") if c.isdigit())
    return number.isdigit() and int(number) != os.getpid() and Path(f"/proc/{number}").exists()


def test_nothing_passes_a_tunnel_and_all_of_it_comes_behind(echo: str) -> None:
    if (why := tun.missing()) is not None:
        pytest.skip(f"no packets here: {why}")

    async def live() -> bytes:
        async with PacketWay("127.0.0.1", int(echo.rpartition(":")[2]), []) as way:
            reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
            writer.write(b"before")
            assert await reader.readexactly(6) == b"before"
            way.now(parse("hole"))
            writer.write(b"inside")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.4)
            way.now(parse(""))
            back = await asyncio.wait_for(reader.readexactly(6), 60)
            writer.close()
            return back

    assert asyncio.run(live()) == b"inside"


def test_what_stalls_a_stream_is_a_lost_packet() -> None:
    steps = timeline("0 latency=0.04 jitter=0.03 rate=125000 stall=0.05; 30 hole")
    assert weather(steps[0][1]) == tun.Weather(0.04, 0.03, 0.05)
    assert weather(parse("hole")).hole
    assert bits_a_second(steps) == 1e6
    assert bits_a_second(timeline("0 latency=0.1")) == 0.0


def test_a_way_that_does_not_start_says_how_to_see_why() -> None:
    from os1_edge.bench.stage import Unavailable

    with (
        pytest.raises(Unavailable, match=r"-m os1_edge\.bench\.proxy .* did not start"),
        started([sys.executable, "-m", "os1_edge.bench.proxy", "--timeline", "0 hats"]),
    ):
        pass
