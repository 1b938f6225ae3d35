"""The client of the real gRPC server on a loopback port, and of ports where nobody answers."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import grpc
import pytest

from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import EngineError as CloudEngineError
from os1_cloud.engines import EngineLost, Finished, Piece, Prompt
from os1_cloud.job import Pace
from os1_cloud.server import Address, Server
from os1_edge.offload.budget import Budget
from os1_edge.offload.channels import addresses
from os1_edge.offload.engine import EngineError, Message
from os1_edge.offload.far import FarError, Question, Text
from os1_edge.offload.network import Quiet
from os1_edge.offload.remote import RemoteEngine

ASKED = (Message("system", "Be brief."), Message("user", "Where is my car?"))


class Counting:
    """Writes numbers, one every few milliseconds; breaks after ``breaks_after`` of them."""

    name, context_tokens, vision, slots = "counting", 1000, False, 4

    def __init__(self, breaks_after: int = 10**9, lost: bool = False) -> None:
        self.breaks_after, self.lost = breaks_after, lost
        self.pauses = False
        """Writes no more than one."""
        self.prompts: list[Prompt] = []
        self.at_work = 0

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        self.prompts.append(prompt)
        self.at_work += 1
        try:
            for number in range(prompt.max_tokens):
                if number == self.breaks_after:
                    raise (
                        EngineLost("its machine is gone") if self.lost else CloudEngineError("out of memory")
                    )
                await asyncio.sleep(1e6 if self.pauses and number else 0.002)
                yield Piece(f"{number} ")
            yield Finished("length", 7, prompt.max_tokens)
        finally:
            self.at_work -= 1

    def close(self) -> None: ...


@asynccontextmanager
async def serving(engine: Counting, tokens: Tokens | None = None, grace_s: float = 2.0) -> AsyncIterator[str]:
    server = Server(Answerer(engine, pace=Pace(grace_s=grace_s)), tokens)
    port = await server.start(Address("127.0.0.1", 0))
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.drain(0)


@asynccontextmanager
async def client(address: str, token: str | None = None) -> AsyncIterator[RemoteEngine]:
    far = RemoteEngine(address, token, around=Quiet())
    try:
        yield far
    finally:
        await far.close()


def question(tokens: int = 5, total_s: float = 20.0) -> Question:
    return Question("q1", ASKED, tokens, Budget(5.0, total_s))


async def text(far: RemoteEngine, asked: Question) -> str:
    async with aclosing(far.ask(asked)) as steps:
        return "".join([s.event.text async for s in steps if isinstance(s.event, Text)])


async def failure(address: str, token: str | None = None, total_s: float = 20.0) -> FarError:
    """How a question fails there."""
    async with client(address, token) as far:
        with pytest.raises(FarError) as told:
            await text(far, question(total_s=total_s))
    return told.value


def test_the_servers_answer_comes_through_word_by_word() -> None:
    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address, client(address) as far:
            assert await text(far, question()) == "0 1 2 3 4 "
        (prompt,) = engine.prompts
        assert [(t.role, t.text) for t in prompt.turns] == [(m.role, m.text) for m in ASKED]

    asyncio.run(go())


def test_a_wrong_token_is_told_apart_from_a_link_that_broke() -> None:
    async def go() -> None:
        tokens = Tokens({hashlib.sha256(b"right").hexdigest(): "ada"})
        async with serving(Counting(), tokens) as address:
            async with client(address, "right") as far:
                assert (await text(far, question())).startswith("0 1")
            assert (await failure(address, "wrong")).kind == "refused"

    asyncio.run(go())


def test_a_port_that_takes_everything_and_says_nothing_ends_with_the_budget() -> None:
    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as hole:
            address = f"127.0.0.1:{hole.getsockname()[1]}"
            assert (await failure(address, total_s=0.3)).kind == "unreachable"

    asyncio.run(go())


def test_a_port_where_nobody_listens_is_unreachable_at_once() -> None:
    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            address = f"127.0.0.1:{gone.getsockname()[1]}"
        assert (await failure(address)).kind == "unreachable"

    asyncio.run(go())


def test_an_answer_that_is_cancelled_is_not_written_on() -> None:
    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address, client(address) as far:
            async with aclosing(far.ask(question(100_000))) as steps:
                while not isinstance((await anext(steps)).event, Text):
                    pass
                assert engine.at_work == 1
            await far.cancel("q1", "")
            assert engine.at_work == 0

    asyncio.run(go())


def test_a_server_that_breaks_off_says_so_without_the_prompts_words() -> None:
    async def go() -> None:
        async with serving(Counting(breaks_after=2)) as address:
            found = await failure(address)
        assert (found.kind, str(found)) == ("broken", "offload server: internal")

    asyncio.run(go())


def test_a_lost_engine_behind_a_good_link_is_not_taken_for_a_lost_link() -> None:
    async def go() -> None:
        async with serving(Counting(breaks_after=2, lost=True)) as address:
            found = await failure(address)
        assert (found.kind, str(found)) == ("gone", "offload server: unavailable")

    asyncio.run(go())


def test_an_answer_is_picked_up_where_it_broke_off() -> None:
    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address, client(address) as far:
            seen: list[str] = []
            last = 0
            async with aclosing(far.ask(question(60))) as steps:
                async for step in steps:
                    last = step.seq
                    if isinstance(step.event, Text):
                        seen.append(step.event.text)
                    if len(seen) == 3:
                        break
            async with aclosing(far.resume("q1", "", last + 1)) as steps:
                seen += [s.event.text async for s in steps if isinstance(s.event, Text)]
        assert "".join(seen) == "".join(f"{n} " for n in range(60))
        assert len(engine.prompts) == 1

    asyncio.run(go())


def test_a_probe_measures_the_way_over_a_connection_of_its_own() -> None:
    async def go() -> None:
        async with serving(Counting()) as address, client(address) as far:
            for fresh in (True, False, True):
                found = await far.probe(4096, 5.0, fresh=fresh)
                assert (found.padding, found.draining) == (4096, False)
                assert 0 < found.rtt_s < 5.0
            assert await text(far, question()) == "0 1 2 3 4 "

    asyncio.run(go())


def test_an_address_without_a_port_is_told_at_once() -> None:
    with pytest.raises(EngineError, match="write HOST:PORT"):
        RemoteEngine("example.org", None)


@pytest.mark.parametrize("server", ["here:1,there", "here:1,", "[::1]", ",".join(["here:1"] * 17)])
def test_a_list_of_addresses_with_a_wrong_one_is_told_at_once(server: str) -> None:
    with pytest.raises(EngineError, match=r"write HOST:PORT|name 16 at most"):
        RemoteEngine(server, None)


@pytest.mark.parametrize(
    ("server", "here"),
    [
        ("localhost:1", True),
        ("127.0.0.2:1", True),
        ("[::1]:1", True),
        ("127.0.0.1.example.org:1", False),
        ("10.0.0.1:1", False),
        ("[2001:db8::1]:1", False),
    ],
)
def test_only_this_machine_is_spoken_to_in_plain_text(server: str, here: bool) -> None:
    (found,) = addresses(server)
    assert (str(found), found.here) == (server, here)


def test_a_server_is_asked_what_it_is_once_a_connection_and_not_with_the_first_probe() -> None:
    async def go() -> None:
        async with serving(Counting()) as address, client(address) as far:
            assert (await far.probe(0, 5.0, fresh=True)).offers is None  # the link is known to work sooner
            found = (await far.probe(0, 5.0)).offers
            assert found is not None
            assert (found.models, found.turns) == (("counting",), 64)
            assert {"resume", "answer_prefix", "prime"} <= found.features
            assert "images" not in found.features
            at = far._channels.pair.greeted_at
            assert (await far.probe(0, 5.0)).offers == found
            assert far._channels.pair.greeted_at == at

    asyncio.run(go())


def test_what_was_said_goes_along_and_is_not_said_again() -> None:
    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address, client(address) as far:
            await text(far, replace(question(), request_id="q1.1", prefix="0 1 ", attempt=1))
        assert [p.prefix for p in engine.prompts] == ["0 1 "]

    asyncio.run(go())


def test_what_was_said_is_not_sent_to_a_server_that_does_not_go_on_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os1_cloud.servicer.FEATURES", ("resume",))

    async def go() -> None:
        engine = Counting()
        async with serving(engine) as address, client(address) as far:
            with pytest.raises(FarError) as told:
                await text(far, replace(question(), prefix="0 1 ", attempt=1))
            assert (told.value.kind, engine.prompts) == ("unfit", [])

    asyncio.run(go())


def test_a_caption_whose_cancel_was_lost_ends_when_the_next_is_asked() -> None:
    async def go() -> None:
        engine = Counting()
        engine.vision = engine.pauses = True
        async with serving(engine, grace_s=60.0) as address, client(address) as far:
            await far.probe(0, 5.0)
            for number in range(3):  # the server goes on with a call that is only dropped
                asked = Question(f"c{number}", ASKED, 9, Budget(60.0, 90.0), "caption")
                async with aclosing(far.ask(asked)) as steps:
                    while not isinstance((await anext(steps)).event, Text):
                        pass
                    await settled(lambda: engine.at_work == 1)

    asyncio.run(go())


def test_an_answer_is_found_where_only_the_other_connection_leads() -> None:
    """Behind one name there may be several servers; each connection may end at another."""

    async def go() -> None:
        one, two = Counting(), Counting()
        async with serving(one) as address, serving(two) as other, client(address) as far:
            far._channels.pair.control = grpc.aio.insecure_channel(other)
            async with aclosing(far.ask(question(100_000))) as steps:
                while not isinstance((await anext(steps)).event, Text):
                    pass
            async with aclosing(far.resume("q1", "", 2)) as steps:
                assert isinstance((await anext(steps)).event, Text)
                await far.cancel("q1", "")
                assert (one.at_work, two.prompts) == (0, [])

    asyncio.run(go())


async def settled(true: Callable[[], bool]) -> None:
    """Waits until something is so; it never is: the test fails."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - the server's own state
            await asyncio.sleep(0.005)


