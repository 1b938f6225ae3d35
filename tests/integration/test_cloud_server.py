"""The real gRPC server on a loopback port, with an engine whose every step the test decides."""

import asyncio
import hashlib
import logging

import grpc
import pytest
from cloud_world import HERE, PATIENCE_S, Scripted, kinds, refused, rest, timeline, until, world
from grpc_health.v1 import health_pb2

from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import EngineError
from os1_cloud.server import Address, ServeError, Server
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2


def test_an_answer_is_accepted_first_then_written_then_done() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            call = w.ask(session_id="s", max_tokens=9, json_schema="{}")
            assert (await call.read()).accepted.model == "scripted"  # before the engine has said a word
            for word in ("By", " the door", "."):
                w.engine.go.put_nowait(word)
            events = await rest(call)
            assert "".join(e.delta.text for e in events[:-1]) == "By the door"
            assert [e.seq for e in events] == list(range(2, len(events) + 2))
            done = events[-1].done
            assert (done.finish, done.prompt_tokens, done.answer_tokens) == (pb.FINISH_STOP, 7, 3)
            (prompt,) = w.engine.prompts
            assert (prompt.session, prompt.max_tokens, prompt.json_schema) == ("/s", 9, "{}")

    timeline(story)


def test_silence_is_filled_with_progress() -> None:
    async def story() -> None:
        async with world(heartbeat_s=0.01) as w:
            first = w.ask("a")
            await until(lambda: w.engine.begun == 1)
            second = w.ask("b")
            await until(lambda: w.answerer.load().waiting == 1)
            for call, queued in ((first, False), (second, True)):
                seen = [await call.read() for _ in range(8)]
                assert [e.WhichOneof("event") for e in seen] == ["accepted"] + ["progress"] * 7
                assert seen[-1].progress.queued == queued

    timeline(story)


def test_two_questions_at_once_are_answered_one_after_the_other() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            first, second = w.ask("a"), w.ask("b")
            aheads = sorted([(await first.read()).accepted.ahead, (await second.read()).accepted.ahead])
            assert aheads == [0, 1]
            for word in ("one", ".", "two", "."):
                w.engine.go.put_nowait(word)
            assert await kinds(first) == ["delta", "done"]
            assert await kinds(second) == ["delta", "done"]
            assert w.engine.most_at_work == 1
            assert w.engine.begun == 2

    timeline(story)


def test_a_client_that_goes_away_frees_its_place_in_the_queue_and_at_the_engine() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            calls = []
            for number in range(3):  # in a known order: at work, next, last
                calls.append(w.ask(f"r{number}"))
                await calls[-1].read()
            calls[1].cancel()
            await until(lambda: w.answerer.load().waiting == 1)
            calls[0].cancel()
            await until(lambda: w.engine.begun == 2)
            w.engine.go.put_nowait(".")
            assert await kinds(calls[2]) == ["done"]
            await until(lambda: w.answerer.load().busy == 0)
            assert (w.engine.begun, w.engine.stopped, w.engine.most_at_work) == (2, 2, 1)

    timeline(story)


def test_a_cancelled_answer_stops_while_the_engine_is_silent() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            call = w.ask()
            w.engine.go.put_nowait("Your")
            assert [(await call.read()).WhichOneof("event") for _ in range(2)] == ["accepted", "delta"]
            call.cancel()
            await until(lambda: w.engine.stopped == 1)
            await until(lambda: w.answerer.load().busy == 0)

    timeline(story)


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, queue=1) as w:
            held = [w.ask("a"), w.ask("b")]
            await until(lambda: w.answerer.load().waiting == 1)
            code, why = await refused(w.ask("c"))
            assert (code, why.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_QUEUE_FULL)
            assert why.retry_after_ms > 0
            for call in held:
                call.cancel()

    timeline(story)


def test_many_questions_in_one_moment_do_not_overfill_the_queue() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S, queue=2) as w:
            firsts = await asyncio.gather(*(w.ask(f"r{n}").read() for n in range(12)), return_exceptions=True)
            assert sum(isinstance(f, pb.AskEvent) for f in firsts) == 3
            assert w.answerer.load().waiting <= 2

    timeline(story)


