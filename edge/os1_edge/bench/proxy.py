"""A TCP proxy that does to a connection what bad networks do; toxiproxy's vocabulary, no root needed.

It cannot lose packets: TCP repairs that before a proxy sees it. Loss looks here like what it does to TCP:
stalls. ``python -m os1_edge.bench.proxy --to HOST:PORT --timeline '0 latency=0.02; 30 hole'``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, fields, replace

CHUNK = 4096
"""Bytes moved at once: what a rate is smoothed over."""

AHEAD = 64
"""Chunks of one direction that may be under way."""


@dataclass(frozen=True, slots=True)
class Toxics:
    """What is wrong with the link now. Seconds, bytes a second."""

    latency: float = 0.0
    """One way."""
    jitter: float = 0.0
    rate: float = 0.0
    """Of each direction; 0: no bound."""
    stall: float = 0.0
    """Share of the chunks that wait ``stall_s`` longer, and all behind them: a lost packet."""
    stall_s: float = 0.25
    hole: bool = False
    """Nothing passes either way, no connection ends (toxiproxy: timeout)."""
    half: bool = False
    """Nothing comes back: a connection that only one side holds to be open."""
    reset: bool = False
    """Connections are cut, and new ones at once (toxiproxy: reset_peer)."""
    down: bool = False
    """New connections are refused; the old ones are cut."""
    captive: bool = False
    """Somebody else answers: plain HTTP with a redirection to a login page."""
    garble: bool = False
    """Bytes are changed on their way: TLS breaks."""
    limit: int = 0
    """Bytes from the server after which a connection is cut (toxiproxy: limit_data); 0: no bound."""


CLEAN = Toxics()
LOGIN = b"HTTP/1.1 302 Found\r\nLocation: http://login.invalid/\r\nContent-Length: 0\r\n\r\n"


class FaultProxy:
    """Listens on a loopback port. ``toxics`` may be changed at any time; open connections notice."""

    def __init__(self, host: str, port: int, toxics: Toxics = CLEAN, seed: int = 0) -> None:
        self._to = host, port
        self._toxics = toxics
        self._changed = asyncio.Event()
        self._chance = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0
        self.connected = asyncio.Event()

    @property
    def toxics(self) -> Toxics:
        """What is wrong with the link now."""
        return self._toxics

    @toxics.setter
    def toxics(self, toxics: Toxics) -> None:
        self._toxics = toxics
        self._changed.set()
        self._changed = asyncio.Event()
        if toxics.reset or toxics.down:
            for task in self._open:
                task.cancel()

    async def start(self, port: int = 0) -> int:
        """Listens, and returns the port; 0: any that is free."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def close(self) -> None:
        """Ends every connection."""
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        self.connected.set()
        try:
            await self._connection(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        except OSError:
            pass
        finally:
            writer.close()
            self._open.discard(task)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._toxics.reset or self._toxics.down:
            writer.transport.abort()
            return
        if self._toxics.captive:
            await reader.read(CHUNK)
            writer.write(LOGIN)
            await writer.drain()
            return
        up, down = await asyncio.open_connection(*self._to)
        pumps = [
            asyncio.create_task(self._pump(reader, down, back=False)),
            asyncio.create_task(self._pump(up, writer, back=True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            down.close()

    async def _pump(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, back: bool) -> None:
        # Bounded: a sender that is faster waits, as with a full window.
        under_way: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue(AHEAD)
        writing = asyncio.create_task(self._deliver(under_way, to, back=back))
        free_at, held, passed = 0.0, 0.0, 0
        loop = asyncio.get_running_loop()
        try:
            while (data := await source.read(CHUNK)) and not writing.done():
                toxics, now = self._toxics, loop.time()
                passed += len(data)
                if back and toxics.limit and passed > toxics.limit:
                    return
                if toxics.rate:
                    free_at = max(free_at, now) + len(data) / toxics.rate
                at = max(now, free_at) + toxics.latency + toxics.jitter * self._chance.random()
                if toxics.stall and self._chance.random() < toxics.stall:
                    at += toxics.stall_s
                held = max(held, at)  # bytes keep their order
                await under_way.put((held, data))
            await under_way.put(None)
            await writing
        except OSError:
            pass
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _deliver(
        self,
        under_way: asyncio.Queue[tuple[float, bytes] | None],
        to: asyncio.StreamWriter,
        *,
        back: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        while (chunk := await under_way.get()) is not None:
            at, data = chunk
            if (wait := at - loop.time()) > 0:
                await asyncio.sleep(wait)
            while self._toxics.hole or (back and self._toxics.half):
                await self._changed.wait()
            to.write(bytes(b ^ 0x55 for b in data) if self._toxics.garble else data)
            await to.drain()


def parse(words: str) -> Toxics:
    """``latency=0.02 rate=8000 hole`` as toxics; no word: none.

    Raises:
        ValueError: a word is none of them.
    """
    kinds = {f.name: type(getattr(CLEAN, f.name)) for f in fields(Toxics)}
    toxics = CLEAN
    for word in words.split():
        name, _, value = word.partition("=")
        if name not in kinds:
            raise ValueError(f"{name!r} is none of {', '.join(kinds)}")
        kind = kinds[name]
        toxics = replace(toxics, **{name: True if kind is bool else kind(value)})
    return toxics


def timeline(text: str) -> list[tuple[float, Toxics]]:
    """``0 latency=0.02; 30 hole; 45 latency=0.02`` as (seconds, toxics)."""
    steps = [step.strip().partition(" ") for step in text.split(";") if step.strip()]
    return [(float(at), parse(words)) for at, _, words in steps]


async def main(listen: int, to: str, steps: list[tuple[float, Toxics]]) -> None:
    """Proxies until it is ended, through the steps from the first connection's beginning on."""
    host, _, port = to.rpartition(":")
    proxy = FaultProxy(host, int(port))
    print(f"proxy ready on 127.0.0.1:{await proxy.start(listen)}", flush=True)
    await proxy.connected.wait()
    began = asyncio.get_running_loop().time()
    for at, toxics in steps:
        await asyncio.sleep(max(0.0, began + at - asyncio.get_running_loop().time()))
        proxy.toxics = toxics
        print(f"{at:.1f} s: {toxics}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", type=int, default=0)
    parser.add_argument("--to", required=True)
    parser.add_argument("--timeline", type=timeline, default=[])
    chosen = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(main(chosen.listen, chosen.to, chosen.timeline))