def test_the_servers_spans_are_children_of_the_glasses_own() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="spans need the extra otel")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from os1_cloud.tracing import Spans as CloudSpans
    from os1_edge.offload.spans import Spans

    def collected() -> tuple[InMemorySpanExporter, TracerProvider]:
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return exporter, provider

    async def go() -> tuple[InMemorySpanExporter, InMemorySpanExporter]:
        (there, far_provider), (here, near_provider) = collected(), collected()
        server = Server(Answerer(Counting(), watchers=[CloudSpans(far_provider)]))
        port = await server.start(Address("127.0.0.1", 0))
        far = RemoteEngine(f"127.0.0.1:{port}", None, around=Quiet(), spans=Spans(near_provider))
        try:
            assert await text(far, question(3)) == "0 1 2 "
            with pytest.raises(FarError):
                await text(far, Question("q2", (), 3, Budget(5.0, 20.0)))
        finally:
            await server.drain(0)
            await far.close()
        return here, there

    here, there = asyncio.run(go())
    asked, refused = here.get_finished_spans()
    (ask,) = [s for s in there.get_finished_spans() if s.name == "ask"]
    assert ask.parent is not None
    assert ask.parent.span_id == asked.context.span_id
    assert ask.context.trace_id == asked.context.trace_id
    assert [e.name for e in asked.events] == ["gen_ai.first_chunk"]
    assert not refused.status.is_ok
    assert "Where is my car" not in asked.to_json()
