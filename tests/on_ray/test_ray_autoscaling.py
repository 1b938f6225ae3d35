"""When more is asked than the replicas can answer, there are more of them."""

import asyncio

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

from ray_world import FIRST_S, TOKEN_S, Client, World, timeline

from os1_cloud.ray.bench import scripted
from os1_cloud.ray.pool import _running


def test_questions_that_wait_in_the_front_door_bring_another_replica(world: World) -> None:
    """One place, which is what Serve aims at: by what it sees itself, one replica is enough. None is refused,
    so no budget is missed either."""

    async def story() -> None:
        client = Client([door.address], connections=4)
        done = asyncio.Event()

        async def ask(number: int) -> None:
            count = 0
            while not done.is_set():
                count += 1
                told = await client.ask(number, 10, request_id=f"scale-{number}-{count}")
                assert told.code == "OK"

        asking = [asyncio.ensure_future(ask(number)) for number in range(4)]
        # Not asked of the replicas: that would be load itself.
        while (await asyncio.to_thread(_running))[scripted.NAME] != 2:  # noqa: ASYNC110 - other processes' state
            await asyncio.sleep(0.2)
        done.set()
        await asyncio.gather(*asking)
        await client.close()

    def deploy(**more: int) -> None:
        scripted.run(scripted.model(1, 1, 1.0, **more), FIRST_S, TOKEN_S)

    deploy()
    timeline(lambda: world.until_replicas(1))
    deploy(max=2)  # begins with as many as there are
    try:
        with world.front("scaled") as door:  # it learns how many places there are as it starts
            timeline(story)
    finally:
        world.deploy()
