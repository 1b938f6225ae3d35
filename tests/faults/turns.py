"""Turns over a real link: our server over TLS, a proxy that spoils the way, the router, a scripted device.

Both sides write the same numbered words, so that an answer that is doubled, cut or out of order shows.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxy import CLEAN, FaultProxy, Toxics

from os1_cloud.core import Answerer
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.server import Address, Server, read_tls
from os1_edge.clock import Clock
from os1_edge.offload.budget import budgets
from os1_edge.offload.channels import Trust
from os1_edge.offload.engine import Message
from os1_edge.offload.journal import Journal
from os1_edge.offload.network import Quiet
from os1_edge.offload.remote import RemoteEngine
from os1_edge.offload.route import Decision
from os1_edge.offload.router import Router

WORDS = 12
ANSWER = "".join(f"w{n} " for n in range(WORDS))
ASKED = [Message("system", "Be brief."), Message("user", "Where is my car?")]


def certificate(folder: Path, also: str = "") -> tuple[Path, Path]:
    """A new certificate for localhost, and ``also``, signed by itself, and its key.

    Raises:
        RuntimeError: there is no openssl command.
    """
    if shutil.which("openssl") is None:
        raise RuntimeError("needs the openssl command to make a certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    san = [
        "-subj",
        "/CN=localhost",
        "-addext",
        f"subjectAltName=DNS:localhost{also}",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run([*make.split(), *san], check=True, capture_output=True, timeout=60)
    return cert, key


@dataclass
class Scripted:
    """The server's model: first word after ``first_s``, the others ``word_s`` apart."""

    first_s: float = 0.1
    word_s: float = 0.02
    jitter_s: float = 0.0
    name: str = "scripted"
    context_tokens: int = 4000
    slots: int = 64
    at_work: int = 0
    asked: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it is at work."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        self.at_work += 1
        self.asked += 1
        self.begun.set()
        try:
            await asyncio.sleep(self.first_s + self.jitter_s * random.random())
            for number in range(prompt.prefix.count(" "), WORDS):
                yield Piece(f"w{number} ")
                await asyncio.sleep(self.word_s)
            yield Finished("stop", 7, WORDS)
        finally:
            self.at_work -= 1
            if not self.at_work:
                self.begun.clear()

    def close(self) -> None: ...


@dataclass
class Device:
    """The device's model; goes on behind a last message of the assistant's."""

    first_s: float = 0.15
    word_s: float = 0.02
    jitter_s: float = 0.0
    name: str = "device"
    at_work: int = 0
    asked: int = 0

    async def prime(self, messages: Sequence[Message]) -> None: ...

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        self.at_work += 1
        self.asked += 1
        said = len(messages[-1].text.split()) if messages[-1].role == "assistant" else 0
        try:
            await asyncio.sleep(self.first_s + self.jitter_s * random.random())
            for number in range(said, WORDS):
                yield f"w{number} "
                await asyncio.sleep(self.word_s)
        finally:
            self.at_work -= 1


@dataclass
class Turn:
    """One question and what came of it; seconds."""

    at_s: float
    first_s: float
    text: str
    side: str
    reason: str
    both: bool
    outcome: str = ""


@dataclass(kw_only=True)
class Wearer:
    """Somebody who asks."""

    device: Device
    router: Router
    turns: list[Turn] = field(default_factory=list)

    async def ask(self) -> Turn:
        """One turn: the wearer speaks, then waits."""
        loop = asyncio.get_running_loop()
        self.router.wearer_speaks()
        began, first, text = loop.time(), 0.0, ""
        async with aclosing(self.router.stream(ASKED, 64)) as stream:
            async for part in stream:
                first = first or loop.time() - began
                text += part
        taken = self.router.journal.taken[-1]
        turn = Turn(
            began, first, text, taken.answered, self.router.decision.reason, taken.both, taken.outcome
        )
        self.turns.append(turn)
        return turn

    async def talk(self, turns: int, every_s: float = 0.3) -> list[Turn]:
        """That many turns."""
        made = []
        for _ in range(turns):
            made.append(await self.ask())
            await asyncio.sleep(every_s)
        return made

    async def settled(self) -> None:
        """Until the link is known to work, and what the server is."""
        self.router.wearer_speaks()
        watch = self.router.watch
        for _ in range(400):
            if watch is not None and watch.state == "online" and watch.offers is not None:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("the link was never found to work")


