"""The fleet of `os1 bench fleet --ray` before a front door: all are answered, and what it cost is known."""

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

from ray_world import World, timeline

from os1_edge.bench.fleet import Habits, drive
from os1_edge.offload.engine import Message


def test_a_front_door_answers_the_fleet_and_is_measured(world: World) -> None:
    habits = Habits((0.5,), (2,), ((Message("user", "How far can you count?"),),), 0.25)

    async def story() -> None:
        world.deploy()
        door = world.door
        load = await drive(door.address, habits, 4, 3.0, server_pid=door.process.pid)
        assert set(load.codes) == {"OK", "given up"}
        assert load.asked >= 20
        assert len(load.first_s) == load.asked
        assert load.server_cpu_s is not None
        assert load.machine_cpu_s is not None
        assert 0 < load.server_cpu_s <= load.machine_cpu_s
        assert load.kb > 0

    timeline(story)
