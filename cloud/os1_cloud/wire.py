"""Messages of os1.assist.v1 to and from what core knows. Pure: no call, no clock.

servicer imports it.
"""

from __future__ import annotations

import re
from typing import Literal

import grpc

from os1_cloud import events
from os1_cloud.admission import Budget, Load, Refused, Task, Why, budget_left
from os1_cloud.engines import Prompt, Turn
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2, speech_pb2

REQUEST_BYTES = 4 * 1024 * 1024
"""Of one message; gRPC's own default, room for pictures."""
TURNS = 64
IMAGES = 4
"""Of one question: what a dialogue keeps of the scene (Furhat paper)."""
MAX_TOKENS = 1024
DEFAULT_TOKENS = 256
SCHEMA_BYTES = 16 * 1024
"""A schema becomes a grammar that is tried at each token, so it must stay small."""
TRACE = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
"""W3C traceparent, version 00."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ROLES: dict[int, Literal["system", "user", "assistant"]] = {
    pb.ROLE_SYSTEM: "system",
    pb.ROLE_USER: "user",
    pb.ROLE_ASSISTANT: "assistant",
}
TASKS: dict[Task, pb.Task.ValueType] = {
    "reply": pb.TASK_REPLY,
    "caption": pb.TASK_CAPTION,
    "context": pb.TASK_CONTEXT,
    "plan": pb.TASK_PLAN,
    "consolidate": pb.TASK_CONSOLIDATE,
    "transcribe": pb.TASK_TRANSCRIBE,
    "synthesize": pb.TASK_SYNTHESIZE,
}
_ASKED: dict[int, Task] = {
    number: task for task, number in TASKS.items() if task not in ("transcribe", "synthesize")
}
_ASKED[pb.TASK_UNSPECIFIED] = "reply"
_S = grpc.StatusCode
CODES: dict[Why, tuple[grpc.StatusCode, pb.Reason.ValueType]] = {
    "bad_request": (_S.INVALID_ARGUMENT, pb.REASON_BAD_REQUEST),
    "no_vision_model": (_S.INVALID_ARGUMENT, pb.REASON_NO_VISION_MODEL),
    "too_long": (_S.INVALID_ARGUMENT, pb.REASON_TOO_LONG),
    "bad_schema": (_S.INVALID_ARGUMENT, pb.REASON_BAD_SCHEMA),
    "bad_image": (_S.INVALID_ARGUMENT, pb.REASON_BAD_IMAGE),
    "no_such_model": (_S.INVALID_ARGUMENT, pb.REASON_NO_SUCH_MODEL),
    "need_image": (_S.FAILED_PRECONDITION, pb.REASON_NEED_IMAGE),
    "expired": (_S.DEADLINE_EXCEEDED, pb.REASON_EXPIRED),
    "too_late": (_S.DEADLINE_EXCEEDED, pb.REASON_TOO_LATE),
    "queue_full": (_S.RESOURCE_EXHAUSTED, pb.REASON_QUEUE_FULL),
    "too_many": (_S.RESOURCE_EXHAUSTED, pb.REASON_TOO_MANY),
    "too_often": (_S.RESOURCE_EXHAUSTED, pb.REASON_TOO_OFTEN),
    "quota": (_S.RESOURCE_EXHAUSTED, pb.REASON_QUOTA),
    "draining": (_S.UNAVAILABLE, pb.REASON_DRAINING),
    "unknown_request": (_S.NOT_FOUND, pb.REASON_UNKNOWN_REQUEST),
    "lost": (_S.OUT_OF_RANGE, pb.REASON_LOST),
    "cancelled": (_S.CANCELLED, pb.REASON_CANCELLED),
    "superseded": (_S.ABORTED, pb.REASON_SUPERSEDED),
    "engine_failed": (_S.INTERNAL, pb.REASON_ENGINE_FAILED),
    "engine_lost": (_S.UNAVAILABLE, pb.REASON_ENGINE_LOST),
}
"""The status and the reason on the wire of each refusal."""


def ms(seconds: float | None) -> int:
    """Seconds as whole milliseconds of the wire; unknown is 0, known but shorter than one is 1."""
    return 0 if not seconds or seconds < 0 else max(1, min(round(seconds * 1000), 2**32 - 1))


def read_id(request_id: str) -> str:
    """A request_id that may stand in a log.

    Raises:
        Refused: bad_request.
    """
    if not _ID.fullmatch(request_id):
        raise Refused("bad_request", "request_id must be 1 to 64 of: letters, digits, '.', '_', '-'")
    return request_id


def read_budget(budget: pb.Budget, deadline_s: float | None) -> Budget:
    """What is left of a budget; `deadline_s`: seconds left of the call's own deadline, None if none."""
    return budget_left(budget.first_token_ms, budget.total_ms, budget.elapsed_ms, deadline_s)


