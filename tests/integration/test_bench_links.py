"""The ways that `os1 bench system` shapes its links by, as it starts them: processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from os1_edge.bench import system, tun
from os1_edge.bench.cli import bench
from os1_edge.bench.packets import PacketWay, bits_a_second, weather
from os1_edge.bench.proxy import parse, timeline
from os1_edge.bench.result import LinkRun, load_result
from os1_edge.bench.stage import Unavailable
from os1_edge.bench.system import LinkProfile, shaped_by, started


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
    before = namespaces() if way == "packets" else set()
    command = [sys.executable, "-m", f"os1_edge.bench.{way}", "--to", echo, "--timeline", "0 latency=0.06"]
    with started(command) as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as client:
            assert round_trip(client, b"x" * 20_000) >= 0.12
    if way == "packets":
        assert not [name for name in namespaces() - before if not alive(name)]


def namespaces() -> set[str]:
    """Those of the relay; others may measure at the same time."""
    made = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {name for name in made.split() if name.startswith("os1")}


def alive(namespace: str) -> bool:
    """Whether who made it is still there."""
    number = "".join(c for c in namespace.removeprefix("os1") if c.isdigit())
    return number.isdigit() and Path(f"/proc/{number}").exists()


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
    with (
        pytest.raises(Unavailable, match=r"-m os1_edge\.bench\.proxy .* did not start"),
        started([sys.executable, "-m", "os1_edge.bench.proxy", "--timeline", "0 hats"]),
    ):
        pass


def run(link: str, seconds: float) -> LinkRun:
    return LinkRun(
        link=link, turns=1, voice_to_voice_s=(seconds,), parts_s={}, routes={"cloud": 1}, checks_passed=1,
        checks=1, cpu_s_a_minute=1.0, shaped_by="proxy",
    )  # fmt: skip


def test_a_link_that_breaks_does_not_take_the_others_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lived(link: LinkProfile, *_: object) -> LinkRun:
        if link.name == "lte":
            raise ValueError("the server is gone")
        return run(link.name, 1.5)

    monkeypatch.setattr(system, "lived", lived)
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "key"))
    command = [
        "system",
        "--link",
        "wifi",
        "--link",
        "lte",
        "--link",
        "3g",
        "--model",
        "m",
        "--shape",
        "proxy",
    ]
    told = CliRunner().invoke(bench, [*command, "--out", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "2 of 3  lte (60 ms, 5 Mbit/s)" in told.stderr
    made = load_result(tmp_path / "system.json")
    assert [one.link for one in made.links] == ["wifi", "3g"]
    assert [one.why for one in made.skipped] == ["failed: ValueError: the server is gone"]
    assert made.command == " ".join(["os1 bench", *command])


def test_ctrl_c_keeps_the_links_that_were_lived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lived(link: LinkProfile, *_: object) -> LinkRun:
        os.kill(os.getpid(), signal.SIGINT)
        if link.name == "lte":
            os.kill(os.getpid(), signal.SIGINT)  # the second one ends this link, too
        return run(link.name, 1.5)

    monkeypatch.setattr(system, "lived", lived)
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "key"))
    for links, kept in ((("wifi", "3g"), ["wifi"]), (("lte", "3g"), [])):
        chosen = [word for link in links for word in ("--link", link)]
        assert CliRunner().invoke(bench, ["system", *chosen, "--out", str(tmp_path)]).exit_code == 0
        made = load_result(tmp_path / "system.json")
        assert made.interrupted
        assert [one.link for one in made.links] == kept


def test_packets_where_they_can_be_had_and_a_proxy_where_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tun, "missing", lambda: "needs root")
    assert shaped_by("auto") == "proxy"
    with pytest.raises(Unavailable, match="needs root"):
        shaped_by("packets")
    monkeypatch.setattr(tun, "missing", lambda: None)
    assert [shaped_by(wanted) for wanted in ("auto", "packets", "proxy")] == ["packets", "packets", "proxy"]
