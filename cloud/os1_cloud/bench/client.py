"""Starts the measured process and asks it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2_grpc

TOKEN = "bench"
CHANNELS = 8
"""Connections: wearers have one each, a benchmark shares them."""


class Served:
    """The measured process and channels to it."""

    def __init__(self, process: asyncio.subprocess.Process, channels: list[Any], echo: Any) -> None:
        self._process, self.echo = process, echo
        self.assists = [assist_pb2_grpc.AssistStub(channel) for channel in channels]
        self.edge = edge_pb2_grpc.EdgeStub(channels[0])
        self.metadata = (("authorization", f"Bearer {TOKEN}"),)

    async def state(self, word: str = "state") -> dict[str, Any]:
        """What the process tells about itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n".encode())
        return dict(json.loads(await self._process.stdout.readline()))

    def ask(self, number: int, max_tokens: int, **fields: Any) -> Any:
        """One question; the call."""
        request = pb.AskRequest(
            request_id=f"q{number}",
            turns=[pb.Turn(role=pb.ROLE_USER, text="hi")],
            max_tokens=max_tokens,
            **fields,
        )
        return self.assists[number % len(self.assists)].Ask(request, metadata=self.metadata)


@asynccontextmanager
async def served(
    first_s: float = 0.0, token_s: float = 0.02, slots: int = 1, queue: int = 4, *, stamped: bool = False
) -> AsyncIterator[Served]:
    """A server with a scripted engine, in a process of its own."""
    spec: dict[str, Any] = {"first_s": first_s, "token_s": token_s, "slots": slots, "queue": queue}
    spec["stamped"] = stamped
    spec["tokens"] = {hashlib.sha256(TOKEN.encode()).hexdigest(): "bench"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "os1_cloud.bench.child", json.dumps(spec), stdin=pipe, stdout=pipe
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        ports = json.loads(await process.stdout.readline())
        channels = [
            grpc.aio.insecure_channel(f"127.0.0.1:{ports['port']}", (("os1.channel", number),))
            for number in range(CHANNELS)
        ]
        echo = grpc.aio.insecure_channel(f"127.0.0.1:{ports['echo']}")
        yield Served(process, channels, echo)
        for channel in (*channels, echo):
            await channel.close()
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except TimeoutError:
            process.kill()


@dataclass(slots=True)
class Answer:
    """How one answer came, seconds."""

    first_s: float | None = None
    tokens: int = 0
    code: str = ""


async def read(call: Any, began: float, until: float | None = None, most: int = 10**9) -> Answer:
    """Reads a call to its end, to `most` events, or to `until` (time.perf_counter); then it is cancelled."""
    answer, seen = Answer(), 0
    alarm = None
    if until is not None:
        alarm = asyncio.get_running_loop().call_later(until - time.perf_counter(), call.cancel)
    try:
        while seen < most:
            event = await call.read()
            if event is grpc.aio.EOF:
                answer.code = "OK"
                break
            seen += 1
            if text := event.delta.text:
                answer.first_s = time.perf_counter() - began if answer.first_s is None else answer.first_s
                answer.tokens += text.count(" ")
    except asyncio.CancelledError:
        if not call.cancelled():
            raise
        answer.code = "stopped"
    except grpc.aio.AioRpcError as e:
        answer.code = e.code().name
    finally:
        if alarm is not None:
            alarm.cancel()
        call.cancel()
    return answer
