"""For tests of the server: the real one on a loopback port, with an engine that the test drives."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc

from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.job import Pace
from os1_cloud.server import Address, Server
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2_grpc, speech_pb2_grpc

HERE = Address("127.0.0.1", 0)
PATIENCE_S = 20.0


class Scripted:
    """Writes one piece each time the test says `go`, and "." for the end; notes who is at work."""

    name, context_tokens = "scripted", 100

    def __init__(self) -> None:
        self.go: asyncio.Queue[str | Exception] = asyncio.Queue()
        self.at_work = self.most_at_work = self.begun = self.stopped = 0
        self.prompts: list[Prompt] = []

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        self.prompts.append(prompt)
        self.begun += 1
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        try:
            while (word := await self.go.get()) != ".":
                if isinstance(word, Exception):
                    raise word
                yield Piece(word)
            yield Finished("stop", 7, 3)
        finally:
            self.at_work -= 1
            self.stopped += 1

    def close(self) -> None:
        pass


class World:
    """A server with its engine and a client's channel."""

    def __init__(self, engine: Scripted, answerer: Answerer, server: Server, channel: Any) -> None:
        self.engine, self.answerer, self.server, self.channel = engine, answerer, server, channel
        self.assist = assist_pb2_grpc.AssistStub(channel)
        self.edge = edge_pb2_grpc.EdgeStub(channel)
        self.speech = speech_pb2_grpc.SpeechStub(channel)
        self.health = health_pb2_grpc.HealthStub(channel)

    def ask(self, request_id: str = "r", metadata: Any = None, **fields: Any) -> Any:
        fields.setdefault("turns", [pb.Turn(role=pb.ROLE_USER, text="Where are my keys?")])
        return self.assist.Ask(pb.AskRequest(request_id=request_id, **fields), metadata=metadata)


@asynccontextmanager
async def world(
    tokens: Tokens | None = None,
    *,
    heartbeat_s: float = 0.5,
    grace_s: float = 0.0,
    spread_s: float = 0.0,
    engine: Scripted | None = None,
    serve: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[World]:
    """A served engine and a client. `grace_s`: how long an answer that nobody reads goes on."""
    engine = engine or Scripted()
    answerer = Answerer(engine, pace=Pace(heartbeat_s, grace_s, spread_s), **options)
    server = Server(answerer, tokens, **(serve or {}))
    port = await server.start(HERE)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            yield World(engine, answerer, server, channel)
        finally:
            await server.drain(0)


def timeline(story: Callable[[], Awaitable[None]]) -> None:
    """Runs a test's story; one that hangs fails."""
    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - what is waited for is the server's own state
        await asyncio.sleep(0.005)


async def rest(call: Any) -> list[pb.AskEvent]:
    """The events from here to the end; raises how the call failed."""
    events: list[pb.AskEvent] = []
    while (event := await call.read()) is not grpc.aio.EOF:
        events.append(event)
    return events


async def kinds(call: Any) -> list[str | None]:
    return [event.WhichOneof("event") for event in await rest(call)]


async def refused(call: Any) -> tuple[Any, pb.Refusal]:
    """The status and the typed reason of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as found:
        await (kinds(call) if hasattr(call, "read") else call)
    trailing = dict(found.value.trailing_metadata() or ())
    return found.value.code(), pb.Refusal.FromString(trailing["os1-refusal-bin"])
