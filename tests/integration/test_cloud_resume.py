"""A link that breaks in the middle of an answer: joined, resumed, cancelled, superseded."""

import asyncio
import hashlib
from typing import Any

import grpc
from cloud_world import PATIENCE_S, Scripted, World, kinds, refused, rest, timeline, until, world

from os1_cloud.admission import Budget, Refused
from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import Prompt, Turn
from os1_cloud.events import Ask
from os1_cloud.wearers import WearerLimits
from os1_proto.assist.v1 import assist_pb2 as pb


async def begun(w: World, *words: str, **fields: Any) -> Any:
    """A question whose first words have come."""
    call = w.ask(**fields)
    assert (await call.read()).WhichOneof("event") == "accepted"
    for word in words:
        w.engine.go.put_nowait(word)
        assert (await call.read()).delta.text == word
    return call


def resumed(w: World, from_seq: int, request_id: str = "r", metadata: Any = None) -> Any:
    return w.assist.Resume(pb.ResumeRequest(request_id=request_id, from_seq=from_seq), metadata=metadata)


async def cancelled(w: World, request_id: str = "r", metadata: Any = None) -> bool:
    reply = await w.assist.Cancel(pb.CancelRequest(request_id=request_id), metadata=metadata)
    return bool(reply.stopped)


def test_an_answer_whose_call_broke_off_goes_on_where_it_was() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, grace_s=PATIENCE_S) as w:
            call = await begun(w, "By", " the")
            call.cancel()
            w.engine.go.put_nowait(" door")
            w.engine.go.put_nowait(".")
            events = await rest(resumed(w, 4))
            assert [(e.seq, e.delta.text) for e in events[:-1]] == [(4, " door")]
            assert events[-1].WhichOneof("event") == "done"
            assert "".join(e.delta.text for e in await rest(resumed(w, 0))) == "By the door"
            assert w.engine.begun == 1

    timeline(story)


def test_an_answer_that_nobody_comes_back_for_is_stopped_after_the_grace() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, grace_s=0.05) as w:
            (await begun(w, "By")).cancel()
            await until(lambda: w.engine.stopped == 1 and w.answerer.live == 0)
            code, why = await refused(resumed(w, 3))
            assert (code, why.reason) == (grpc.StatusCode.CANCELLED, pb.REASON_CANCELLED)

    timeline(story)


def test_a_question_asked_twice_is_answered_once() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, grace_s=PATIENCE_S) as w:
            first = await begun(w, "By")
            second = w.ask()
            assert [(await second.read()).seq for _ in range(2)] == [1, 2]
            for word in (" the door", "."):
                w.engine.go.put_nowait(word)
            assert await kinds(first) == ["delta", "done"]
            assert await kinds(second) == ["delta", "done"]
            assert "".join(e.delta.text for e in await rest(w.ask())) == "By the door"  # also afterwards
            assert w.engine.begun == 1

    timeline(story)


def test_a_question_that_failed_is_tried_anew_when_it_is_asked_again() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            call = await begun(w, "By")
            assert await cancelled(w)
            await refused(call)
            w.engine.go.put_nowait(".")
            assert await kinds(w.ask()) == ["accepted", "done"]
            assert w.engine.begun == 2

    timeline(story)


def test_cancel_stops_at_once_and_may_be_said_twice() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, grace_s=PATIENCE_S) as w:
            call = await begun(w, "By")
            waiting = w.ask("waiting")
            await waiting.read()
            assert await cancelled(w, "waiting")
            assert await cancelled(w)
            for each in (call, waiting):
                code, why = await refused(each)
                assert (code, why.reason) == (grpc.StatusCode.CANCELLED, pb.REASON_CANCELLED)
            await until(lambda: w.engine.at_work == 0 and w.answerer.live == 0)
            assert not await cancelled(w)
            assert not await cancelled(w, "never-asked")
            assert w.engine.begun == 1

    timeline(story)


def test_words_that_are_no_longer_kept_are_told_as_lost() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, grace_s=PATIENCE_S) as w:
            call = await begun(w, *["x" * 30_000] * 4)
            call.cancel()
            code, why = await refused(resumed(w, 2))
            assert (code, why.reason) == (grpc.StatusCode.OUT_OF_RANGE, pb.REASON_LOST)
            code, why = await refused(resumed(w, 1, "never-asked"))
            assert (code, why.reason) == (grpc.StatusCode.NOT_FOUND, pb.REASON_UNKNOWN_REQUEST)

    timeline(story)


def test_nobody_resumes_or_cancels_another_wearers_question() -> None:
    async def story() -> None:
        hashes = {hashlib.sha256(who.encode()).hexdigest(): who for who in ("ann", "bob")}
        ann, bob = ((("authorization", f"Bearer {who}"),) for who in ("ann", "bob"))
        async with world(Tokens(hashes), heartbeat_s=PATIENCE_S, grace_s=PATIENCE_S) as w:
            call = await begun(w, "By", metadata=ann)
            code, why = await refused(resumed(w, 1, metadata=bob))
            assert (code, why.reason) == (grpc.StatusCode.NOT_FOUND, pb.REASON_UNKNOWN_REQUEST)
            assert not await cancelled(w, metadata=bob)
            other = w.ask(metadata=bob)  # the same id is another question
            assert (await other.read()).accepted.ahead == 1
            w.engine.go.put_nowait(".")
            assert await kinds(call) == ["done"]

    timeline(story)


