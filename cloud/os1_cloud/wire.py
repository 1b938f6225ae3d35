"""Messages of os1.assist.v1 to and from what core knows. Pure: no call, no clock.

servicer imports it.
"""

from __future__ import annotations

import re
from typing import Literal

import grpc

from os1_cloud import core
from os1_cloud.admission import Load, Refused, Why, budget_left
from os1_cloud.engines import Prompt, Turn
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2

REQUEST_BYTES = 4 * 1024 * 1024
"""Of one message; gRPC's own default, room for a picture."""
TURNS = 64
MAX_TOKENS = 1024
DEFAULT_TOKENS = 256
SCHEMA_BYTES = 16 * 1024
"""A schema becomes a grammar that is tried at each token, so it must stay small."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ROLES: dict[int, Literal["system", "user", "assistant"]] = {
    pb.ROLE_SYSTEM: "system",
    pb.ROLE_USER: "user",
    pb.ROLE_ASSISTANT: "assistant",
}
_TASKS: dict[int, core.Task] = {
    pb.TASK_UNSPECIFIED: "reply",
    pb.TASK_REPLY: "reply",
    pb.TASK_CAPTION: "caption",
    pb.TASK_CONTEXT: "context",
    pb.TASK_PLAN: "plan",
    pb.TASK_CONSOLIDATE: "consolidate",
}
CODES: dict[Why, tuple[grpc.StatusCode, pb.Reason.ValueType]] = {
    "bad_request": (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_BAD_REQUEST),
    "no_vision_model": (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_NO_VISION_MODEL),
    "too_long": (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_TOO_LONG),
    "bad_schema": (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_BAD_SCHEMA),
    "expired": (grpc.StatusCode.DEADLINE_EXCEEDED, pb.REASON_EXPIRED),
    "too_late": (grpc.StatusCode.DEADLINE_EXCEEDED, pb.REASON_TOO_LATE),
    "queue_full": (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_QUEUE_FULL),
    "draining": (grpc.StatusCode.UNAVAILABLE, pb.REASON_DRAINING),
    "engine_failed": (grpc.StatusCode.INTERNAL, pb.REASON_ENGINE_FAILED),
}
"""The status and the reason on the wire of each refusal."""


def ms(seconds: float | None) -> int:
    """Seconds as whole milliseconds of the wire; unknown is 0, known but shorter than one is 1."""
    return 0 if not seconds or seconds < 0 else max(1, min(round(seconds * 1000), 2**32 - 1))


def read_ask(request: pb.AskRequest, deadline_s: float | None, caller: str) -> core.Ask:
    """The question in a request.

    Args:
        request: as it came.
        deadline_s: seconds left of the call's own deadline, None if it has none.
        caller: who asks; sessions of different callers never meet.

    Raises:
        Refused: bad_request or no_vision_model, naming the field and never its content.
    """
    if not _ID.fullmatch(request.request_id):
        raise Refused("bad_request", "request_id must be 1 to 64 of: letters, digits, '.', '_', '-'")
    if len(request.session_id) > 128:
        raise Refused("bad_request", "session_id is longer than 128 characters")
    if request.task not in _TASKS:
        raise Refused("bad_request", f"task {request.task} is unknown to this server")
    task = _TASKS[request.task]
    if request.images or task == "caption":
        raise Refused("no_vision_model", "this server has no vision model: it answers text only")
    if len(request.json_schema.encode()) > SCHEMA_BYTES:
        raise Refused("bad_request", f"json_schema is longer than {SCHEMA_BYTES} bytes")
    prompt = Prompt(
        _turns(request),
        min(request.max_tokens or DEFAULT_TOKENS, MAX_TOKENS),
        request.json_schema,
        f"{caller}/{request.session_id}" if request.session_id else "",
    )
    b = request.budget
    return core.Ask(
        request.request_id, task, budget_left(b.first_token_ms, b.total_ms, b.elapsed_ms, deadline_s), prompt
    )


def _turns(request: pb.AskRequest) -> tuple[Turn, ...]:
    if not 1 <= len(request.turns) <= TURNS:
        raise Refused("bad_request", f"turns must be 1 to {TURNS}, not {len(request.turns)}")
    for number, turn in enumerate(request.turns):
        if turn.role not in _ROLES or (turn.role == pb.ROLE_SYSTEM and number > 0):
            raise Refused("bad_request", f"turns[{number}].role is not allowed there")
        if not turn.text:
            raise Refused("bad_request", f"turns[{number}].text is empty")
    if request.turns[-1].role != pb.ROLE_USER:
        raise Refused("bad_request", "the last of turns must be the user's")
    return tuple(Turn(_ROLES[t.role], t.text) for t in request.turns)


def write_event(seq: int, event: core.Event) -> pb.AskEvent:
    """One event of an answer as its message."""
    match event:
        case core.Accepted(model, ahead, first):
            return pb.AskEvent(
                seq=seq, accepted=pb.Accepted(model=model, ahead=ahead, first_token_ms=ms(first))
            )
        case core.Delta(text):
            return pb.AskEvent(seq=seq, delta=pb.Delta(text=text))
        case core.Progress(elapsed, queued):
            return pb.AskEvent(seq=seq, progress=pb.Progress(elapsed_ms=ms(elapsed), queued=queued))
        case core.Done(finished, queue_s, first_token_s, total_s):
            done = pb.Done(
                finish=pb.FINISH_STOP if finished.why == "stop" else pb.FINISH_LENGTH,
                prompt_tokens=finished.prompt_tokens,
                answer_tokens=finished.answer_tokens,
                queue_ms=ms(queue_s),
                first_token_ms=ms(first_token_s),
                total_ms=ms(total_s),
            )
            return pb.AskEvent(seq=seq, done=done)


def write_load(load: Load, draining: bool) -> edge_pb2.Load:
    """How busy the server is, as its message."""
    return edge_pb2.Load(
        busy=load.busy,
        waiting=load.waiting,
        wait_ms=ms(load.wait_s),
        first_token_ms=ms(load.first_token_s),
        draining=draining,
    )


def write_refusal(refused: Refused) -> tuple[grpc.StatusCode, pb.Refusal]:
    """A refusal as status and message."""
    code, reason = CODES[refused.why]
    return code, pb.Refusal(reason=reason, retry_after_ms=ms(refused.retry_after_s))