def test_a_spent_budget_is_refused_before_any_work() -> None:
    async def story() -> None:
        async with world() as w:
            code, why = await refused(w.ask(budget=pb.Budget(total_ms=500, elapsed_ms=500)))
            assert (code, why.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, pb.REASON_EXPIRED)
            assert w.engine.begun == 0

    timeline(story)


def test_a_budget_that_runs_out_ends_the_answer_and_frees_the_engine() -> None:
    async def story() -> None:
        async with world() as w:
            code, why = await refused(w.ask(budget=pb.Budget(total_ms=50)))
            assert (code, why.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, pb.REASON_EXPIRED)
            await until(lambda: w.engine.stopped == 1 and w.answerer.load().busy == 0)

    timeline(story)


def test_a_question_that_grew_late_in_the_queue_is_dropped_without_work() -> None:
    async def story() -> None:
        clock = [0.0]
        async with world(heartbeat_s=PATIENCE_S, now=lambda: clock[0]) as w:
            first = w.ask("a")
            await first.read()
            second = w.ask("b", budget=pb.Budget(first_token_ms=1000))
            await second.read()
            clock[0] = 1.5
            w.engine.go.put_nowait(".")
            assert await kinds(first) == ["done"]
            code, why = await refused(second)
            assert (code, why.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, pb.REASON_EXPIRED)
            assert w.engine.begun == 1

    timeline(story)


def test_a_question_with_a_picture_is_refused_for_want_of_a_vision_model() -> None:
    async def story() -> None:
        async with world() as w:
            code, why = await refused(w.ask(images=[pb.Image(data=b"jpeg", media_type="image/jpeg")]))
            assert (code, why.reason) == (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_NO_VISION_MODEL)
            assert w.engine.begun == 0

    timeline(story)


def test_a_failing_engine_is_an_internal_error_and_the_next_question_works() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            w.engine.go.put_nowait(EngineError("scripted failed"))
            code, why = await refused(w.ask("a"))
            assert (code, why.reason) == (grpc.StatusCode.INTERNAL, pb.REASON_ENGINE_FAILED)
            w.engine.go.put_nowait(".")
            assert await kinds(w.ask("b")) == ["accepted", "done"]

    timeline(story)


def test_hello_says_what_the_server_is() -> None:
    async def story() -> None:
        async with world(queue=3) as w:
            hello = await w.edge.Hello(edge_pb2.HelloRequest(client_version="0.1.0"))
            assert [(m.name, m.context_tokens, m.vision) for m in hello.models] == [("scripted", 100, False)]
            assert list(hello.api_versions) == ["os1.assist.v1"]
            assert (hello.limits.queue, hello.limits.turns) == (3, 64)

    timeline(story)


def test_a_probe_counts_its_padding_and_tells_the_load() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            idle = await w.edge.Probe(edge_pb2.ProbeRequest(padding=bytes(32 * 1024)))
            assert idle.received_bytes == 32 * 1024
            assert (idle.load.busy, idle.load.waiting, idle.load.draining) == (0, 0, False)
            held = [w.ask("a"), w.ask("b")]
            await until(lambda: w.answerer.load().waiting == 1)
            busy = (await w.edge.Probe(edge_pb2.ProbeRequest())).load
            assert (busy.busy, busy.waiting) == (1, 1)
            for call in held:
                call.cancel()

    timeline(story)


def test_every_call_needs_a_right_token_but_the_health_check() -> None:
    async def story() -> None:
        tokens = Tokens({hashlib.sha256(b"right").hexdigest(): "ann"})
        async with world(tokens, heartbeat_s=PATIENCE_S) as w:
            for metadata in (None, (("authorization", "Bearer wrong"),)):
                for call in (
                    w.edge.Hello(edge_pb2.HelloRequest(), metadata=metadata),
                    w.edge.Probe(edge_pb2.ProbeRequest(), metadata=metadata),
                    w.ask(metadata=metadata),
                ):
                    code, why = await refused(call)
                    assert (code, why.reason) == (grpc.StatusCode.UNAUTHENTICATED, pb.REASON_BAD_TOKEN)
            assert w.engine.begun == 0
            right = (("authorization", "Bearer right"),)
            w.engine.go.put_nowait(".")
            assert await kinds(w.ask(metadata=right, session_id="s")) == ["accepted", "done"]
            assert w.engine.prompts[0].session == "ann/s"
            await w.edge.Hello(edge_pb2.HelloRequest(), metadata=right)
            health = await w.health.Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.SERVING

    timeline(story)


