"""For tests on Ray: two nodes of real processes, front doors as operators start them, and a client."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import ray
from ray import serve

from os1_cloud.ray.bench import scripted
from os1_cloud.ray.bench.cluster import Cluster
from os1_cloud.ray.bench.front import Client, Front, Told, front
from os1_cloud.ray.deploy import APP
from os1_cloud.ray.pool import connect

PATIENCE_S = 120.0
SLOTS = 4
FIRST_S, TOKEN_S = 0.02, 0.02


_JOINING = """
import functools, runpy
import os1_cloud.ray.pool as pool
pool.ray.init = functools.partial(pool.ray.init, _node_ip_address="{}")
runpy.run_module("os1_cloud", run_name="__main__", alter_sys=True)
"""


class World:
    """The cluster, and what is deployed on it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self._door = self.front()
        self.door: Front

    def open(self) -> None:
        """Opens the front door of all tests that end none."""
        self.door = self._door.__enter__()

    def close(self) -> None:
        """Leaves the cluster; a second time it does nothing."""
        self._door.__exit__(None, None, None)
        ray.shutdown()

    def front(self, node: str = "front", *options: str) -> AbstractContextManager[Front]:
        return front(self.cluster.address, self.folder, SLOTS, node, *options)

    def front_at(self, host: str, node: str) -> AbstractContextManager[Front]:
        """One that joins the node with this address: of several on a machine Ray would take the head."""
        program = ("-c", _JOINING.format(host))
        return front(self.cluster.address, self.folder, SLOTS, node, program=program)

    def deploy(
        self, replicas: int = 2, token_s: float = TOKEN_S, one_a_node: bool = False, **more: Any
    ) -> None:
        told = {"max_replicas_per_node": 1, "max_surge_percent": 0} if one_a_node else {}
        scripted.run(scripted.model(replicas, SLOTS, 1.0, **more), FIRST_S, token_s, **told)

    async def states(self) -> list[dict[str, Any]]:
        """What each replica does."""
        handle = serve.get_app_handle(APP + scripted.NAME)
        return list(await handle.broadcast("state").results_async(timeout_s=PATIENCE_S))

    async def at_work(self) -> int:
        return sum(state["at_work"] for state in await self.states())

    async def until_at_work(self, number: int) -> None:
        while await self.at_work() != number:  # noqa: ASYNC110 - other processes' state
            await asyncio.sleep(0.02)

    async def until_replicas(self, number: int) -> None:
        while len(await self.states()) != number:  # noqa: ASYNC110 - other processes' state
            await asyncio.sleep(0.1)

    async def until_told(self, figure: str, least: float) -> None:
        """Until a replica has so much of what front doors tell for the autoscaler, which reads it too."""
        handle = serve.get_app_handle(APP + scripted.NAME)
        while True:
            told = await handle.broadcast("record_autoscaling_stats").results_async(timeout_s=PATIENCE_S)
            if max(each[figure] for each in told) >= least:
                return
            await asyncio.sleep(0.05)


def joined(cluster: Cluster, folder: Path) -> World:
    connect(cluster.address)
    world = World(cluster, folder)
    world.deploy()
    world.open()
    return world


_LOOP = asyncio.new_event_loop()
"""Of all stories. It never rests: what Serve tells a handle whose loop does is lost for good."""
threading.Thread(target=_LOOP.run_forever, name="stories", daemon=True).start()


def timeline(story: Callable[[], Awaitable[None]], patience_s: float = PATIENCE_S) -> None:
    """Runs a test's story; one that hangs fails."""
    asyncio.run_coroutine_threadsafe(asyncio.wait_for(story(), patience_s), _LOOP).result()


def text(words: int, start: int = 0) -> str:
    return "".join(f"{number} " for number in range(start, words))


def whole(answers: Iterable[Told], words: int) -> bool:
    """Whether those that were answered have all their words."""
    return all(told.text == text(words) for told in answers if told.code == "OK")


__all__ = ["APP", "Client", "World", "joined", "text", "timeline", "whole"]