def test_only_the_newest_picture_of_a_scene_is_described() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, grace_s=PATIENCE_S) as w:
            busy = await begun(w, "By", request_id="busy", session_id="s")
            calls = []
            for number in range(3):
                calls.append(w.ask(f"c{number}", session_id="s", task=pb.TASK_CONTEXT, latest_only=True))
                await calls[-1].read()
            for old in calls[:2]:
                code, why = await refused(old)
                assert (code, why.reason) == (grpc.StatusCode.ABORTED, pb.REASON_SUPERSEDED)
            for _ in range(2):
                w.engine.go.put_nowait(".")
            assert await kinds(busy) == ["done"]
            assert await kinds(calls[2]) == ["done"]
            assert w.engine.begun == 2

    timeline(story)


def test_one_wearer_cannot_take_all_places() -> None:
    async def story() -> None:
        tokens = Tokens({hashlib.sha256(b"t").hexdigest(): "ann"})
        metadata = (("authorization", "Bearer t"),)
        limits = WearerLimits(calls=2, asks_per_minute=0)
        async with world(tokens, heartbeat_s=PATIENCE_S, limits=limits) as w:
            held = [w.ask(f"r{n}", metadata=metadata) for n in range(2)]
            await asyncio.gather(*(call.read() for call in held))
            code, why = await refused(w.ask("r2", metadata=metadata))
            assert (code, why.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_TOO_MANY)
            assert why.retry_after_ms > 0
            for _ in range(2):
                w.engine.go.put_nowait(".")
            for call in held:
                await kinds(call)
            w.engine.go.put_nowait(".")
            assert await kinds(w.ask("r3", metadata=metadata)) == ["accepted", "done"]

    timeline(story)


def test_the_nights_work_makes_way_for_a_reply_and_for_nothing_else() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            night = await begun(w, "Ann", request_id="night", background=True)
            plan = w.ask("plan", task=pb.TASK_PLAN)
            assert (await plan.read()).accepted.ahead == 1
            assert w.engine.at_work == 1
            reply = w.ask("reply")
            assert (await reply.read()).accepted.ahead == 0
            code, why = await refused(night)
            assert (code, why.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_QUEUE_FULL)
            assert why.retry_after_ms > 0
            for _ in range(2):
                w.engine.go.put_nowait(".")
            assert await kinds(reply) == ["done"]
            assert await kinds(plan) == ["done"]

    timeline(story)


def test_a_cut_answer_says_that_another_server_may_be_asked() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            call = await begun(w, "By")
            drained = asyncio.ensure_future(w.server.drain(0.01))
            code, why = await refused(call)
            assert (code, why.reason) == (grpc.StatusCode.UNAVAILABLE, pb.REASON_DRAINING)
            assert not await drained

    timeline(story)


def test_an_answer_goes_on_behind_what_was_heard() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            w.engine.go.put_nowait(".")
            assert await kinds(w.ask(answer_prefix="Your keys are")) == ["accepted", "done"]
            assert w.engine.prompts[0].prefix == "Your keys are"

    timeline(story)


def test_many_questions_with_random_ends_leave_nothing_behind() -> None:
    async def story() -> None:
        from os1_cloud.engines.scripted import Scripted

        engine: Any = Scripted(0.0, 0.001, slots=8)
        async with world(engine=engine, grace_s=0.05, queue=64) as w:
            before = len(asyncio.all_tasks())

            async def one(number: int) -> None:
                call = w.ask(f"q{number}", max_tokens=6)
                for _ in range(number % 7):
                    if await call.read() is grpc.aio.EOF:
                        return
                call.cancel()
                if number % 2:
                    await cancelled(w, f"q{number}")

            for block in range(10):
                await asyncio.gather(*(one(block * 40 + n) for n in range(40)))
            await until(lambda: w.answerer.live == 0 and len(asyncio.all_tasks()) <= before)
            assert (engine.at_work, w.answerer.places["scripted"].busy) == (0, 0)
            assert w.answerer.places["scripted"].waiting == {}

    timeline(story)


def questions(answerer: Answerer, count: int, **options: Any) -> list[asyncio.Task[str]]:
    """Questions that arrive in one moment, and what becomes of each."""

    async def one(number: int) -> str:
        prompt = Prompt((Turn("user", "Where are my keys?"),), 8, session="s")
        ask = Ask(f"{number}", "reply", Budget(None, 60.0), prompt, **options)
        try:
            async for _ in answerer.ask(ask):
                pass
        except Refused as refused:
            return refused.why
        return "answered"

    return [asyncio.ensure_future(one(number)) for number in range(count)]


def test_a_question_that_is_superseded_in_the_moment_it_comes_leaves_nothing_behind() -> None:
    async def story() -> None:
        engine = Scripted()
        answerer = Answerer(engine)
        asked = questions(answerer, 3, latest_only=True)
        await until(lambda: engine.at_work == 1)
        engine.go.put_nowait(".")
        assert await asyncio.gather(*asked) == ["superseded", "superseded", "answered"]
        assert (answerer.live, answerer.load().busy, answerer.load().waiting) == (0, 0, 0)
        assert await answerer.drain(0.1)

    timeline(story)


def test_the_queue_keeps_its_bound_also_when_all_come_in_one_moment() -> None:
    async def story() -> None:
        answerer = Answerer(Scripted(), queue=4)
        asked = questions(answerer, 20)
        await until(lambda: answerer.live > 0)
        assert answerer.load().waiting <= 4
        assert answerer.live <= 5
        await answerer.cut(1.0)
        found = await asyncio.gather(*asked)
        assert found.count("queue_full") >= 15

    timeline(story)
