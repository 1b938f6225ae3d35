"""Replicas, nodes and releases that come and go under load: what a wearer notices of it."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

pytest.importorskip(
    "os1_cloud.ray.bench.front", reason="needs Ray: scripts/test-ray installs it and runs these tests"
)

from ray_world import SLOTS, Client, World, text, timeline, whole

from os1_cloud.places import Places
from os1_cloud.ray import pool
from os1_cloud.ray.bench.front import Told
from os1_cloud.ray.engine import RayVoice

WORDS = 12


async def load(client: Client, mark: str, during: Callable[[], None]) -> list[Told]:
    """Eight questions a second before, while and after `during` happens, in a thread: one replica can."""
    asked: list[asyncio.Future[Told]] = []

    async def ask(seconds: float, until: asyncio.Future[None] | None = None) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end or (until is not None and not until.done()):
            number = len(asked)
            call = client.ask(number, WORDS, request_id=f"{mark}{number}", session_id=f"{mark}{number % 20}")
            asked.append(asyncio.ensure_future(call))
            await asyncio.sleep(1 / 8)

    await ask(2.0)
    done = asyncio.ensure_future(asyncio.to_thread(during))
    await ask(4.0, done)
    await ask(2.0)
    await done
    return list(await asyncio.gather(*asked))


def test_an_answer_goes_on_at_the_other_replica_when_its_own_is_killed(world: World) -> None:
    async def story() -> None:
        await world.until_replicas(2)
        client = Client([world.door.address])
        asked = asyncio.ensure_future(client.ask(1, 400, session_id="s"))
        await world.until_at_work(1)
        [busy] = [state for state in await world.states() if state["at_work"]]
        os.kill(busy["pid"], signal.SIGKILL)
        told = await asked
        assert (told.code, told.text) == ("OK", text(400))
        await client.close()

    timeline(story)


def test_a_rolling_upgrade_fails_no_answer(world: World) -> None:
    async def story() -> None:
        await world.until_replicas(2)
        before = {state["pid"] for state in await world.states()}
        client = Client([world.door.address], connections=4)
        answers = await load(client, "u", lambda: world.deploy(token_s=0.021))
        assert {told.code for told in answers} == {"OK"}
        assert whole(answers, WORDS)
        await world.until_replicas(2)
        assert not before & {state["pid"] for state in await world.states()}
        await client.close()

    timeline(story)


def test_a_front_door_that_ends_lets_its_answers_end(world: World) -> None:
    async def story() -> None:
        client = Client([door.address])
        asked = asyncio.ensure_future(client.ask(1, 300))
        await world.until_at_work(1)
        assert await asyncio.to_thread(door.end) == 0
        told = await asked
        assert (told.code, told.text) == ("OK", text(300))
        await client.close()

    with world.front("ending") as door:
        timeline(story)


def test_a_replica_that_hangs_costs_no_answer_and_is_asked_again_when_it_is_back(world: World) -> None:
    async def story() -> None:
        await world.until_replicas(2)
        client = Client([world.door.address], connections=4)
        hung = (await world.states())[0]["pid"]

        def hang() -> None:
            os.kill(hung, signal.SIGSTOP)
            time.sleep(4.0)
            os.kill(hung, signal.SIGCONT)

        answers = await load(client, "h", hang)
        assert {told.code for told in answers} == {"OK"}
        assert whole(answers, WORDS)

        async def written() -> int:
            return next(state["written"] for state in await world.states() if state["pid"] == hung)

        now, number = await written(), 0
        while await written() == now:
            number += 1
            await client.ask(number, 3, request_id=f"hb{number}", session_id=f"hb{number}")
        await client.close()

    timeline(story)


def test_what_two_front_doors_let_in_together_waits_or_is_refused_and_is_never_called_lost(
    world: World,
) -> None:
    async def story() -> None:
        await world.until_replicas(2)
        client, answers = Client([one.address, other.address], connections=4), list[Told]()

        async def wearer(number: int) -> None:
            for turn in range(3):
                mark = f"two{number}-{turn}"
                told = await client.ask(number, 120, request_id=mark, session_id=mark)
                answers.append(told)
                await asyncio.sleep(told.retry_ms / 1000)

        await asyncio.gather(*(wearer(number) for number in range(3 * 2 * SLOTS)))
        refused = [told for told in answers if told.code != "OK"]
        assert {told.code for told in refused} <= {"RESOURCE_EXHAUSTED"}
        assert all(told.retry_ms for told in refused)
        assert len(answers) - len(refused) >= 2 * SLOTS
        assert whole(answers, 120)
        await client.close()

    with world.front("one") as one, world.front("other") as other:
        timeline(story)


def test_a_front_door_that_is_killed_costs_only_what_another_goes_on_with(world: World) -> None:
    async def story() -> None:
        client, answers, broken = Client([one.address, other.address]), list[Told](), list[str]()

        async def wearer(number: int) -> None:
            for turn in range(4):
                if (number, turn) == (0, 2):
                    one.end(signal.SIGKILL)
                mark = f"door{number}-{turn}"
                told = await client.ask(number, 40, request_id=mark, session_id=f"door{number}")
                if told.code != "OK":
                    broken.append(told.code)
                    left = 40 - told.text.count(" ")
                    rest = await client.ask(1, left, request_id=mark, answer_prefix=told.text)
                    told.text, told.code = told.text + rest.text, rest.code
                answers.append(told)

        await asyncio.gather(*(wearer(number) for number in range(SLOTS)))
        assert set(broken) == {"UNAVAILABLE"}
        assert {told.code for told in answers} == {"OK"}
        assert whole(answers, 40)
        await world.until_at_work(0)  # what the dead one had asked for has stopped too
        await client.close()

    with world.front("one") as one, world.front("other") as other:
        timeline(story)


def test_a_front_door_goes_on_counting_replicas_whatever_counting_them_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No cluster is asked: what its client raises on the way down is its own choice."""
    answers = [KeyError(), KeyError(), OSError(), {"m": 3}]

    def counted() -> dict[str, int]:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def story() -> None:
        there = pool.Pool(())
        handle = SimpleNamespace(options=lambda **_: None)
        there.engines["m"] = RayVoice("m", handle, {"slots": SLOTS, "rate": 8000})
        places = Places(SLOTS, 8)
        following = asyncio.ensure_future(there._follow({"m": places}))
        while places.slots == SLOTS and not following.done():  # noqa: ASYNC110 - another task's
            await asyncio.sleep(0.01)
        following.cancel()
        assert places.slots == 3 * SLOTS

    monkeypatch.setattr(pool, "_running", counted)
    monkeypatch.setattr(pool, "FOLLOW_S", 0.01)
    with caplog.at_level(logging.WARNING, pool.__name__):
        timeline(story)
    assert [record.args for record in caplog.records if record.name == pool.__name__] == [
        ("KeyError",),
        ("OSError",),
    ]
