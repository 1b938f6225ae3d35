"""The offload server as a language engine, over gRPC."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import grpc

from os1_edge.offload.engine import EngineError, Message, Schema, Task
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc

TASKS = {
    "reply": pb.TASK_REPLY,
    "caption": pb.TASK_CAPTION,
    "context": pb.TASK_CONTEXT,
    "plan": pb.TASK_PLAN,
    "consolidate": pb.TASK_CONSOLIDATE,
}

ROLES = {"system": pb.ROLE_SYSTEM, "user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT}

CHANNEL = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.max_reconnect_backoff_ms", 10_000),
)
"""A stream over a dead link is noticed after 25 s, not after TCP's quarter of an hour (grpc#32435)."""


class RemoteEngine:
    """Asks one server; one channel, opened with the first question."""

    name = "offload server"

    def __init__(
        self,
        server: str,
        token: str | None,
        roots: bytes | None,
        *,
        first_token_s: float,
        total_s: float = 30.0,
    ) -> None:
        """Args:
        server: ``host:port``.
        token: the wearer's, sent with each call.
        roots: certificates (PEM) that the server's must be signed by; None: the system's. A server on this
            machine is asked in plain text.
        first_token_s: told to the server, which refuses what it cannot keep.
        total_s: after this the call ends, whatever there is.
        """
        self._server, self._roots = server, roots
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._first_token_s, self._total_s = first_token_s, total_s
        self._session = uuid.uuid4().hex
        self._channel: Any = None

    async def close(self) -> None:
        """Closes the channel."""
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def prime(self, messages: Sequence[Message]) -> None:
        """A server has nothing to read ahead for one wearer."""

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine.stream``."""
        request = pb.AskRequest(
            request_id=uuid.uuid4().hex,
            session_id=self._session,
            budget=pb.Budget(
                first_token_ms=round(self._first_token_s * 1000), total_ms=round(self._total_s * 1000)
            ),
            task=TASKS[task],
            turns=[pb.Turn(role=ROLES[m.role], text=m.text) for m in messages],
            max_tokens=max_tokens,
            json_schema=json.dumps(schema) if schema is not None else "",
        )
        call = self._stub().Ask(request, metadata=self._metadata, timeout=self._total_s)
        try:
            while (event := await call.read()) is not grpc.aio.EOF:
                if event.WhichOneof("event") == "delta":
                    yield event.delta.text
        except grpc.aio.AioRpcError as e:
            # Only the code: a server's words may quote the prompt.
            raise EngineError(f"{self.name}: {e.code().name.lower().replace('_', ' ')}") from None
        finally:
            call.cancel()  # a dropped call is never cancelled by itself

    def _stub(self) -> Any:
        if self._channel is None:
            if _on_this_machine(self._server):
                self._channel = grpc.aio.insecure_channel(self._server, CHANNEL)
            else:
                credentials = grpc.ssl_channel_credentials(self._roots)
                self._channel = grpc.aio.secure_channel(self._server, credentials, CHANNEL)
        return assist_pb2_grpc.AssistStub(self._channel)


def _on_this_machine(server: str) -> bool:
    host = server.rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")


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
