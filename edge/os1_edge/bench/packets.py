"""A way of real packets, late and lost, for what speaks TCP on this machine; for root on Linux.

    client → 127.0.0.1:PORT → near namespace ~~~ packets (``tun``) ~~~ far namespace → server

A kernel's own TCP runs over the packets in the middle, so that a loss costs what it costs there.
``python -m os1_edge.bench.packets --to HOST:PORT --timeline '0 latency=0.02 stall=0.01; 30 hole'``: the words
are the proxy's; of them latency, jitter, rate (the first one holds throughout), stall (packets lost) and hole
mean something here.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from os1_edge.bench.proxy import Toxics, timeline
from os1_edge.bench.tun import FAR, Relay, Weather

NAMESPACES = Path("/var/run/netns")
CLONE_NEWNET = 0x40000000
MOVED = 65_536
"""Bytes moved at once."""
Steps = list[tuple[float, Toxics]]


def weather(toxics: Toxics) -> Weather:
    """What the proxy's words mean for packets: what stalls a stream is a packet that was lost."""
    return Weather(toxics.latency, toxics.jitter, toxics.stall, toxics.hole)


def bits_a_second(steps: Steps) -> float:
    """The rate of the way; 0: no bound."""
    return next((8 * toxics.rate for _, toxics in steps if toxics.rate), 0.0)


class PacketWay:
    """Listens on a loopback port; what comes goes over the relay to a server. Use as an async context
    manager."""

    def __init__(self, host: str, port: int, steps: Steps) -> None:
        self._to = host, port
        self._relay = Relay(weather(steps[0][1]) if steps else Weather(), bits_a_second(steps))
        self._near: ThreadPoolExecutor | None = None
        self._far_port = 0
        self._open: set[asyncio.Task[None]] = set()
        """Connections; as many as the client opens."""
        self._stack = AsyncExitStack()
        self.port = 0
        self.connected = asyncio.Event()

    async def __aenter__(self) -> PacketWay:
        try:
            await self._stack.enter_async_context(self._relay)
            self._near = self._stack.enter_context(_inside(self._relay.near))
            far = self._stack.enter_context(_inside(self._relay.far))
            ear = far.submit(_listening).result()
            self._far_port = ear.getsockname()[1]
            at_far = await asyncio.start_server(self._out, sock=ear)
            at_near = await asyncio.start_server(self._in, "127.0.0.1", 0)
            self.port = at_near.sockets[0].getsockname()[1]
            for server in (at_far, at_near):
                self._stack.callback(server.close)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._stack.aclose()

    def now(self, toxics: Toxics) -> None:
        """From here on the way is like this."""
        self._relay.weather = weather(toxics)

    async def _in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """From the client into the near namespace."""
        assert self._near is not None
        self.connected.set()
        # A socket belongs to the namespace that it is made in.
        out = await asyncio.get_running_loop().run_in_executor(self._near, socket.socket)
        out.setblocking(False)
        await self._joined(reader, writer, (FAR, self._far_port), out)

    async def _out(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Out of the far namespace to the server."""
        out = socket.socket()
        out.setblocking(False)
        await self._joined(reader, writer, self._to, out)

    async def _joined(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        to: tuple[str, int],
        out: socket.socket,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await asyncio.get_running_loop().sock_connect(out, to)
            up, down = await asyncio.open_connection(sock=out)
            try:
                await _both_ways((reader, down), (up, writer))
            finally:
                down.close()
        except (OSError, asyncio.CancelledError):
            pass  # a connection that ends; asyncio's streams complain of a task that was cancelled
        finally:
            out.close()
            writer.close()
            self._open.discard(task)


async def _both_ways(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Until either way ends."""
    pumps = [asyncio.create_task(_pump(*way)) for way in ways]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(MOVED):
            to.write(data)
            await to.drain()


def _inside(space: str) -> ThreadPoolExecutor:
    """A thread that lives in the network namespace; the process stays where it is."""
    return ThreadPoolExecutor(1, thread_name_prefix=space, initializer=_enter, initargs=(space,))


def _enter(space: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(NAMESPACES / space, os.O_RDONLY)
    try:
        if libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {space}")
    finally:
        os.close(fd)


def _listening() -> socket.socket:
    ear = socket.create_server((FAR, 0))
    ear.setblocking(False)
    return ear


async def main(to: str, steps: Steps) -> None:
    """Carries until it is ended (SIGTERM), through the steps from the first connection's beginning on."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)  # the namespaces go with it
    host, _, port = to.rpartition(":")
    async with PacketWay(host, int(port), steps) as way:
        print(f"packets ready on 127.0.0.1:{way.port}", flush=True)
        await way.connected.wait()
        began = loop.time()
        for at, toxics in steps:
            await asyncio.sleep(max(0.0, began + at - loop.time()))
            way.now(toxics)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True)
    parser.add_argument("--timeline", type=timeline, default=[])
    chosen = parser.parse_args()
    with suppress(asyncio.CancelledError):
        asyncio.run(main(chosen.to, chosen.timeline))
