"""The RPCs of os1.assist.v1: thin, everything is decided in core and translated in wire.

server imports it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from os1_cloud import __version__, wire
from os1_cloud.admission import Refused
from os1_cloud.auth import REFUSAL, Tokens
from os1_cloud.core import Answerer
from os1_proto.assist.v1 import assist_pb2, assist_pb2_grpc, edge_pb2, edge_pb2_grpc

log = logging.getLogger(__name__)


class EdgeServicer(edge_pb2_grpc.EdgeServicer):
    """What the server is, and how busy."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    async def Hello(self, request: edge_pb2.HelloRequest, context: Any) -> edge_pb2.HelloReply:
        """See edge.proto."""
        log.info("hello from a client of version %r", request.client_version[:32])
        engine = self._answerer.engine
        return edge_pb2.HelloReply(
            server_version=__version__,
            api_versions=["os1.assist.v1"],
            models=[edge_pb2.Model(name=engine.name, context_tokens=engine.context_tokens, vision=False)],
            limits=edge_pb2.Limits(
                request_bytes=wire.REQUEST_BYTES,
                turns=wire.TURNS,
                max_tokens=wire.MAX_TOKENS,
                json_schema_bytes=wire.SCHEMA_BYTES,
                queue=self._answerer.queue,
            ),
            features=["json_schema"],
        )

    async def Probe(self, request: edge_pb2.ProbeRequest, context: Any) -> edge_pb2.ProbeReply:
        """See edge.proto."""
        load = wire.write_load(self._answerer.load, self._answerer.draining)
        return edge_pb2.ProbeReply(received_bytes=len(request.padding), load=load)


class AssistServicer(assist_pb2_grpc.AssistServicer):
    """Answers."""

    def __init__(self, answerer: Answerer, tokens: Tokens | None) -> None:
        self._answerer, self._tokens = answerer, tokens

    async def Ask(self, request: assist_pb2.AskRequest, context: Any) -> AsyncIterator[assist_pb2.AskEvent]:
        """See assist.proto."""
        try:
            ask = wire.read_ask(request, context.time_remaining(), self._caller(context))
            seq = 0
            # Closed here, not by the garbage collector: a client that went away frees the engine now.
            async with aclosing(self._answerer.ask(ask)) as events:
                async for event in events:
                    seq += 1
                    yield wire.write_event(seq, event)
        except Refused as refused:
            code, why = wire.write_refusal(refused)
            await context.abort(code, str(refused), ((REFUSAL, why.SerializeToString()),))

    def _caller(self, context: Any) -> str:
        if self._tokens is None:
            return ""
        return self._tokens.who(context.invocation_metadata()) or ""
