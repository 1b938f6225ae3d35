"""What a wearer's glasses make of it: their own router and client, before front doors, replicas and nodes
that are killed. Every question is answered in time, and each answer is one."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

pytest.importorskip(
    "os1_cloud.ray.bench.front", reason="needs Ray: scripts/test-ray installs it and runs these tests"
)

from ray_world import World, text, timeline

from os1_edge.clock import Clock
from os1_edge.offload.budget import budgets
from os1_edge.offload.engine import Message
from os1_edge.offload.network import Quiet
from os1_edge.offload.remote import RemoteEngine
from os1_edge.offload.router import Router
from os1_edge.offload.taken import Taken

ASKED = [Message("system", "Be brief."), Message("user", "How far can you count?")]
BUDGET_S = 3.0
"""Lax: what is tested is that nobody waits for what is gone, not how quick this machine is."""
SLOW_S, QUICK_S, WORD_S = 30.0, 0.1, 0.02
WEARERS, WORDS = 6, 12
RETRYABLE = ("unreachable", "busy", "late", "ending", "gone")


class Device:
    """Counts on behind a last message of the assistant's."""

    name = "device"

    def __init__(self, first_s: float) -> None:
        self.first_s = first_s

    async def prime(self, messages: Sequence[Message]) -> None: ...

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        said = messages[-1].text.count(" ") if messages[-1].role == "assistant" else 0
        await asyncio.sleep(self.first_s)
        for number in range(said, said + max_tokens):
            yield f"{number} "
            await asyncio.sleep(WORD_S)


@asynccontextmanager
async def glasses(doors: Sequence[Any], first_s: float, seed: int = 1) -> AsyncIterator[Router]:
    """A wearer's router, whose device has its first word after ``first_s``; it knows the server."""
    far = RemoteEngine(",".join(door.address for door in doors), None, around=Quiet())
    router = Router(Device(first_s), far, Clock(), times=budgets(BUDGET_S), chance=random.Random(seed))
    try:
        router.wearer_speaks()
        assert router.watch is not None
        while router.watch.offers is None:  # noqa: ASYNC110 - another task's
            await asyncio.sleep(0.02)
        yield router
    finally:
        await router.close()


async def asked(
    router: Router, words: int, then: Callable[[], Awaitable[None]] | None = None
) -> tuple[Taken, int]:
    """One question; ``then`` happens when a quarter of the answer is there. What was decided, and how many
    words were heard."""
    router.wearer_speaks()
    heard = ""
    async with aclosing(router.stream(ASKED, words)) as answer:
        async for part in answer:
            heard += part
            if then is not None and heard.count(" ") >= words // 4:
                await then()
                then = None
    assert heard == text(heard.count(" "))  # nothing twice, nothing left out, nothing begun anew
    return router.journal.taken[-1], heard.count(" ")


def test_an_answer_goes_on_at_the_other_front_door_when_its_own_is_killed(world: World) -> None:
    async def story() -> None:
        async def killed() -> None:
            one.end(9)

        async with glasses((one, world.door), SLOW_S) as router:
            taken, words = await asked(router, 200, killed)
            assert (taken.answered, words >= 150) == ("cloud", True)
            assert taken.outcome == "it broke off, and a server that was told so far went on"
            assert (await asked(router, WORDS))[0].answered == "cloud"
            await world.until_at_work(0)  # nor is anything left of what the dead one had asked for

    with world.front("killed") as one:
        timeline(story)


def test_whatever_is_killed_every_question_is_answered_in_time_and_whole(world: World) -> None:
    """A replica, then a front door, then a node, while six wearers talk."""
    node = world.cluster.add(1)
    world.deploy(replicas=3)

    async def story() -> None:
        await world.until_replicas(3)
        done = asyncio.Event()
        made: list[tuple[Taken, int]] = []

        async def wearer(number: int) -> None:
            async with glasses((one, world.door), QUICK_S, number) as router:
                while not done.is_set():
                    made.append(await asked(router, WORDS))
                    await asyncio.sleep(0.1)

        talking = [asyncio.ensure_future(wearer(number)) for number in range(WEARERS)]
        await asyncio.sleep(1.0)
        os.kill((await world.states())[0]["pid"], signal.SIGKILL)
        await asyncio.sleep(2.0)
        one.end(9)
        await asyncio.sleep(2.0)
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(4.0)
        before = len(made)
        while not any(taken.answered == "cloud" for taken, _ in made[before:]):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        done.set()
        await asyncio.gather(*talking)
        assert all(taken.first_s is not None and taken.first_s <= BUDGET_S for taken, _ in made)
        assert all(words >= WORDS for _, words in made)
        failed = [taken.outcome for taken, _ in made if "the server failed" in taken.outcome]
        assert all(any(f"({kind})" in outcome for kind in RETRYABLE) for outcome in failed)

    try:
        with world.front("lost") as one:
            timeline(story)
    finally:
        world.deploy()
        timeline(lambda: world.until_replicas(2))
