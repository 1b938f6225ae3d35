"""The same server on two machines: what a wearer and an operator notice while all goes well."""

import asyncio

import pytest

pytest.importorskip(
    "os1_cloud.ray.bench.front", reason="needs Ray: scripts/test-ray installs it and runs these tests"
)

from ray_world import SLOTS, Client, World, text, timeline

from os1_cloud.ray.bench.front import read
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2


def test_answers_come_through_the_front_door_and_sessions_find_what_was_read(world: World) -> None:
    async def story() -> None:
        client = Client([world.door.address])
        hello = await client.edges[0].Hello(edge_pb2.HelloRequest())
        assert [m.name for m in hello.models] == ["scripted"]
        assert hello.node == "front"
        load = (await client.edges[0].Probe(edge_pb2.ProbeRequest())).load
        assert load.slots == 2 * SLOTS

        for number in range(12):
            told = await client.ask(number, 5, session_id=f"wearer-{number}")
            assert (told.code, told.text, told.node, told.cached) == ("OK", text(5), "front", 0)
        assert all(state["written"] for state in await world.states())  # both replicas had some of them
        again = [await client.ask(100 + n, 5, session_id=f"wearer-{n}") for n in range(12)]
        assert all(told.cached for told in again)
        await client.close()

    timeline(story)


def test_two_front_doors_send_a_session_to_the_same_replica(world: World) -> None:
    async def story() -> None:
        client = Client([one.address, other.address])
        for number in range(8):
            await client.ask(2 * number, 2, session_id=f"moving-{number}")
            told = await client.ask(2 * number + 1, 2, session_id=f"moving-{number}")
            assert told.cached
        await client.close()

    with world.front("one") as one, world.front("other") as other:
        timeline(story)


def test_a_session_whose_replica_is_full_is_answered_by_the_other(world: World) -> None:
    async def story() -> None:
        client = Client([world.door.address], connections=4)
        before = {state["pid"]: state["written"] for state in await world.states()}
        asked = [client.ask(n, 150, session_id="all-the-same") for n in range(2 * SLOTS)]
        assert {told.text for told in await asyncio.gather(*asked)} == {text(150)}
        wrote = [state["written"] - before[state["pid"]] for state in await world.states()]
        assert wrote == [150 * SLOTS, 150 * SLOTS]
        await client.close()

    timeline(story)


def test_more_than_can_wait_is_refused_with_when_to_come_back(world: World) -> None:
    async def story() -> None:
        client = Client([world.door.address], connections=4)
        await client.ask(0, 20)  # so that it is known how long one takes
        answers = await asyncio.gather(*(client.ask(1 + n, 50) for n in range(60)))
        refused = [told for told in answers if told.code != "OK"]
        assert len(answers) - len(refused) >= 2 * SLOTS
        assert refused
        assert {told.code for told in refused} == {"RESOURCE_EXHAUSTED"}
        assert all(told.retry_ms for told in refused)
        late = await asyncio.gather(
            *(client.ask(100 + n, 50, budget=pb.Budget(first_token_ms=300)) for n in range(60))
        )
        assert {told.code for told in late} >= {"OK", "DEADLINE_EXCEEDED"}
        await client.close()

    timeline(story)


def test_a_cancel_and_a_client_that_leaves_stop_the_engine_on_the_other_machine(world: World) -> None:
    async def story() -> None:
        client = Client([world.door.address])
        asked = asyncio.ensure_future(client.ask(1, 5000))
        await world.until_at_work(1)
        reply = await client.assists[0].Cancel(pb.CancelRequest(request_id=client.id(1)))
        assert reply.stopped
        assert (await asked).code == "CANCELLED"
        await world.until_at_work(0)
        assert (await client.ask(2, 1000, most=4)).words  # leaves in the middle
        await world.until_at_work(0)  # nobody reads: after the grace
        await client.close()

    timeline(story)


def test_a_broken_answer_is_resumed_where_it_lies_and_elsewhere_asked_on_with_what_was_spoken(
    world: World,
) -> None:
    async def story() -> None:
        client = Client([one.address, other.address])
        told = await client.ask(0, 60, most=10)
        rest = await read(
            client.assists[0].Resume(pb.ResumeRequest(request_id=client.id(0), from_seq=told.seq + 1))
        )
        assert told.text + rest.text == text(60)
        told = await client.ask(2, 500, most=10)
        assert told.node == "one"
        one.end(9)
        resume = pb.ResumeRequest(request_id=client.id(2), from_seq=told.seq + 1)
        assert (await read(client.assists[1].Resume(resume))).code == "NOT_FOUND"
        rest = await client.ask(1, 20, request_id=client.id(2), answer_prefix=told.text)
        assert rest.code == "OK"
        spoken = told.text.count(" ")
        assert told.text + rest.text == text(spoken + 20)
        await world.until_at_work(0)  # what the dead front door had asked for has stopped too
        await client.close()

    with world.front("one") as one, world.front("other") as other:
        timeline(story)
