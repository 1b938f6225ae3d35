"""Borrowing from the real gRPC server on a loopback port, and from ports where nobody answers."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import pytest

from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import EngineError as CloudEngineError
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.server import Address, Server
from os1_edge.clock import Clock
from os1_edge.offload.borrow import Borrowing
from os1_edge.offload.engine import EngineError, Message
from os1_edge.offload.remote import RemoteEngine

ASKED = [Message("system", "Be brief."), Message("user", "Where is my car?")]


class Counting:
    """Writes numbers, one every few milliseconds; breaks after ``breaks_after`` of them."""

    name, context_tokens = "counting", 1000

    def __init__(self, breaks_after: int = 10**9) -> None:
        self.breaks_after = breaks_after
        self.prompts: list[Prompt] = []
        self.at_work = 0

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        self.prompts.append(prompt)
        self.at_work += 1
        try:
            for number in range(prompt.max_tokens):
                if number == self.breaks_after:
                    raise CloudEngineError("out of memory")
                await asyncio.sleep(0.002)
                yield Piece(f"{number} ")
            yield Finished("length", 7, prompt.max_tokens)
        finally:
            self.at_work -= 1

    def close(self) -> None: ...


class Near:
    """The device's own."""

    name = "near"

    async def prime(self, messages: Sequence[Message]) -> None: ...

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        yield "from here"


@asynccontextmanager
async def serving(engine: Counting, tokens: Tokens | None = None) -> AsyncIterator[str]:
    server = Server(Answerer(engine), tokens)
    port = await server.start(Address("127.0.0.1", 0))
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.drain(0)


async def asked(
    address: str, token: str | None = None, *, budget_s: float = 5.0, tokens: int = 5
) -> tuple[str, str]:
    """(the answer, why it came from where it came)."""
    far = RemoteEngine(address, token, None, first_token_s=budget_s)
    here = Borrowing(Near(), far, Clock(), first_token_s=budget_s)
    try:
        async with aclosing(here.stream(ASKED, 5)) as stream:
            text = "".join([part async for part in stream])
        return text, here.decision.reason
    finally:
        await far.close()


def test_the_servers_answer_comes_through_word_by_word() -> None:
    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address:
            assert await asked(address) == ("0 1 2 3 4 ", "the offload server answered within the budget")
        (prompt,) = engine.prompts
        assert [(t.role, t.text) for t in prompt.turns] == [(m.role, m.text) for m in ASKED]

    asyncio.run(go())


def test_a_wrong_token_is_no_answer_and_the_device_speaks() -> None:
    async def go() -> None:
        tokens = Tokens({hashlib.sha256(b"right").hexdigest(): "ada"})
        async with serving(Counting(), tokens) as address:
            assert (await asked(address, "right"))[0].startswith("0 1")
            assert await asked(address, "wrong") == ("from here", "the offload server gave no answer")

    asyncio.run(go())


def test_a_port_that_takes_everything_and_says_nothing_costs_the_budget() -> None:
    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as hole:
            address = f"127.0.0.1:{hole.getsockname()[1]}"
            text, reason = await asked(address, budget_s=0.3)
        assert (text, reason) == ("from here", "the offload server said nothing for 0.3 s")

    asyncio.run(go())


def test_a_port_where_nobody_listens_is_no_answer() -> None:
    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            address = f"127.0.0.1:{gone.getsockname()[1]}"
        assert (await asked(address, budget_s=5.0))[0] == "from here"

    asyncio.run(go())


def test_an_answer_that_nobody_wants_any_more_is_not_written_on() -> None:
    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address:
            far = RemoteEngine(address, None, None, first_token_s=5.0)
            async with aclosing(far.stream(ASKED, 100_000)) as stream:
                await anext(stream)
                assert engine.at_work == 1
            for _ in range(2000):
                if not engine.at_work:
                    break
                await asyncio.sleep(0.005)
            assert engine.at_work == 0
            await far.close()

    asyncio.run(go())


def test_a_server_that_breaks_off_says_so_without_the_prompts_words() -> None:
    async def go() -> None:
        async with serving(Counting(breaks_after=2)) as address:
            with pytest.raises(EngineError) as told:
                await asked(address)
        assert str(told.value) == "offload server: internal"

    asyncio.run(go())
