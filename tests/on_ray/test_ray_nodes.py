"""Machines that are lost, or cut off without a word, and the head: what a wearer and an operator notice."""

import asyncio
import signal
from collections.abc import Callable

import pytest

pytest.importorskip(
    "os1_cloud.ray.bench.front", reason="needs Ray: scripts/test-ray installs it and runs these tests"
)

from ray_world import SLOTS, Client, World, timeline, whole

from os1_cloud.ray.bench.front import RETRYABLE, Told, until

WORDS = 5


async def asked(client: Client, mark: str, calls: int, at: dict[int, Callable[[], None]]) -> list[Told]:
    """`calls` questions by as many wearers as one replica has places for; each waits for its answer. `at`:
    what happens, in a thread, once so many have been asked."""
    answers: list[Told] = []
    numbers, happening = iter(range(calls)), []

    async def wearer() -> None:
        for number in numbers:
            if number in at:
                happening.append(asyncio.ensure_future(asyncio.to_thread(at[number])))
            ask = client.ask(number, WORDS, request_id=f"{mark}{number}", session_id=f"{mark}{number % 20}")
            answers.append(await ask)

    await asyncio.gather(*(wearer() for _ in range(SLOTS)))
    await asyncio.gather(*happening)
    return answers


def test_a_machine_that_is_cut_off_costs_no_answer_and_is_asked_again_when_it_is_back(world: World) -> None:
    apart = world.cluster.apart
    if apart is None:
        pytest.skip("needs a network namespace (root, `ip` and `tc`)")

    async def story() -> None:
        await world.until_replicas(2)
        there = world.cluster.nodes[1].processes()
        before = {state["pid"]: state["written"] for state in await world.states()}
        [far] = before.keys() & there
        client = Client([world.door.address], connections=4)
        answers = await asked(client, "cut", 150, {30: apart.cut, 140: apart.mend})
        assert {told.code for told in answers} == {"OK"}
        assert whole(answers, WORDS)

        async def written() -> int:
            return next(state["written"] for state in await world.states() if state["pid"] == far)

        now, number = await written(), 0
        while await written() == now:
            number += 1
            told = await client.ask(number, WORDS, request_id=f"back{number}", session_id=f"back{number}")
            assert told.code == "OK"
        await client.close()

    world.deploy(one_a_node=True)
    try:
        timeline(story)
    finally:
        apart.mend()
        world.deploy()


def test_a_node_that_is_killed_among_500_calls_costs_at_most_five_and_those_can_be_asked_again(
    world: World,
) -> None:
    async def story() -> None:
        await world.until_replicas(2)
        client = Client([world.door.address], connections=4)
        answers = await asked(client, "node", 500, {200: world.cluster.nodes[1].kill})
        failed = [told for told in answers if told.code != "OK"]
        assert len(answers) == 500
        assert len(failed) <= 5
        assert {told.code for told in failed} <= RETRYABLE
        assert all(told.retry_ms for told in failed)
        assert whole(answers, WORDS)
        await client.close()

    timeline(story)
    timeline(lambda: world.until_replicas(2))  # the lost one is back, on the machine that is left


@pytest.mark.last
def test_while_the_head_is_lost_answers_go_on_and_the_front_door_says_so_and_can_be_ended(
    world: World,
) -> None:
    """Ends the cluster: conftest runs it last."""
    node = world.cluster.add(4)  # a rollout needs room for more than it ends with
    world.deploy(replicas=4)
    host = world.cluster.add(0, near=True).host

    async def story() -> None:
        client = Client([door.address], connections=4)
        long = [asyncio.ensure_future(client.ask(n, 150, session_id=f"long{n}")) for n in range(SLOTS)]
        await asyncio.sleep(1.0)  # of the three that they take
        await asyncio.to_thread(head.kill)
        answers = await asked(client, "lost", 60, {})
        assert {told.code for told in await asyncio.gather(*long)} == {"OK"}
        assert whole([told.result() for told in long], 150)
        assert whole(answers, WORDS)
        assert "OK" in {told.code for told in answers} <= RETRYABLE | {"OK"}
        log = world.folder / "apart.log"
        assert await until(lambda: "the head does not answer" in log.read_text(), 30.0)
        await client.close()

    head = world.cluster.nodes[0]
    with world.front_at(host, "apart") as door:
        timeline(lambda: world.until_replicas(4))
        assert node.processes()
        world.close()  # this process has its node there too
        timeline(story)
        assert door.end(signal.SIGTERM) == 0
