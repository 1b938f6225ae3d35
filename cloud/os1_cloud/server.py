"""The process's life: bind, start, drain, stop.

cli imports it. Plain text only on this machine: whatever leaves it goes through TLS and needs a token.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from os1_cloud import wire
from os1_cloud.auth import Guard, Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import Engine
from os1_cloud.servicer import AssistServicer, EdgeServicer
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2_grpc

log = logging.getLogger(__name__)
SERVICES = ("", "os1.assist.v1.Edge", "os1.assist.v1.Assist")
"""What the health service knows; the empty name is the whole server."""
CALLS = 64
"""Calls at once, the last wall: the queue's bound comes long before."""
LAST_WORDS_S = 1.0
"""For statuses to leave after the last answer, and for an engine to stop after the last call was cut."""


class ServeError(Exception):
    """The server cannot start; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0: any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Reads `HOST:PORT` or `[IPV6]:PORT`.

    Raises:
        ServeError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host) != bracketed or not (port.isascii() and port.isdigit()):
        raise ServeError(f"{text!r} is no address; write HOST:PORT or [IPV6]:PORT, e.g. 127.0.0.1:50051")
    if int(port) > 65535:
        raise ServeError(f"{text!r} is no address; ports end at 65535")
    return Address(host, int(port))


def binding_problem(address: Address, tls: bool, tokens: bool) -> str | None:
    """Why the server must not listen there in this way, or None."""
    if address.loopback:
        return None
    if not tls:
        return (
            f"{address} can be reached from other machines, and without TLS anybody between could listen in; "
            "give --tls-cert and --tls-key, or listen on 127.0.0.1"
        )
    if not tokens:
        return f"{address} can be reached from other machines, and anybody could ask; give --tokens FILE"
    return None


def read_tls(cert: Path, key: Path) -> grpc.ServerCredentials:
    """The server's certificate chain and private key, both PEM.

    Raises:
        ServeError: a file cannot be read or is no PEM.
    """
    found = []
    for path, word in ((cert, b"CERTIFICATE"), (key, b"PRIVATE KEY")):
        try:
            content = path.read_bytes()
        except OSError as e:
            raise ServeError(f"{path} cannot be read: {e.strerror}") from e
        if b"-----BEGIN " not in content or word not in content:
            raise ServeError(f"{path} holds no PEM {word.decode().lower()}")
        found.append(content)
    return grpc.ssl_server_credentials([(found[1], found[0])])


class Server:
    """One engine behind one port. To be used inside a running event loop."""

    def __init__(
        self, answerer: Answerer, tokens: Tokens | None = None, tls: grpc.ServerCredentials | None = None
    ) -> None:
        self._answerer, self._tokens, self._tls = answerer, tokens, tls
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            interceptors=[Guard(tokens)] if tokens else [],
            maximum_concurrent_rpcs=CALLS,
            options=[
                ("grpc.so_reuseport", 0),  # a second server on the port must fail, not share
                ("grpc.max_receive_message_length", wire.REQUEST_BYTES),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),  # half of what clients send
                ("grpc.keepalive_time_ms", 10_000),  # a link that died in silence is a client that went away
                ("grpc.keepalive_timeout_ms", 5_000),
            ],
        )
        edge_pb2_grpc.add_EdgeServicer_to_server(EdgeServicer(answerer), self._server)
        assist_pb2_grpc.add_AssistServicer_to_server(AssistServicer(answerer, tokens), self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self, address: Address) -> int:
        """Listens, and returns the port.

        Raises:
            ServeError: the address is not allowed or not free, or the certificate does not work.
        """
        problem = binding_problem(address, self._tls is not None, self._tokens is not None)
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
        for service in SERVICES:
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()
        return port

    async def drain(self, grace_s: float) -> bool:
        """Tells load balancers, refuses new questions, lets the admitted ones end for `grace_s`, then stops.

        Returns whether all of them ended by themselves.
        """
        await self._health.enter_graceful_shutdown()
        ended = await self._answerer.drain(grace_s)
        await self._server.stop(LAST_WORDS_S if ended else 0)
        await self._answerer.drain(LAST_WORDS_S)
        return ended


async def serve(
    engine: Engine,
    address: Address,
    ready: Callable[[Address], None],
    *,
    tokens: Tokens | None = None,
    tls: grpc.ServerCredentials | None = None,
    grace_s: float = 10.0,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains and closes the engine.

    Args:
        engine: loaded.
        address: where to listen.
        ready: called once with the real address when calls are answered.
        tokens: who may call; None: everybody on this machine.
        tls: the certificate; None: plain text.
        grace_s: seconds that running answers get to end.

    Raises:
        ServeError: it cannot start.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        server = Server(Answerer(engine), tokens, tls)
        port = await server.start(address)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told.set)
        ready(Address(address.host, port))
        await told.wait()
        log.info("draining")
        if not await server.drain(grace_s):
            log.warning("some answers did not end within %.0f s and were cut", grace_s)
    finally:
        engine.close()
