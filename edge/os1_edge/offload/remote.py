"""The offload server over gRPC: questions out, events in."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import grpc

from os1_edge.offload.channels import Channels, Trust
from os1_edge.offload.engine import EngineError, Task
from os1_edge.offload.far import (
    Accepted,
    Alive,
    Failure,
    FarError,
    Finished,
    Probed,
    Question,
    Step,
    Stranger,
    TaskLoad,
    Text,
)
from os1_edge.offload.network import Around, Linux
from os1_edge.offload.spans import Spans
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2, edge_pb2_grpc

TASKS: dict[Task, pb.Task.ValueType] = {
    "reply": pb.TASK_REPLY,
    "caption": pb.TASK_CAPTION,
    "context": pb.TASK_CONTEXT,
    "plan": pb.TASK_PLAN,
    "consolidate": pb.TASK_CONSOLIDATE,
}

ROLES = {"system": pb.ROLE_SYSTEM, "user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT}

CANCEL_S = 5.0
"""For a Cancel to come through; the server's own grace is over by then anyway."""

RESUMED_S = 30.0
"""For the rest of an answer that was picked up again."""

REFUSAL = "os1-refusal-bin"

KINDS: dict[grpc.StatusCode, Failure] = {
    grpc.StatusCode.UNAVAILABLE: "unreachable",
    grpc.StatusCode.CANCELLED: "unreachable",  # not by us
    grpc.StatusCode.DEADLINE_EXCEEDED: "unreachable",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "busy",
    grpc.StatusCode.UNAUTHENTICATED: "refused",
    grpc.StatusCode.PERMISSION_DENIED: "refused",
    grpc.StatusCode.INVALID_ARGUMENT: "unfit",
    grpc.StatusCode.FAILED_PRECONDITION: "unfit",
    grpc.StatusCode.UNIMPLEMENTED: "unfit",
    grpc.StatusCode.ABORTED: "unfit",
    grpc.StatusCode.NOT_FOUND: "lost",
    grpc.StatusCode.OUT_OF_RANGE: "lost",
}
"""Any other is "broken"."""


