"""Numbers for Prometheus: counts, times and loads, nothing that was said and nobody's name.

cli imports it. `GET /metrics` on a port of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from os1_cloud.address import Address, ServeError
from os1_cloud.admission import Task, Why
from os1_cloud.core import Answerer
from os1_cloud.events import Record

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60, 120)
REQUEST_BYTES = 8 * 1024
"""Of one scrape: more is no scrape."""
PATIENCE_S = 5.0


class Metrics:
    """A watcher of core and of calls."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(name, about, labels, registry=self.registry)

        def times(name: str, about: str, *labels: str) -> Histogram:
            return Histogram(name, about, labels, registry=self.registry, buckets=SECONDS)

        self._calls = times("os1_call_seconds", "Calls by method and status.", "method", "code")
        self._asks = counter("os1_ask", "Admitted questions by what became of them.", "task", "outcome")
        self._refused = counter("os1_admission_reject", "Questions refused on arrival.", "task", "why")
        self._resumed = counter("os1_resume", "Answers picked up, or why not.", "result")
        self._wait = times("os1_queue_wait_seconds", "Until a place at the engine.", "class")
        self._first = times("os1_first_token_seconds", "From the place to the first text.", "model", "task")
        self._answer = times("os1_answer_seconds", "From arrival to the end.", "model", "task")
        self._stop = times("os1_cancel_to_stop_seconds", "From a cancel until the engine is free.", "model")
        self._tokens = counter("os1_tokens", "Tokens read and written.", "model", "what")
        self._wasted = counter("os1_wasted_pieces", "Pieces of text written for nobody.", "model")

    def watch(self, answerer: Answerer, worker: Callable[[], Iterable[tuple[str, int, int]]]) -> None:
        """Adds what is read from `answerer` at each scrape; `worker`: name, bytes and restarts of each worker
        process."""
        self.registry.register(_Loads(answerer, worker))

    def called(self, method: str, code: str, seconds: float) -> None:
        """See `guard.Calls`."""
        self._calls.labels(method, code).observe(seconds)

    def refused(self, task: Task, why: Why) -> None:
        """See `events.Watcher`."""
        self._refused.labels(task, why).inc()

    def resumed(self, result: str) -> None:
        """See `events.Watcher`."""
        self._resumed.labels(result).inc()

    def ended(self, record: Record) -> None:
        """See `events.Watcher`."""
        self._asks.labels(record.task, record.outcome).inc()
        ended = record.ended if record.ended is not None else record.arrived
        if record.placed is not None:
            self._wait.labels(record.kind).observe(record.placed - record.arrived)
            if record.first is not None and record.outcome != "read":
                self._first.labels(record.model, record.task).observe(record.first - record.placed)
        if record.finished is not None:
            done = record.finished
            if record.outcome != "read":
                self._answer.labels(record.model, record.task).observe(ended - record.arrived)
            for what, count in (
                ("read", done.prompt_tokens - done.cached_tokens),
                ("cached", done.cached_tokens),
                ("written", done.answer_tokens),
            ):
                self._tokens.labels(record.model, what).inc(max(0, count))
        else:
            self._wasted.labels(record.model).inc(record.pieces)
        if record.stop_asked is not None and record.placed is not None:
            self._stop.labels(record.model).observe(ended - record.stop_asked)


class _Loads(Collector):
    """What is true now, read when somebody asks."""

    def __init__(self, answerer: Answerer, worker: Callable[[], Iterable[tuple[str, int, int]]]) -> None:
        self._answerer, self._worker = answerer, worker

    def collect(self) -> Iterable[Metric]:
        """See prometheus_client."""
        answerer = self._answerer
        busy = GaugeMetricFamily("os1_slots_busy", "Questions at work.", labels=["model"])
        slots = GaugeMetricFamily("os1_slots", "Questions that can be at work.", labels=["model"])
        queue = GaugeMetricFamily("os1_queue_depth", "Questions that wait.", labels=["model", "class"])
        for name, places in answerer.places.items():
            busy.add_metric([name], places.busy)
            slots.add_metric([name], places.slots)
            for kind in ("reply", "routine", "background"):
                queue.add_metric([name, kind], places.waiting.get(kind, 0))
        memory = GaugeMetricFamily("os1_worker_memory_bytes", "Of a worker process.", labels=["model"])
        restarts = CounterMetricFamily("os1_worker_restarts", "Of a worker process.", labels=["model"])
        for name, size, count in self._worker():
            memory.add_metric([name], size)
            restarts.add_metric([name], count)
        live = GaugeMetricFamily("os1_live_streams", "Answers at work or waiting.", answerer.live)
        kept = GaugeMetricFamily("os1_kept_answers", "Answers that can be picked up.", answerer.kept)
        draining = GaugeMetricFamily("os1_draining", "Whether the server ends soon.", answerer.draining)
        return [busy, slots, queue, memory, restarts, live, kept, draining]


class Page:
    """`GET /metrics` over HTTP/1.0, one answer a connection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._server: asyncio.Server | None = None

    async def start(self, address: Address) -> int:
        """Listens, and returns the port.

        Raises:
            ServeError: the address is not free.
        """
        try:
            self._server = await asyncio.start_server(
                self._answer, address.host, address.port, limit=REQUEST_BYTES
            )
        except OSError as e:
            raise ServeError(f"cannot show metrics on {address}: {e.strerror}") from e
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PATIENCE_S):
                request = await reader.readuntil(b"\r\n\r\n")
                found = request.split(b"\r\n", 1)[0].split(b" ")[:2] == [b"GET", b"/metrics"]
                body = generate_latest(self._registry) if found else b"there is only GET /metrics\n"
                status = "200 OK" if found else "404 Not Found"
                kind = CONTENT_TYPE_LATEST if found else "text/plain"
                head = f"HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()
