"""What an operator sees: Prometheus' page and spans, without a word of what was said."""

import asyncio
import re
import urllib.request
from typing import Any

import pytest
from cloud_world import HERE, PATIENCE_S, kinds, timeline, until, world

from os1_cloud.metrics import Metrics, Page
from os1_proto.assist.v1 import assist_pb2 as pb

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def asked_everything(w: Any) -> None:
    """One answer, one cancelled, one gone, one refused."""
    turns = [pb.Turn(role=pb.ROLE_USER, text="ASKED")]
    for word in ("ANSWERED", "."):
        w.engine.go.put_nowait(word)
    metadata = (("traceparent", TRACE),)
    assert (await kinds(w.ask("the-id", metadata, turns=turns, session_id="SESSION")))[-1] == "done"
    call = w.ask("b", turns=turns)
    await call.read()
    await w.assist.Cancel(pb.CancelRequest(request_id="b"))
    gone = w.ask("c", turns=turns)
    await gone.read()
    gone.cancel()
    await until(lambda: w.answerer.live == 0)
    with pytest.raises(Exception, match="images"):
        await kinds(w.ask("d", images=[pb.Image(data=b"x")] * 5))
    with pytest.raises(Exception, match="vision"):
        await kinds(w.ask("e", images=[pb.Image(data=b"x")]))


def test_the_page_counts_what_happened_and_quotes_nothing() -> None:
    async def story() -> None:
        metrics = Metrics()
        page = Page(metrics.registry)
        async with world(watchers=[metrics], serve={"watchers": [metrics]}, heartbeat_s=PATIENCE_S) as w:
            metrics.watch(w.answerer, lambda: [("scripted", 1234, 1)])
            await asked_everything(w)
            port = await page.start(HERE)

            def get(path: str) -> str:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
                    return str(reply.read().decode())

            text = await asyncio.to_thread(get, "/metrics")
            with pytest.raises(urllib.error.HTTPError):
                await asyncio.to_thread(get, "/secrets")
            await page.close()
        for line in (
            'os1_ask_total{outcome="answered",task="reply"} 1.0',
            'os1_ask_total{outcome="cancelled",task="reply"} 1.0',
            'os1_ask_total{outcome="gone",task="reply"} 1.0',
            'os1_admission_reject_total{task="reply",why="no_vision_model"} 1.0',
            'os1_tokens_total{model="scripted",what="written"} 3.0',
            'os1_queue_depth{class="reply",model="scripted"} 0.0',
            'os1_slots_busy{model="scripted"} 0.0',
            "os1_live_streams 0.0",
            'os1_worker_restarts_total{model="scripted"} 1.0',
            'os1_call_seconds_count{code="OK",method="os1.assist.v1.Assist/Cancel"} 1.0',
            'os1_call_seconds_count{code="INVALID_ARGUMENT",method="os1.assist.v1.Assist/Ask"} 2.0',
        ):
            assert line in text
        assert re.search(r"os1_cancel_to_stop_seconds_count\{model=\"scripted\"\} 2", text)
        assert "process_resident_memory_bytes" in text
        for word in ("ASKED", "ANSWERED", "SESSION", "the-id"):
            assert word not in text

    timeline(story)


def test_spans_show_where_the_time_went_under_the_callers_own_trace() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="spans need the extra otel")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from os1_cloud.tracing import Spans

    async def story() -> None:
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        async with world(watchers=[Spans(provider)], heartbeat_s=PATIENCE_S) as w:
            await asked_everything(w)
        spans = exporter.get_finished_spans()
        mine = [s for s in spans if f"{s.context.trace_id:032x}" == TRACE.split("-")[1]]
        assert sorted(s.name for s in mine) == ["ask", "queue", "read", "write"]
        ask = next(s for s in mine if s.name == "ask")
        assert f"{ask.parent.span_id:016x}" == TRACE.split("-")[2]
        assert ask.attributes["gen_ai.usage.output_tokens"] == 3
        assert all(s.start_time <= s.end_time for s in mine)
        assert len({s.context.trace_id for s in spans}) == 3
        text = " ".join(s.to_json() for s in spans)
        for word in ("ASKED", "ANSWERED", "SESSION"):
            assert word not in text

    timeline(story)
