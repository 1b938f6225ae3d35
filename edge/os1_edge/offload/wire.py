"""Messages of os1.assist.v1 from and to what the router knows. Pure: no call, no clock.

remote imports it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from os1_edge.offload.engine import Task
from os1_edge.offload.far import (
    Accepted,
    Alive,
    Failure,
    FarError,
    Finished,
    Probed,
    Question,
    Step,
    TaskLoad,
    Text,
)
from os1_edge.offload.offers import NEWEST, Offers
from os1_proto.assist.v1 import assist_pb2 as pb

TASKS: dict[Task, pb.Task.ValueType] = {
    "reply": pb.TASK_REPLY,
    "caption": pb.TASK_CAPTION,
    "context": pb.TASK_CONTEXT,
    "plan": pb.TASK_PLAN,
    "consolidate": pb.TASK_CONSOLIDATE,
}

ROLES = {"system": pb.ROLE_SYSTEM, "user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT}

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

REASONS: dict[int, Failure] = {
    pb.REASON_TOO_LATE: "late",
    pb.REASON_EXPIRED: "late",
    pb.REASON_DRAINING: "ending",
    pb.REASON_ENGINE_LOST: "gone",  # the way there is good
    pb.REASON_CANCELLED: "lost",  # by the server's own grace: nobody read along for too long
}
"""Where the server says more than a status does."""


def write_ask(question: Question, session: str, known: Offers | None) -> pb.AskRequest:
    """A question as its message.

    Args:
        question: what is asked.
        session: of this device; a session's prompts share their beginning, and those of other tasks would
            push it out.
        known: what the server said that it is; what it does not know it is not sent.
    """
    budget, features = question.budget, known.features if known is not None else frozenset[str]()
    return pb.AskRequest(
        request_id=question.request_id,
        session_id=f"{session}.{question.task}",
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
        attempt=question.attempt,
        hedged=question.hedged,
        answer_prefix=question.prefix,
        # Views are captioned one after another: one that is still at work there is one whose cancel was lost.
        latest_only=question.task == "caption" and NEWEST in features,
        prime=question.prime,
        background=question.prime,  # to a server that knows no prime
    )


def read_step(event: pb.AskEvent) -> Step | None:
    """One event of an answer; None: a newer server's."""
    match event.WhichOneof("event"):
        case "accepted":
            return Step(event.seq, Accepted(event.accepted.node))
        case "delta":
            return Step(event.seq, Text(event.delta.text))
        case "progress":
            return Step(event.seq, Alive())
        case "done":
            return Step(event.seq, Finished())
    return None


def read_hello(reply: Any) -> Offers:
    """What a server is."""
    limits, answering = reply.limits, set(TASKS.values())
    return Offers(
        version=reply.server_version[:32],
        node=reply.node[:64],
        features=frozenset(reply.features),
        models=tuple(m.name[:64] for m in reply.models[:16] if answering & set(m.tasks)),
        request_bytes=limits.request_bytes,
        turns=limits.turns,
        images=limits.images,
    )


def read_probe(reply: Any, took_s: float, known: Offers | None) -> Probed:
    """A probe's answer after ``took_s``; ``known``: what the server said that it is."""
    loads: dict[Task, TaskLoad] = {}
    by_number = {number: task for task, number in TASKS.items()}
    for load in reply.load.tasks:
        if (task := by_number.get(load.task)) is not None:
            loads[task] = _load(load)
    if not loads and reply.load.first_token_ms:  # a server that does not tell them apart
        loads = dict.fromkeys(TASKS, _load(reply.load))
    return Probed(took_s, reply.received_bytes, reply.load.draining, loads, known)


def failure(error: grpc.aio.AioRpcError) -> FarError:
    """What became of a call. Only the code is told: a server's words may quote the prompt."""
    kind, retry_after_s = KINDS.get(error.code(), "broken"), 0.0
    for name, value in error.trailing_metadata() or ():
        if name == REFUSAL and isinstance(value, bytes):
            try:
                refusal = pb.Refusal.FromString(value)
            except DecodeError:  # not one of ours
                continue
            retry_after_s = max(refusal.retry_after_ms, refusal.expected_ms) / 1000
            kind = REASONS.get(refusal.reason, kind)
    return FarError(kind, f"offload server: {error.code().name.lower().replace('_', ' ')}", retry_after_s)


def _load(load: Any) -> TaskLoad:
    deviation = getattr(load, "deviation_ms", load.first_token_ms / 2)
    return TaskLoad(load.wait_ms / 1000, load.first_token_ms / 1000, deviation / 1000)


def _image(data: bytes) -> pb.Image:
    kind = "image/png" if data.startswith(b"\x89PNG") else "image/jpeg"
    return pb.Image(data=data, media_type=kind, sha256=hashlib.sha256(data).digest())
