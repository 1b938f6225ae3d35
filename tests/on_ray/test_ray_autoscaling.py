"""When more is asked than the replicas can answer, there are more of them."""

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

from ray_world import Client, World, timeline

from os1_proto.assist.v1 import assist_pb2 as pb


@pytest.fixture
def scaled(world: World) -> Iterator[World]:
    """One replica, and room for a second."""
    world.deploy(replicas=1)
    timeline(lambda: world.until_replicas(1))
    world.deploy(replicas=1, max=2)  # begins with as many as there are
    yield world
    world.deploy()


@asynccontextmanager
async def asking(world: World, mark: str, **fields: Any) -> Any:
    """Fourteen clients, who ask again as soon as they are answered."""
    client, done = Client([world.door.address], connections=4), asyncio.Event()

    async def ask(number: int) -> None:
        count = 0
        while not done.is_set():
            count += 1
            await client.ask(number, 10, request_id=f"{mark}-{number}-{count}", **fields)
            await asyncio.sleep(0.01)

    tasks = [asyncio.ensure_future(ask(number)) for number in range(14)]
    yield
    done.set()
    await asyncio.gather(*tasks)
    await client.close()


def test_questions_that_wait_in_the_front_door_are_told_of_and_bring_another_replica(scaled: World) -> None:
    """Both: Serve sees what is at work by itself, and scales by that as well."""

    async def story() -> None:
        async with asking(scaled, "scale"):
            await scaled.until_told("os1_waiting", 1.0)
            await scaled.until_replicas(2)

    timeline(story)


def test_budgets_that_are_missed_in_the_front_door_are_told_of(world: World) -> None:
    async def story() -> None:
        async with asking(world, "missed", budget=pb.Budget(first_token_ms=60)):
            await world.until_told("os1_missed", 0.2)

    timeline(story)