def test_draining_tells_the_balancer_first_refuses_the_new_and_ends_the_running() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            running = w.ask("a")
            await running.read()
            drain = asyncio.ensure_future(w.server.drain(PATIENCE_S))
            await until(lambda: w.answerer.draining)
            for service in ("", "os1.assist.v1.Edge", "os1.assist.v1.Assist"):
                health = await w.health.Check(health_pb2.HealthCheckRequest(service=service))
                assert health.status == health_pb2.HealthCheckResponse.NOT_SERVING
            code, why = await refused(w.ask("b"))
            assert (code, why.reason) == (grpc.StatusCode.UNAVAILABLE, pb.REASON_DRAINING)
            assert (await w.edge.Probe(edge_pb2.ProbeRequest())).load.draining
            assert not drain.done()
            for word in ("Here", "."):
                w.engine.go.put_nowait(word)
            assert await kinds(running) == ["delta", "done"]
            assert await drain

    timeline(story)


def test_an_answer_that_outlasts_the_grace_is_cut_and_its_engine_freed() -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            running = w.ask("a")
            await running.read()
            await until(lambda: w.engine.begun == 1)
            assert not await w.server.drain(0.01)
            assert w.engine.at_work == 0
            with pytest.raises((grpc.aio.AioRpcError, asyncio.CancelledError)):
                await kinds(running)

    timeline(story)


def test_an_open_port_without_tls_is_refused_by_the_server_itself() -> None:
    async def story() -> None:
        with pytest.raises(ServeError, match="TLS"):
            await Server(Answerer(Scripted())).start(Address("0.0.0.0", 0))

    timeline(story)


def test_a_port_in_use_is_refused() -> None:
    async def story() -> None:
        first, second = Server(Answerer(Scripted())), Server(Answerer(Scripted()))
        port = await first.start(HERE)
        try:
            with pytest.raises(ServeError, match="in use"):
                await second.start(Address("127.0.0.1", port))
        finally:
            await first.drain(0)
            await second.drain(0)

    timeline(story)


def test_nothing_that_was_said_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with world(heartbeat_s=PATIENCE_S) as w:
            with caplog.at_level(logging.DEBUG, logger="os1_cloud"):
                for word in ("ANSWERED", "."):
                    w.engine.go.put_nowait(word)
                question = [pb.Turn(role=pb.ROLE_USER, text="ASKED")]
                await kinds(w.ask("the-id", turns=question, session_id="SESSION"))
                await refused(w.ask("other-id", turns=[*question, *question, pb.Turn(text="ASKED")]))

    timeline(story)
    assert "the-id" in caplog.text
    for word in ("ASKED", "ANSWERED", "SESSION"):
        assert word not in caplog.text


def test_a_prompt_that_is_read_ahead_has_no_text_makes_way_and_teaches_nothing() -> None:
    async def story() -> None:
        async with world() as w:
            w.engine.go.put_nowait("thrown away")
            w.engine.go.put_nowait(".")
            assert await kinds(w.ask("p", prime=True, max_tokens=50)) == ["accepted", "done"]
            assert w.engine.prompts[0].max_tokens == 1
            assert w.answerer.load().first_token_s is None
            reading = w.ask("q", prime=True)
            assert await reading.read() is not grpc.aio.EOF
            await until(lambda: w.engine.at_work == 1)
            asked = w.ask("r")  # the only place is taken
            code, why = await refused(reading)
            assert (code, why.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_QUEUE_FULL)
            w.engine.go.put_nowait("here")
            w.engine.go.put_nowait(".")
            assert await kinds(asked) == ["accepted", "delta", "done"]
            assert w.answerer.load().first_token_s is not None

    timeline(story)
