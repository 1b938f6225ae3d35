"""OpenTelemetry spans of what is asked of the server, of which the server's own are children. Optional (extra
`otel`), and on where OpenTelemetry's own variable OTEL_EXPORTER_OTLP_ENDPOINT says where they go.

No text and no name of a wearer; without spans the call still carries a trace of its own.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from os1_edge.offload.far import Question

log = logging.getLogger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Asking:
    """One question on its way."""

    def __init__(self, traceparent: str, span: Any = None) -> None:
        self.traceparent = traceparent
        """W3C trace context, for the call's metadata."""
        self._span = span
        self._waiting = True

    def answered(self) -> None:
        """Text came; only the first counts."""
        if self._waiting and self._span is not None:
            self._span.add_event("gen_ai.first_chunk")
        self._waiting = False


class Spans:
    """Makes them, where somebody collects them."""

    def __init__(self, provider: Any = None) -> None:
        """``provider``: OpenTelemetry's TracerProvider; None: no spans."""
        self._provider = provider
        self._tracer: Any = provider.get_tracer("os1_edge") if provider is not None else None

    @classmethod
    def of_environment(cls) -> Spans:
        """Exporting where the environment says so; a missing extra is told once and costs no answer."""
        if not os.environ.get(ENDPOINT):
            return cls()
        try:
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ModuleNotFoundError:
            log.warning("%s is set, but the extra is not installed: pip install 'os1[otel]'", ENDPOINT)
            return cls()
        provider = TracerProvider(resource=Resource.create({"service.name": "os1-edge"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def close(self) -> None:
        """Sends what is left."""
        if self._provider is not None:
            self._provider.shutdown()

    @contextmanager
    def asking(self, question: Question) -> Iterator[Asking]:
        """A span from the call's beginning to its end, however it ends."""
        if self._tracer is None:
            yield Asking(_own(question.request_id))
            return
        from opentelemetry.trace import SpanKind, Status, StatusCode

        span = self._tracer.start_span("ask", kind=SpanKind.CLIENT)
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "os1.request_id": question.request_id,
                "os1.task": question.task,
                "os1.hedged": question.hedged,
                "os1.prime": question.prime,
            }
        )
        context = span.get_span_context()
        try:
            yield Asking(f"00-{context.trace_id:032x}-{context.span_id:016x}-01", span)
        except Exception as e:
            span.set_status(Status(StatusCode.ERROR, type(e).__name__))
            raise
        finally:
            span.end()


def _own(request_id: str) -> str:
    """The question is the trace."""
    digest = hashlib.sha256(request_id.encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"