class RemoteEngine:
    """One server; see ``Far``."""

    name = "offload server"

    def __init__(
        self,
        server: str,
        token: str | None,
        trust: Trust | None = None,
        around: Around | None = None,
        spans: Spans | None = None,
    ) -> None:
        """Args:
            server: ``host:port``. A server on this machine is asked in plain text.
            token: the wearer's, sent with each call.
            trust: whom to believe.
            around: hints; None: Linux's.
            spans: of its questions; None: none.

        Raises:
            EngineError: the address is none.
        """
        self.around: Around = around or Linux()
        self._channels = Channels(server, trust or Trust())
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._session = uuid.uuid4().hex
        self._spans = spans or Spans()

    async def close(self) -> None:
        """See ``Far``."""
        await self._channels.close()
        await asyncio.to_thread(self._spans.close)

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        """See ``Far``."""
        budget = question.budget
        request = pb.AskRequest(
            request_id=question.request_id,
            # A session's prompts share their beginning; those of other tasks would push it out.
            session_id=f"{self._session}.{question.task}",
            budget=pb.Budget(
                first_token_ms=round(budget.first_token_s * 1000),
                total_ms=round(budget.total_s * 1000),
                elapsed_ms=round(question.spent_s * 1000),
            ),
            task=TASKS[question.task],
            turns=[pb.Turn(role=ROLES[m.role], text=m.text) for m in question.messages],
            images=[_image(image) for m in question.messages for image in m.images],
            max_tokens=question.max_tokens,
            json_schema=json.dumps(question.schema) if question.schema is not None else "",
            hedged=question.hedged,
            prime=question.prime,
            background=question.prime,  # to a server that knows no prime
        )
        left = max(budget.total_s - question.spent_s, 0.001)
        stub = assist_pb2_grpc.AssistStub(self._channels.pair.bulk)
        with self._spans.asking(question) as asking:
            metadata = (*self._metadata, ("traceparent", asking.traceparent))
            # Closed here, not by the garbage collector: that is what ends the call.
            async with aclosing(self._steps(stub.Ask(request, metadata=metadata, timeout=left))) as steps:
                async for step in steps:
                    if isinstance(step.event, Text):
                        asking.answered()
                    yield step

    async def resume(self, request_id: str, node: str, from_seq: int) -> AsyncGenerator[Step, None]:
        """See ``Far``. On the control channel: the other one broke off a moment ago."""
        stub = assist_pb2_grpc.AssistStub(self._channels.pair.control)
        request = pb.ResumeRequest(request_id=request_id, from_seq=from_seq)
        call = stub.Resume(request, metadata=self._to(node), timeout=RESUMED_S)
        async with aclosing(self._steps(call)) as steps:
            async for step in steps:
                yield step

    async def cancel(self, request_id: str, node: str) -> None:
        """See ``Far``."""
        stub = assist_pb2_grpc.AssistStub(self._channels.pair.control)
        request = pb.CancelRequest(request_id=request_id)
        with suppress(grpc.aio.AioRpcError):  # the server's own grace ends it
            await stub.Cancel(request, metadata=self._to(node), timeout=CANCEL_S)

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        """See ``Far``."""
        pair = self._channels.open() if fresh else self._channels.pair
        adopted = not fresh
        try:
            async with asyncio.timeout(timeout_s):
                if fresh:  # a call fails as soon as the connection's first try has
                    await self._probed(pair.control, 0, timeout_s)
                began = perf_counter()
                reply = await self._probed(pair.control, padding, timeout_s)
                took = perf_counter() - began
            if fresh:
                self._channels.adopt(pair)
                adopted = True
        except TimeoutError:
            raise FarError("unreachable", f"{self.name}: no answer to a probe") from None
        finally:
            if not adopted:
                self._channels.discard(pair)
        loads: dict[Task, TaskLoad] = {}
        by_number = {number: task for task, number in TASKS.items()}
        for load in reply.load.tasks:
            if (task := by_number.get(load.task)) is not None:
                loads[task] = _load(load)
        if not loads and reply.load.first_token_ms:  # a server that does not tell them apart
            loads = dict.fromkeys(TASKS, _load(reply.load))
        return Probed(took, reply.received_bytes, reply.load.draining, loads)

    async def diagnose(self, timeout_s: float) -> Stranger:
        """See ``Far``."""
        return await self._channels.stranger(timeout_s)

    async def _probed(self, channel: Any, padding: int, timeout_s: float) -> Any:
        call = edge_pb2_grpc.EdgeStub(channel).Probe(
            # Random: it must not be compressed on its way.
            edge_pb2.ProbeRequest(padding=os.urandom(padding)),
            metadata=self._metadata,
            timeout=timeout_s,
        )
        try:
            return await call
        except grpc.aio.AioRpcError as e:
            raise _failure(e) from None
        finally:
            call.cancel()

    async def _steps(self, call: Any) -> AsyncGenerator[Step, None]:
        try:
            while (event := await call.read()) is not grpc.aio.EOF:
                if (step := _step(event)) is not None:
                    yield step
        except grpc.aio.AioRpcError as e:
            raise _failure(e) from None
        finally:
            call.cancel()  # a dropped call is never cancelled by itself (grpc#43462)

    def _to(self, node: str) -> tuple[tuple[str, str], ...]:
        """Metadata that leads to the server that has the question."""
        return (*self._metadata, ("os1-node", node)) if node else self._metadata


def _step(event: Any) -> Step | None:
    match event.WhichOneof("event"):
        case "accepted":
            return Step(event.seq, Accepted(event.accepted.node))
        case "delta":
            return Step(event.seq, Text(event.delta.text))
        case "progress":
            return Step(event.seq, Alive())
        case "done":
            return Step(event.seq, Finished())
    return None  # a newer server's


def _load(load: Any) -> TaskLoad:
    deviation = getattr(load, "deviation_ms", load.first_token_ms / 2)
    return TaskLoad(load.wait_ms / 1000, load.first_token_ms / 1000, deviation / 1000)


def _image(data: bytes) -> pb.Image:
    kind = "image/png" if data.startswith(b"\x89PNG") else "image/jpeg"
    return pb.Image(data=data, media_type=kind, sha256=hashlib.sha256(data).digest())


def _failure(error: grpc.aio.AioRpcError) -> FarError:
    """What became of a call. Only the code is told: a server's words may quote the prompt."""
    kind, retry_after_s = KINDS.get(error.code(), "broken"), 0.0
    for name, value in error.trailing_metadata() or ():
        if name == REFUSAL and isinstance(value, bytes):
            refusal = pb.Refusal.FromString(value)
            retry_after_s = max(refusal.retry_after_ms, refusal.expected_ms) / 1000
            if refusal.reason in (pb.REASON_TOO_LATE, pb.REASON_EXPIRED):
                kind = "late"
            elif refusal.reason == pb.REASON_DRAINING:
                kind = "busy"
            elif refusal.reason == pb.REASON_ENGINE_LOST:
                kind = "broken"  # the way there is good
    return FarError(kind, f"offload server: {error.code().name.lower().replace('_', ' ')}", retry_after_s)


def read_secret(path: Path | None) -> bytes | None:
    """The bytes of a file named in the settings.

    Raises:
        EngineError: it cannot be read.
    """
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as e:
        raise EngineError(f"{path}: {e.strerror}") from None
