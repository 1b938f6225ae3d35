"""How far Serve is with a question, without a cluster: Ray's own router, and stand-ins for replicas."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

from ray.serve._private.common import DeploymentHandleSource, DeploymentID, ReplicaID
from ray.serve._private.request_router.common import PendingRequest
from ray_world import timeline

from os1_cloud.engines import EngineBusy, Finished, Piece, Prompt, Turn
from os1_cloud.ray import parcels, routing
from os1_cloud.ray.engine import RayEngine
from os1_cloud.ray.router import Router

FACTS = {"slots": 1, "context_tokens": 100, "vision": False}
PROMPT = Prompt((Turn("user", "Hi"),), 4)
DONE = (parcels.DONE, "stop", 1, 4, 0)


class Answers:
    """A Serve handle; each question has the next of `answers`."""

    def __init__(self, *answers: AsyncIterator[Any]) -> None:
        self.answers, self.asked, self.cancelled = iter(answers), list[dict[str, Any]](), 0

    def options(self, **_: Any) -> "Answers":
        return self

    def remote(self, question: dict[str, Any], pressure: Any) -> Any:
        self.asked.append(question)
        self.parts = next(self.answers)
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)  # as what comes over a network
        return await anext(self.parts)

    def cancel(self) -> None:
        self.cancelled += 1


async def said(engine: RayEngine) -> list[Piece | Finished]:
    return [part async for part in engine.generate(PROMPT)]


def test_an_answer_whose_replica_cancels_it_goes_on_elsewhere_and_our_own_cancel_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routing, "SILENCE_S", 0.2)

    async def stopped() -> AsyncIterator[Any]:
        yield "0 "
        raise asyncio.CancelledError  # as Serve hands on what a replica's own work ended with

    async def rest() -> AsyncIterator[Any]:
        yield "1 "
        yield DONE

    async def silent() -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield DONE

    async def story() -> None:
        handle = Answers(stopped(), rest(), silent())
        engine = RayEngine("m", handle, FACTS)
        parts = []
        async for part in engine.generate(PROMPT):
            parts.append(part)
            await asyncio.sleep(0.3)  # whoever reads takes longer than silence is borne
        assert "".join(part.text for part in parts if isinstance(part, Piece)) == "0 1 "
        assert handle.asked[1]["prefix"] == "0 "
        asking = asyncio.ensure_future(said(engine))
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        assert (len(handle.asked), handle.cancelled) == (3, 3)

    timeline(story)


def test_waiting_for_a_place_is_refused_as_busy_and_a_replica_that_says_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routing, "SILENCE_S", 1.0)
    monkeypatch.setattr("os1_cloud.ray.engine.WAIT_S", 0.3)
    avoided = list[str]()
    router: Any = SimpleNamespace(on_replica_actor_unavailable=avoided.append)

    async def queued() -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield DONE

    async def at(replica: str, trip: routing.Trip) -> AsyncIterator[Any]:
        trip.sent(router, replica)
        trip.queued()  # it was full
        await asyncio.sleep(1.2)  # longer than silence is borne
        trip.sent(router, replica)
        if replica == "silent":
            await asyncio.sleep(60)
        yield "0 "
        yield DONE

    class Routed(Answers):
        def remote(self, question: dict[str, Any], pressure: Any) -> Any:
            trip = routing._TRIP.get()
            assert trip is not None
            self.answers = iter([at("silent" if not self.asked else "well", trip)])
            return super().remote(question, pressure)

    async def story() -> None:
        with pytest.raises(EngineBusy, match="no place"):
            await said(RayEngine("m", Answers(queued()), FACTS))
        assert not avoided
        monkeypatch.setattr("os1_cloud.ray.engine.WAIT_S", 3600.0)
        handle = Routed()
        parts = await said(RayEngine("m", handle, FACTS))
        assert [type(part) for part in parts] == [Piece, Finished]
        assert (avoided, len(handle.asked)) == (["silent"], 2)

    timeline(story)


def test_a_silent_replica_is_gone_round_until_one_question_finds_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def question() -> PendingRequest:
        metadata = SimpleNamespace(session_id="ann", internal_request_id="1", multiplexed_model_id="")
        return PendingRequest([], {}, metadata)

    async def idle(deadline_s: float) -> int:
        return 0

    async def story() -> None:
        model = DeploymentID("m", "os1-m")
        router = Router(model, DeploymentHandleSource.UNKNOWN)
        router.initialize_state(num_fallback_replicas=8)
        there = [
            SimpleNamespace(replica_id=ReplicaID(name, model), max_ongoing_requests=1, get_queue_len=idle)
            for name in "abc"
        ]
        router.update_replicas(there)

        async def ranked() -> list[Any]:
            return [rank[0].replica_id for rank in await router.choose_replicas(there, question())]

        first, *others = await ranked()
        assert len(others) == 2
        router.on_replica_actor_unavailable(first)
        assert await ranked() == others
        monkeypatch.setattr(routing, "AVOID_S", -1.0)  # its time is up at once
        router.on_replica_actor_unavailable(first)
        monkeypatch.undo()
        assert await ranked() == [first, *others]  # this question tries it
        assert await ranked() == others  # the next does not, as long as nothing is heard
        router.on_request_routed(question(), first, None)
        assert await ranked() == [first, *others]
        for each in (first, *others):
            router.on_replica_actor_unavailable(each)
        assert await ranked() == [first, *others]  # there is no other way

    timeline(story)
