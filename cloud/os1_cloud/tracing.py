"""OpenTelemetry spans of each question: the wait, the reading, the writing. Optional (extra `otel`).

Made from a question's record when it has ended, not around its code: nothing to leak when a call is dropped
(opentelemetry-python-contrib#3271). Where the spans go is told by OpenTelemetry's own variables, e.g.
OTEL_EXPORTER_OTLP_ENDPOINT. Attributes follow its GenAI conventions; no text, no name of a wearer.
"""

from __future__ import annotations

import time
from typing import Any

from os1_cloud.admission import Task, Why
from os1_cloud.events import Record


class Spans:
    """A watcher of core."""

    def __init__(self, provider: Any = None) -> None:
        """Args:
            provider: OpenTelemetry's TracerProvider; None: one that exports over OTLP.

        Raises:
            ImportError: the extra `otel` is not installed.
        """
        from opentelemetry import trace

        self._trace: Any = trace
        self._provider = provider if provider is not None else _exporting()
        self._tracer: Any = self._provider.get_tracer("os1_cloud")
        self._offset = time.time() - time.monotonic()

    def close(self) -> None:
        """Sends what is left."""
        self._provider.shutdown()

    def refused(self, task: Task, why: Why) -> None:
        """See `events.Watcher`; metrics count these."""

    def resumed(self, result: str) -> None:
        """See `events.Watcher`; metrics count these."""

    def ended(self, record: Record) -> None:
        """See `events.Watcher`."""
        ended = record.ended if record.ended is not None else record.arrived
        whole = self._span("ask", record.arrived, self._parent(record.trace))
        whole.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": record.model,
                "os1.request_id": record.request_id,
                "os1.task": record.task,
                "os1.outcome": record.outcome,
            }
        )
        if record.finished is not None:
            whole.set_attributes(
                {
                    "gen_ai.usage.input_tokens": record.finished.prompt_tokens,
                    "gen_ai.usage.output_tokens": record.finished.answer_tokens,
                    "os1.cached_tokens": record.finished.cached_tokens,
                }
            )
        if record.placed is not None and record.first is not None:
            whole.set_attribute("gen_ai.server.time_to_first_token", record.first - record.placed)
        inside = self._trace.set_span_in_context(whole)
        marks = [("queue", record.arrived), ("read", record.placed), ("write", record.first)]
        reached = [(name, at) for name, at in marks if at is not None]
        for (name, begin), end in zip(reached, [at for _, at in reached[1:]] + [ended], strict=True):
            self._span(name, begin, inside).end(self._time(end))
        whole.end(self._time(ended))

    def _span(self, name: str, begin: float, parent: Any) -> Any:
        return self._tracer.start_span(name, context=parent, start_time=self._time(begin))

    def _time(self, seconds: float) -> int:
        return round((seconds + self._offset) * 1e9)

    def _parent(self, traceparent: str) -> Any:
        """The caller's span, if it sent one."""
        if not traceparent:
            return None
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        return TraceContextTextMapPropagator().extract({"traceparent": traceparent})


def _exporting() -> Any:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "os1-serve"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
