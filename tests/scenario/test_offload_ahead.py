"""The server reads along while the wearer speaks, if it may, and stops when the question is there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge import clock
from os1_edge.clock import Clock
from os1_edge.offload.ahead import LONGEST_S, PAUSE_S
from os1_edge.offload.budget import Budget
from os1_edge.offload.engine import Message
from os1_edge.offload.far import (
    Accepted,
    FarError,
    Finished,
    Probed,
    Question,
    Step,
    Stranger,
    TaskLoad,
    Text,
)
from os1_edge.offload.link import Link
from os1_edge.offload.network import Quiet
from os1_edge.offload.route import FRESH, MARGIN_S, Cloud, Job, Local, Rules, State, decide, reads_ahead
from os1_edge.offload.router import Router

READ_S = 2.0
"""Of the server, for a prompt."""


class Server:
    """Answers at once, reads a prime for a while."""

    name = "server"

    def __init__(self) -> None:
        self.around = Quiet()
        self.primes: list[Question] = []
        self.cancelled: list[str] = []
        self.reading = 0
        self.busy = self.away = False
        self.read_s = READ_S

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        yield Step(1, Accepted())
        if question.prime:
            self.primes.append(question)
            self.reading += 1
            try:
                await asyncio.sleep(self.read_s)
            finally:
                self.reading -= 1
            if self.busy:
                raise FarError("busy", "it makes way")  # nobody is to hear of it
            yield Step(2, Finished())
            return
        await asyncio.sleep(0.1)
        yield Step(2, Text("Here."))
        yield Step(3, Finished())

    async def cancel(self, request_id: str, node: str) -> None:
        self.cancelled.append(request_id)

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        await asyncio.sleep(0.02)
        if self.away:
            raise FarError("unreachable", "no way")
        return Probed(0.02, padding, loads={"reply": TaskLoad(0.0, 0.1, 0.01)})

    async def diagnose(self, timeout_s: float) -> Stranger:
        return ""

    async def close(self) -> None: ...


class Device:
    """Reads a token in 2 ms."""

    name, sees = "device", False

    def __init__(self) -> None:
        self.read = 0

    async def prime(self, messages: list[Message]) -> None:
        self.read += 1
        await asyncio.sleep(0.002 * sum(len(m.text) for m in messages) / 4)

    async def stream(self, *_: object, **__: object) -> AsyncGenerator[str, None]:
        await asyncio.sleep(0.2)
        yield "there"


def said(words: int) -> list[Message]:
    return [Message("system", "You are OS-1. " * 20), Message("user", "where " * words)]


def lived(story: Callable[[Router, Server, Device], Awaitable[None]], budget_s: float = 0.6) -> None:
    """A story with a router whose server answered a probe."""

    async def go() -> None:
        server, device = Server(), Device()
        times = dict.fromkeys(("reply", "caption", "context", "plan", "consolidate"), Budget(budget_s, 30.0))
        router = Router(device, server, Clock(), Rules(), times, chance=random.Random(0))  # type: ignore[arg-type]
        router.wearer_speaks()
        await asyncio.sleep(3.0)
        await story(router, server, device)
        await router.close()

    clock.run(go(), virtual=True)


async def answered(router: Router, messages: list[Message]) -> str:
    async with aclosing(router.stream(messages, 8)) as parts:
        return "".join([part async for part in parts])


def test_the_server_reads_along_and_is_stopped_when_the_question_is_there() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        await router.prime(said(3))
        await asyncio.sleep(0.5)
        assert (len(server.primes), server.reading) == (1, 1)
        assert "where" not in "".join(m.text for m in server.primes[0].messages)  # for whom?
        assert server.primes[0].messages[0] == said(3)[0]
        assert server.primes[0].budget.total_s == LONGEST_S
        assert await answered(router, said(4)) == "Here."
        assert server.reading == 0
        assert server.cancelled == [server.primes[0].request_id]

    lived(story)


def test_words_that_come_while_it_reads_start_no_second_reading_and_failures_are_silent() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        server.busy = True
        for words in range(3, 8):
            await router.prime(said(words))
            await asyncio.sleep(0.35)
            assert server.reading <= 1
        assert len(server.primes) == 1
        await asyncio.sleep(READ_S + PAUSE_S)
        await router.prime(said(9))
        await asyncio.sleep(0.1)
        assert len(server.primes) == 2

    lived(story)


def test_what_the_server_has_read_is_not_sent_again() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        for words in range(3, 8):
            await router.prime(said(words))
            await asyncio.sleep(READ_S + PAUSE_S)
        assert len(server.primes) == 1
        await router.prime([*said(3), Message("assistant", "Here."), Message("user", "and")])
        await asyncio.sleep(0.1)
        assert [m.role for m in server.primes[1].messages] == ["system", "user", "assistant", "user"]

    lived(story)


@pytest.mark.parametrize("why", ["private", "costs", "policy", "local_only"])
def test_nothing_is_read_ahead_elsewhere_that_may_not_leave(why: str) -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        match why:
            case "private":
                router.private = True
            case "costs":
                assert router.watch is not None
                router.watch.told_costs(True)
                await asyncio.sleep(0.5)
            case "policy":
                router.rules = Rules("prefer-private")
            case _:
                router.rules = Rules(local_only={"reply"})
        await router.open(said(1))
        await router.prime(said(3))
        await asyncio.sleep(0.5)
        assert server.primes == []
        assert device.read

    lived(story)


def test_what_is_being_read_stops_when_the_wearer_goes_private() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        await router.prime(said(3))
        await asyncio.sleep(0.2)
        router.private = True
        await router.prime(said(4))
        await asyncio.sleep(0.2)
        assert server.reading == 0

    lived(story)


def test_the_device_does_not_read_what_it_could_still_read_after_the_server_failed() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        await router.prime(said(3))
        await asyncio.sleep(READ_S)
        read = device.read  # its pace is known now
        assert await answered(router, said(4)) == "Here."
        for words in range(5, 8):
            await router.prime(said(words))
        await asyncio.sleep(0.1)
        assert device.read == read

    lived(story, budget_s=5.0)


def test_the_server_has_read_what_every_prompt_begins_with_before_the_wearer_says_a_word() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        await router.open(said(1))
        await asyncio.sleep(READ_S)
        assert [q.messages[0] for q in server.primes] == [said(1)[0]]
        await router.open(said(1))
        await router.prime(said(3))
        await asyncio.sleep(READ_S)
        assert len(server.primes) == 1  # the same beginning

    lived(story)


def test_a_server_that_is_away_at_the_start_reads_the_beginning_when_it_comes() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        server.away = True
        other = Router(device, server, Clock(), Rules(), chance=random.Random(0))  # type: ignore[arg-type]
        await other.open(said(1))
        other.wearer_speaks()
        await asyncio.sleep(5.0)
        assert server.primes == []
        server.away = False
        await asyncio.sleep(2.0)
        assert len(server.primes) == 1
        await other.close()

    lived(story)


def test_a_slow_server_that_still_reads_the_beginning_is_not_waited_for_and_reads_on() -> None:
    async def story(router: Router, server: Server, device: Device) -> None:
        server.read_s = 20.0
        await router.open(said(1))
        await asyncio.sleep(8.0)
        began = asyncio.get_running_loop().time()
        assert await answered(router, said(3)) == "there"
        assert asyncio.get_running_loop().time() - began < 1.0  # of five that the server might have had
        assert (server.reading, server.cancelled) == (1, [])
        await asyncio.sleep(15.0)
        assert await answered(router, said(3)) == "Here."

    lived(story, budget_s=5.0)


SURE = State(
    Rules(), Link.ONLINE, Local(0.0, 0.001, 0.0, 0.0), Cloud(0.02, 0.0, 1e6, 1e6, 0.0, 0.1, 0.2, True, 0.1)
)


@given(st.integers(0, 3000), st.floats(0.1, 6.0), st.booleans(), st.booleans())
def test_the_device_leaves_out_only_what_its_promise_does_not_need(
    tokens: int, within: float, known: bool, metered: bool
) -> None:
    assert SURE.cloud is not None
    state = replace(SURE, cloud=replace(SURE.cloud, known=known), metered=metered)
    job, budget = Job("reply", tokens, 1000), Budget(within, 30.0)
    here, there = reads_ahead(state, job, budget)
    decision = decide(state, job, budget)
    assert there == (
        decide(state, replace(job, tokens=min(tokens, FRESH)), budget).route == "cloud" and not metered
    )
    if not here:
        assert decision.cloud_high_s is not None
        assert known
        assert decision.cloud_high_s + state.local.p95_s(job) + MARGIN_S <= within
