"""When more is asked than the replicas can answer, there are more of them."""

import asyncio

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

from ray_world import Client, World, timeline


def test_questions_that_wait_in_the_front_door_bring_another_replica(world: World) -> None:
    async def story() -> None:
        client = Client([world.door.address], connections=4)
        done = asyncio.Event()

        async def ask(number: int) -> None:
            count = 0
            while not done.is_set():
                count += 1
                await client.ask(number, 10, request_id=f"scale-{number}-{count}")

        asking = [asyncio.ensure_future(ask(number)) for number in range(14)]
        await world.until_replicas(2)
        done.set()
        await asyncio.gather(*asking)
        await client.close()

    world.deploy(replicas=1)
    timeline(lambda: world.until_replicas(1))
    world.deploy(replicas=1, max=2)  # begins with as many as there are
    try:
        timeline(story)
    finally:
        world.deploy()