def read_ask(request: pb.AskRequest, deadline_s: float | None, caller: str, trace: str = "") -> events.Ask:
    """The question in a request.

    Args:
        request: as it came.
        deadline_s: seconds left of the call's own deadline, None if it has none.
        caller: who asks; sessions of different callers never meet.
        trace: the call's traceparent, or "".

    Raises:
        Refused: bad_request or bad_image, naming the field and never its content.
    """
    if len(request.session_id) > 128:
        raise Refused("bad_request", "session_id is longer than 128 characters")
    if request.task not in _ASKED:
        raise Refused("bad_request", f"task {request.task} is not for Ask")
    if len(request.json_schema.encode()) > SCHEMA_BYTES:
        raise Refused("bad_request", f"json_schema is longer than {SCHEMA_BYTES} bytes")
    if request.json_schema and request.answer_prefix:
        raise Refused("bad_request", "answer_prefix goes with free text only, not with json_schema")
    budget = read_budget(request.budget, deadline_s)
    prompt = Prompt(
        _turns(request),
        1 if request.prime else min(request.max_tokens or DEFAULT_TOKENS, MAX_TOKENS),
        request.json_schema,
        f"{caller}/{request.session_id}" if request.session_id else "",
        request.answer_prefix,
        budget.total_s,
    )
    return events.Ask(
        read_id(request.request_id),
        _ASKED[request.task],
        budget,
        prompt,
        caller,
        request.model,
        request.background or request.prime,
        request.latest_only,
        request.prime,
        _pictures(request),
        trace if TRACE.fullmatch(trace) else "",
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


def _pictures(request: pb.AskRequest) -> tuple[events.Picture, ...]:
    if len(request.images) > IMAGES:
        raise Refused("bad_request", f"images may be {IMAGES} at most, not {len(request.images)}")
    for number, image in enumerate(request.images):
        if len(image.sha256) not in (0, 32):
            raise Refused("bad_request", f"images[{number}].sha256 is not 32 bytes")
        if not image.data and not image.sha256:
            raise Refused("bad_image", f"images[{number}] has neither data nor sha256")
    return tuple(events.Picture(image.data, image.sha256) for image in request.images)


def write_event(seq: int, event: events.Event, node: str) -> pb.AskEvent:
    """One event of an answer as its message."""
    match event:
        case events.Accepted(model, ahead, first):
            accepted = pb.Accepted(model=model, ahead=ahead, first_token_ms=ms(first), node=node)
            return pb.AskEvent(seq=seq, accepted=accepted)
        case events.Delta(text):
            return pb.AskEvent(seq=seq, delta=pb.Delta(text=text))
        case events.Progress(elapsed, queued):
            return pb.AskEvent(seq=seq, progress=pb.Progress(elapsed_ms=ms(elapsed), queued=queued))
        case events.Done(finished, queue_s, first_token_s, total_s):
            done = pb.Done(
                finish=pb.FINISH_STOP if finished.why == "stop" else pb.FINISH_LENGTH,
                prompt_tokens=finished.prompt_tokens,
                answer_tokens=finished.answer_tokens,
                cached_tokens=finished.cached_tokens,
                queue_ms=ms(queue_s),
                first_token_ms=ms(first_token_s),
                total_ms=ms(total_s),
            )
            return pb.AskEvent(seq=seq, done=done)


def write_load(load: Load, draining: bool, tasks: dict[Task, Load]) -> edge_pb2.Load:
    """How busy the server is, as its message; `tasks`: the same by kind."""
    return edge_pb2.Load(
        busy=load.busy,
        waiting=load.waiting,
        wait_ms=ms(load.wait_s),
        first_token_ms=ms(load.first_token_s),
        draining=draining,
        slots=load.slots,
        tasks=[
            edge_pb2.TaskLoad(
                task=TASKS[task],
                wait_ms=ms(each.wait_s),
                first_token_ms=ms(each.first_token_s),
                deviation_ms=ms(each.deviation_s),
            )
            for task, each in tasks.items()
        ],
    )


def read_config(config: speech_pb2.RecognizeConfig, rate: int) -> None:
    """Checks how a client sends its sound.

    Raises:
        Refused: bad_request.
    """
    if config.encoding not in (speech_pb2.ENCODING_UNSPECIFIED, speech_pb2.ENCODING_PCM_S16LE):
        raise Refused("bad_request", f"encoding {config.encoding} is unknown to this server")
    if config.sample_rate_hz != rate:
        raise Refused("bad_request", f"sample_rate_hz must be {rate}")
    if len(config.language) > 16:
        raise Refused("bad_request", "language is longer than 16 characters")


def write_refusal(refused: Refused, node: str = "") -> tuple[grpc.StatusCode, pb.Refusal]:
    """A refusal as status and message."""
    code, reason = CODES[refused.why]
    return code, pb.Refusal(
        reason=reason,
        retry_after_ms=ms(refused.retry_after_s),
        expected_ms=ms(refused.expected_s),
        node=node,
    )