@dataclass(kw_only=True)
class Line(Wearer):
    """Everything between a wearer and a server."""

    proxy: FaultProxy
    engine: Scripted
    far: RemoteEngine
    server: Server
    port: int


@asynccontextmanager
async def wearer(
    server: str, trust: Trust, device: Device, first_token_s: float = 0.6
) -> AsyncIterator[Wearer]:
    """Who asks ``server``."""
    far = RemoteEngine(server, None, trust, Quiet())
    router = Router(device, far, Clock(), times=budgets(first_token_s), chance=random.Random(1))
    try:
        yield Wearer(device=device, router=router)
    finally:
        await router.close()


@asynccontextmanager
async def line(
    tls: tuple[Path, Path],
    toxics: Toxics = CLEAN,
    *,
    engine: Scripted | None = None,
    device: Device | None = None,
    first_token_s: float = 0.6,
    journal: Journal | None = None,
) -> AsyncIterator[Line]:
    """A server, a proxy before it and a router behind it; all ended at the end."""
    engine, device = engine or Scripted(), device or Device()
    server = Server(Answerer(engine), tls=read_tls(*tls))
    port = await server.start(Address("127.0.0.1", 0))
    proxy = FaultProxy("127.0.0.1", port, toxics)
    await proxy.start()
    trust: Any = Trust(tls[0].read_bytes())
    far = RemoteEngine(f"localhost:{proxy.port}", None, trust, Quiet())
    router = Router(
        device,
        far,
        Clock(),
        times=budgets(first_token_s),
        chance=random.Random(1),
        journal=journal,
    )
    made = Line(device=device, router=router, proxy=proxy, engine=engine, far=far, server=server, port=port)
    try:
        yield made
    finally:
        await router.close()
        await proxy.close()
        await server.drain(0)


async def hedged(tls: tuple[Path, Path], asks: int, at_once: int = 12) -> dict[str, float]:
    """That many questions, each begun on both sides; what is left of them afterwards."""
    engine, device = Scripted(0.01, 0.001, jitter_s=0.03), Device(0.0, 0.001, jitter_s=0.5)
    both = Decision("cloud", "both sides, on purpose", hedge_at=0.0, rung=-1, cloud_high_s=1.0)
    async with line(tls, engine=engine, device=device) as it:
        await it.settled()
        it.router._decide = lambda *_: both  # type: ignore[method-assign]
        await asyncio.gather(*(it.ask() for _ in range(at_once)))  # connections, threads, caches
        await asyncio.sleep(0.2)
        it.turns.clear()
        tasks, memory = len(asyncio.all_tasks()), _rss()
        grew = [memory]
        for _ in range(asks // at_once):
            await asyncio.gather(*(it.ask() for _ in range(at_once)))
            grew.append(_rss())
        for _ in range(300):
            if not engine.at_work and not device.at_work and len(asyncio.all_tasks()) <= tasks:
                break
            await asyncio.sleep(0.02)
        sides = [t.side for t in it.turns]
        return {
            "asks": len(sides),
            "both": sum(t.both for t in it.turns),
            "won by the server": sides.count("cloud"),
            "won by the device": sides.count("local"),
            "doubled or cut": sum(t.text != ANSWER for t in it.turns),
            "live at the server": engine.at_work,
            "live on the device": device.at_work,
            "tasks left": max(len(asyncio.all_tasks()) - tasks, 0),
            "rss MB at first": round(memory / 1e6, 1),
            "rss MB at half": round(grew[len(grew) // 2] / 1e6, 1),
            "rss MB at last": round(_rss() / 1e6, 1),
        }


def _rss() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
