"""Deciding where an answer is made, and the way to a server that is on this machine: what the wire costs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple

from os1_edge.bench.route import measure as decisions
from os1_edge.bench.stage import Reading, Setting, Stage, Unavailable, Work
from os1_edge.bench.stages.loop import runner
from os1_edge.offload.budget import Budget
from os1_edge.offload.channels import Trust
from os1_edge.offload.engine import Message
from os1_edge.offload.far import Question, Text
from os1_edge.offload.network import Quiet
from os1_edge.offload.remote import RemoteEngine

TOKEN = "bench"
UPLOADS_KB = (20, 60, 240)
"""What pictures weigh: one on a poor link, one as usual, four. They go as a probe's padding, because the
scripted engine takes no pictures: the way and the messages are the same."""


class Served(NamedTuple):
    """A server in a process of its own."""

    address: str
    echo: str
    """Of a bare gRPC echo beside it."""
    pid: int


@contextmanager
def server(
    first_s: float = 0.0, token_s: float = 0.0, slots: int = 4, tokens: Sequence[str] = (TOKEN,)
) -> Iterator[Served]:
    """A server with a scripted engine. Each token is a wearer's.

    Raises:
        Unavailable: the server's side is not installed, or did not start.
    """
    if find_spec("os1_cloud") is None or find_spec("grpc_health") is None:
        raise Unavailable("the server's side is not installed; run: pip install 'os1[cloud]'")
    spec = {"first_s": first_s, "token_s": token_s, "slots": slots, "queue": 64}
    known = {hashlib.sha256(token.encode()).hexdigest(): f"w{n}" for n, token in enumerate(tokens)}
    command = [sys.executable, "-m", "os1_cloud.bench.child", json.dumps({**spec, "tokens": known})]
    with started(command, "the server did not start; run: python -m os1_cloud.bench overhead", 10.0) as (
        told,
        pid,
    ):
        yield Served(f"127.0.0.1:{told['port']}", f"127.0.0.1:{told['echo']}", pid)


@contextmanager
def started(command: Sequence[str], otherwise: str, end_s: float) -> Iterator[tuple[dict[str, Any], int]]:
    """A process that serves until its input ends: the line of JSON that it says first, and its id.

    Args:
        command: to start it.
        otherwise: what is said if it ends without that line.
        end_s: it has this long to end by itself.

    Raises:
        Unavailable: it did not start.
    """
    pipe = subprocess.PIPE
    # In a session of its own: a terminal's Ctrl-C is for the bench, which then ends what it started.
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            if not (line := process.stdout.readline()):
                raise Unavailable(otherwise)
            yield json.loads(line), process.pid
        finally:
            process.stdin.close()  # it ends when its input does
            try:
                process.wait(end_s)
            except subprocess.TimeoutExpired:
                process.kill()


async def first_text_s(far: RemoteEngine) -> float:
    """Seconds until the first text of an answer that is there at once."""
    messages = [Message("system", "You are OS-1. " * 40), Message("user", "Where is my car?")]
    question = Question(uuid.uuid4().hex, messages, 1, Budget(5.0, 10.0))
    began, first = perf_counter(), 0.0
    async with aclosing(far.ask(question)) as steps:
        async for step in steps:
            if isinstance(step.event, Text) and not first:
                first = perf_counter() - began
    return first


@contextmanager
def _wire(_: Setting) -> Iterator[Work]:
    loop = runner()
    with server() as served:
        far = loop.run(connected(served.address))

        async def once() -> Sequence[float]:
            trips = [(await far.probe(1000 * kb, 5.0)).rtt_s for kb in (0, *UPLOADS_KB)]
            return tuple(1000 * seconds for seconds in (await first_text_s(far), *trips))

        yield lambda: loop.run(once())
        loop.run(far.close())


async def connected(address: str) -> RemoteEngine:
    """A client of the scripted server, with its channels open."""
    far = RemoteEngine(address, TOKEN, Trust(), Quiet())
    await far.probe(0, 5.0, fresh=True)
    return far


@contextmanager
def _router(_: Setting) -> Iterator[Work]:
    async def once() -> Sequence[float]:
        found = await decisions(200)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()  # its router looks for a server; this loop goes on, and others are measured on it
        return found["decide_us"], found["whole_us"]

    yield lambda: runner().run(once())


def stages() -> list[Stage]:
    """All of them."""
    wire = (
        Reading("grpc, first text", of={"figure": "first text"}),
        Reading("grpc, round trip", of={"figure": "round trip", "upload_kb": 0}),
        *(Reading(f"grpc, {kb} kB sent", of={"figure": "round trip", "upload_kb": kb}) for kb in UPLOADS_KB),
    )
    return [
        Stage(
            "router",
            "offload",
            (Reading("router, the rule", "us"), Reading("router, a whole decision", "us")),
            _router,
            repeats=10,
            within_s=1.0,
        ),
        Stage("grpc", "offload", wire, _wire, repeats=30, warm=3, ready_s=1.5),
    ]
