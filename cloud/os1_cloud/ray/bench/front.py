"""Front doors as an operator starts them, and a client that notes when each word came."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from os1_cloud.ray.bench.scripted import NAME
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2_grpc

READY_S = 240.0
REFUSAL = "os1-refusal-bin"
RETRYABLE = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED"})
"""Statuses with which a client asks again, or another server."""


class Front:
    """One running front door."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signals it and waits for its end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def front(
    address: str,
    folder: Path,
    slots: int,
    node: str = "front",
    *options: str,
    program: Sequence[str] = ("-m", "os1_cloud"),
) -> Iterator[Front]:
    """`os1 serve --ray` before the scripted deployment of a cluster; ended by its id.

    Args:
        address: of the cluster; its environment is this process's.
        folder: for its settings.
        slots: questions that a replica works on at a time.
        node: what it calls itself.
        options: more for the command line.
        program: what Python runs.
    """
    settings = folder / f"{node}.toml"
    settings.write_text(
        f'listen = "127.0.0.1:0"\nnode = "{node}"\nray = "{address}"\n'
        f'[[models]]\nkind = "upstream"\nname = "{NAME}"\nurl = "http://unused"\nslots = {slots}\n'
    )
    process = subprocess.Popen(
        [sys.executable, *program, "--config", str(settings), *options],
        stdout=subprocess.PIPE,
        stderr=(folder / f"{node}.log").open("w"),
        text=True,
        env=dict(os.environ),
    )
    try:
        yield Front(process, _ready(process, folder / f"{node}.log"))
    finally:
        process.kill()
        process.communicate()


def _ready(process: subprocess.Popen[str], log: Path) -> str:
    """Where it listens.

    Raises:
        RuntimeError: it does not.
    """
    assert process.stdout is not None
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if not select.select([process.stdout], [], [], 1.0)[0]:
            continue
        line = process.stdout.readline()
        if found := re.match(r"os1 serve: ready on (\S+) ", line):
            return found[1]
        if not line:
            break
    raise RuntimeError(f"the front door did not start: {log.read_text()[-800:]}")


@dataclass(slots=True)
class Told:
    """One answer as its client saw it. Times are seconds after it was asked."""

    words: list[float] = field(default_factory=list)
    """When each came."""
    text: str = ""
    code: str = ""
    """Status at the end."""
    retry_ms: int = 0
    """When to come back, where the server said so."""
    node: str = ""
    cached: int = 0
    """Tokens of the prompt that had been read before."""
    took: float = 0.0
    seq: int = 0
    """Of the last event."""
    again: bool = False
    """Whether its session had asked before."""
    began: float = 0.0
    """When it was asked, seconds of the machine's clock."""

    def ways(self) -> list[float]:
        """Seconds that each word of a stamped engine took from there to the client."""
        stamps = map(float, self.text.split())
        return [self.began + came - stamp for came, stamp in zip(self.words, stamps, strict=True)]


class Client:
    """Asks front doors. Inside a running event loop."""

    def __init__(self, addresses: Sequence[str], connections: int = 1) -> None:
        """`connections`: to each; wearers have one of their own each."""
        self._channels = [
            grpc.aio.insecure_channel(address, (("os1.channel", number),))
            for address in addresses
            for number in range(connections)
        ]
        self._mark = secrets.token_hex(4)
        self.assists = [assist_pb2_grpc.AssistStub(channel) for channel in self._channels]
        self.edges = [edge_pb2_grpc.EdgeStub(channel) for channel in self._channels]

    async def close(self) -> None:
        """Closes the connections."""
        for channel in self._channels:
            await channel.close()

    def id(self, number: int) -> str:
        """The request_id of a question, which no other client's has."""
        return f"{self._mark}-{number}"

    async def ask(self, number: int, max_tokens: int = 10, *, most: int = 10**9, **fields: Any) -> Told:
        """One question, read to its end or to `most` events.

        Args:
            number: of the question; also chooses the connection.
            max_tokens: words wanted.
            most: events after which it is left.
            fields: more of `AskRequest`.
        """
        fields.setdefault("request_id", self.id(number))
        turns = [pb.Turn(role=pb.ROLE_USER, text="hi")]
        request = pb.AskRequest(turns=turns, max_tokens=max_tokens, **fields)
        return await read(self.assists[number % len(self.assists)].Ask(request), most)


async def read(call: Any, most: int = 10**9) -> Told:
    """Reads an answer to its end, or to `most` events; then it is cancelled."""
    began = time.monotonic()
    told = Told(began=began)
    try:
        while told.seq < most and (event := await call.read()) is not grpc.aio.EOF:
            told.seq = event.seq
            match event.WhichOneof("event"):
                case "accepted":
                    told.node = event.accepted.node
                case "delta":
                    told.text += event.delta.text
                    told.words += [time.monotonic() - began] * event.delta.text.count(" ")
                case "done":
                    told.code, told.cached = "OK", event.done.cached_tokens
    except grpc.aio.AioRpcError as e:
        told.code = e.code().name
        for key, value in e.trailing_metadata() or ():
            if key == REFUSAL and isinstance(value, bytes):
                told.retry_ms = pb.Refusal.FromString(value).retry_after_ms
    finally:
        call.cancel()
    told.took = time.monotonic() - began
    return told


async def until(true: Any, seconds: float) -> bool:
    """Whether `true()` became so in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        await asyncio.sleep(0.02)
    return False
