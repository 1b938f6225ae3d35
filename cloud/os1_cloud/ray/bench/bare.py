"""The least that two steps of gRPC cost: a server with the scripted engine, one that hands its words on.

No tokens, no queue, nothing kept: a front door before Ray is measured against it. As a script it is either
server.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc

from os1_cloud.engines import Piece, Prompt, Turn
from os1_cloud.engines.scripted import Scripted
from os1_cloud.ray.bench.front import Told

_METHOD = "/Bare/Ask"


@asynccontextmanager
async def hops(first_s: float, token_s: float) -> AsyncIterator[Any]:
    """Two servers in processes of their own; the stub of the second, which asks the first."""
    pipe, started = asyncio.subprocess.PIPE, list[asyncio.subprocess.Process]()
    try:
        told = [str(first_s), str(token_s)]
        for _ in range(2):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, *told, stdin=pipe, stdout=pipe
            )
            started.append(process)
            assert process.stdout is not None
            told = [(await process.stdout.readline()).decode().strip()]
        async with grpc.aio.insecure_channel(told[0]) as channel:
            yield channel.unary_stream(_METHOD)
    finally:
        for process in started:
            process.kill()
            await process.wait()


async def ask(stub: Any, words: int) -> Told:
    """One answer of so many words, read to its end."""
    began = time.monotonic()
    told = Told(began=began, code="OK")
    async for word in stub(str(words).encode()):
        told.words.append(time.monotonic() - began)
        told.text += word.decode()
    return told


def _answers(engine: Scripted) -> Any:
    async def answer(request: bytes, context: Any) -> AsyncIterator[bytes]:
        async with aclosing(engine.generate(Prompt((Turn("user", "hi"),), int(request)))) as parts:
            async for part in parts:
                if isinstance(part, Piece):
                    yield part.text.encode()

    return answer


def _hands_on(stub: Any) -> Any:
    async def on(request: bytes, context: Any) -> AsyncIterator[bytes]:
        async for word in stub(request):
            yield word

    return on


async def _serve(told: list[str]) -> None:
    """`told`: the engine's times, or the address of the server that has it."""
    if len(told) == 1:
        answer = _hands_on(grpc.aio.insecure_channel(told[0]).unary_stream(_METHOD))
    else:
        answer = _answers(Scripted(float(told[0]), float(told[1]), stamped=True))
    server = grpc.aio.server()
    handler: Any = grpc.unary_stream_rpc_method_handler(answer)
    service, name = _METHOD.strip("/").split("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1:]))
