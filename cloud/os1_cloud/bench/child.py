"""The measured process: the server with a scripted engine, and a bare gRPC echo beside it to compare with.

Prints a line of JSON with its ports, then one with its state for each line on its standard input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc

from os1_cloud.address import Address
from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import Prompt, Turn
from os1_cloud.engines.scripted import Scripted
from os1_cloud.metrics import Metrics
from os1_cloud.server import OPTIONS, Server

HERE = Address("127.0.0.1", 0)
DIRECT = 200
"""Answers asked of the engine without a server."""


async def main(spec: dict[str, Any]) -> None:
    """Serves until standard input ends."""
    engine = Scripted(spec["first_s"], spec["token_s"], spec["slots"], stamped=spec.get("stamped", False))
    metrics = Metrics()
    answerer = Answerer(engine, queue=spec["queue"], watchers=[metrics])
    tokens = Tokens(spec["tokens"]) if spec["tokens"] else None
    server = Server(answerer, tokens, watchers=[metrics])
    echo, echo_port = await _echo()
    ports = {"port": await server.start(HERE), "echo": echo_port}
    print(json.dumps(ports), flush=True)
    source = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(source), sys.stdin)
    while line := await source.readline():
        state: dict[str, Any] = {"live": answerer.live, "kept": answerer.kept, "at_work": engine.at_work}
        gc.collect()
        state |= {"tasks": len(asyncio.all_tasks()), "busy": answerer.places["scripted"].busy}
        state |= {"rss": _rss(), "written": engine.written}
        if line.strip() == b"direct":
            state["direct"] = [await _direct(engine) for _ in range(DIRECT)]
        print(json.dumps(state), flush=True)
    await server.drain(0)
    await echo.stop(0)


async def _direct(engine: Scripted) -> float:
    """Seconds to the engine's first text, without a server."""
    began = time.perf_counter()
    async with aclosing(engine.generate(Prompt((Turn("user", "hi"),), 1))) as parts:
        await anext(parts)
        return time.perf_counter() - began


async def _echo() -> tuple[grpc.aio.Server, int]:
    """The least that grpc.aio can do: sends back what it gets, once or as two messages of a stream."""
    server = grpc.aio.server(options=OPTIONS)

    async def one(request: bytes, context: Any) -> bytes:
        return request

    async def two(request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield request
        yield request

    handlers: dict[str, Any] = {
        "One": grpc.unary_unary_rpc_method_handler(one),
        "Two": grpc.unary_stream_rpc_method_handler(two),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Echo", handlers),))
    port = server.add_insecure_port(str(HERE))
    await server.start()
    return server, port


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
