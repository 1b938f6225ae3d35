"""The process's life: bind, start, drain, stop.

cli imports it. Plain text only on this machine: whatever leaves it goes through TLS and needs a credential.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence

import grpc
from grpc_health.v1 import health_pb2

from os1_cloud import wire
from os1_cloud.address import Address, ServeError, binding_problem, parse_address
from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.guard import Calls, Gatekeeper, Guarded
from os1_cloud.health import CHECKS, WATCHES, Health
from os1_cloud.servicer import AssistServicer, EdgeServicer, SpeechServicer
from os1_cloud.speech import Ears, Mouth
from os1_cloud.tls import read_tls
from os1_proto.assist.v1 import (
    assist_pb2,
    assist_pb2_grpc,
    edge_pb2,
    edge_pb2_grpc,
    speech_pb2,
    speech_pb2_grpc,
)

__all__ = ["Address", "ServeError", "Server", "binding_problem", "parse_address", "read_tls", "serve"]

log = logging.getLogger(__name__)
SERVICES = tuple(
    file.DESCRIPTOR.services_by_name[name].full_name
    for file, name in ((edge_pb2, "Edge"), (assist_pb2, "Assist"), (speech_pb2, "Speech"))
)
CALLS = 1024
"""Calls of wearers at once, the last wall: the queues' and each wearer's bounds come long before."""
LAST_WORDS_S = 1.0
"""For statuses to leave after the last answer, and for engines and calls to stop after they were cut."""
OPTIONS = [
    ("grpc.so_reuseport", 0),  # a second server on the port must fail, not share
    ("grpc.max_receive_message_length", wire.REQUEST_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    # Half of what a client may send at most: at an equal interval gRPC takes pings for an attack.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
    ("grpc.keepalive_time_ms", 10_000),  # a link that died in silence is a client that went away
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Connections find their way to new servers behind a balancer.
    ("grpc.max_connection_age_ms", 600_000),
    ("grpc.max_connection_age_grace_ms", 120_000),
]


class Server:
    """The engines behind one port. To be used inside a running event loop."""

    def __init__(
        self,
        answerer: Answerer,
        tokens: Tokens | None = None,
        tls: grpc.ServerCredentials | None = None,
        *,
        certificates: bool = False,
        ears: Ears | None = None,
        mouth: Mouth | None = None,
        node: str = "",
        reflection: bool = False,
        watchers: Sequence[Calls] = (),
        balancer_s: float = 0.0,
    ) -> None:
        """Args:
        answerer: the language engines.
        tokens: who may call; None: nobody needs a token.
        tls: the certificate; None: plain text.
        certificates: whether clients are known by their certificates; `tls` then has to ask for them.
        ears, mouth: speech, where there is any.
        node: what this server calls itself.
        reflection: whether clients may ask for the services' descriptions.
        watchers: are told about each call.
        balancer_s: seconds between NOT_SERVING and the refusal of new questions, for balancers to notice.
        """
        self._answerer, self._tls, self._balancer_s = answerer, tls, balancer_s
        self._credential = tokens is not None or certificates
        self._speech = [desk for desk in (ears, mouth) if desk is not None]
        self._server = grpc.aio.server(maximum_concurrent_rpcs=CALLS + CHECKS + WATCHES, options=OPTIONS)
        node = node or socket.gethostname()
        self._calls = Guarded(self._server, Gatekeeper(tokens, certificates), answerer.wearers, watchers)
        guarded: grpc.aio.Server = self._calls  # type: ignore[assignment]  # has what registering needs
        edge_pb2_grpc.add_EdgeServicer_to_server(EdgeServicer(answerer, ears, mouth, node), guarded)
        assist_pb2_grpc.add_AssistServicer_to_server(AssistServicer(answerer, mouth, node), guarded)
        speech_pb2_grpc.add_SpeechServicer_to_server(SpeechServicer(ears, mouth, node), guarded)
        self._health = Health(self._server).state
        if reflection:
            _add_reflection(guarded)

    async def start(self, address: Address) -> int:
        """Listens, and returns the port.

        Raises:
            ServeError: the address is not allowed or not free, or the certificate does not work.
        """
        problem = binding_problem(address, self._tls is not None, self._credential)
        if problem is not None:
            raise ServeError(problem)
        try:
            if self._tls is None:
                port = self._server.add_insecure_port(str(address))
            else:
                port = self._server.add_secure_port(str(address), self._tls)
        except RuntimeError as e:
            hint = "" if self._tls is None else ", or certificate and key do not belong together"
            raise ServeError(f"cannot listen on {address}: it is in use or not this machine's{hint}") from e
        for service in ("", *SERVICES):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()
        return port

    async def drain(self, grace_s: float) -> bool:
        """Tells load balancers, refuses new questions, lets calls end for `grace_s`, ends the rest, stops.

        Returns whether all of them, and all answers, ended by themselves.
        """
        await self._health.enter_graceful_shutdown()
        await asyncio.sleep(self._balancer_s)
        for desk in self._speech:
            desk.draining = True
        ended = await asyncio.gather(self._answerer.drain(grace_s), self._calls.idle(grace_s))
        # What is left ends with UNAVAILABLE, and is asked elsewhere.
        await self._answerer.cut(LAST_WORDS_S)
        await self._calls.cut(LAST_WORDS_S)
        await self._server.stop(LAST_WORDS_S)
        return all(ended)


def _add_reflection(server: grpc.aio.Server) -> None:
    """Whoever has a credential may ask what there is (`grpcurl list`)."""
    from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

    names = [*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME]
    servicer = reflection.aio.ReflectionServicer(service_names=names)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)


async def serve(
    server: Server,
    address: Address,
    ready: Callable[[Address], None],
    *,
    grace_s: float = 10.0,
    reload: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Args:
        server: not started yet.
        address: where to listen.
        ready: called once with the real address when calls are answered.
        grace_s: seconds that running answers get to end.
        reload: called on SIGHUP.

    Raises:
        ServeError: it cannot start.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    port = await server.start(address)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    loop.add_signal_handler(signal.SIGHUP, reload)
    ready(Address(address.host, port))
    await told.wait()
    log.info("draining")
    if not await server.drain(grace_s):
        log.warning("some answers did not end within %.0f s and were cut", grace_s)
