"""Connections to a server: one for questions with their pictures, one for the small things beside them.

Two, since under loss all streams of one TCP connection wait for the packet that is missing: a probe or a
cancellation must not wait behind a picture.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Literal

# Else gRPC's own core writes a line for each failed handshake; an outage is told of once, by us.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc

from os1_edge.offload.engine import EngineError
from os1_edge.offload.far import Stranger
from os1_edge.offload.offers import Offers

RETRIED = [
    {"service": "os1.assist.v1.Assist", "method": "Cancel"},
    {"service": "os1.assist.v1.Edge", "method": "Hello"},
]
"""Not Probe, whose time would be that of several (Karn); not Ask, which the router repeats on the device."""

OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 250),
    # Less than the longest: equal ones over TLS never come back (grpc#33593).
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 3_000),
    # A new channel is to be a new connection, not the old one's with its back-off.
    ("grpc.use_local_subchannel_pool", 1),
    (
        "grpc.service_config",
        json.dumps(
            {
                "methodConfig": [
                    {
                        "name": RETRIED,
                        "retryPolicy": {
                            "maxAttempts": 3,
                            "initialBackoff": "0.2s",
                            "maxBackoff": "1s",
                            "backoffMultiplier": 2,
                            "retryableStatusCodes": ["UNAVAILABLE"],
                        },
                    }
                ]
            }
        ),
    ),
)

PING_MS = {"bulk": 5_000, "control": 10_000}
"""A stream over a dead link is noticed after 8 s, not after TCP's quarter of an hour (grpc#32435). The server
takes pings that are 2 s apart; half of the client's interval, as with equal ones both count strikes."""

NOT_TODAY = (9, 10)
"""X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED (openssl-verification-options)."""

GRACE_S = 30.0
"""Calls on channels that were replaced may go on so long."""

REPLACED = 8
"""Pairs that may still be ending; beyond that the oldest is cut."""


@dataclass(slots=True)
class Pair:
    """Two channels to one address. Behind a name there may be several servers, so that even the two may end
    at different ones."""

    bulk: Any
    control: Any
    number: int = 0
    """Of the address."""
    offers: Offers | None = None
    """What the server at the end of ``control`` said that it is."""
    greeted_at: float = float("-inf")
    """When it said so, by the loop's clock."""
    greeting: asyncio.Lock = field(default_factory=asyncio.Lock)
    failed: bool = False
    """Nobody answers at the other end, or not much longer."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom to believe and who to be. PEM."""

    roots: bytes | None = None
    """Certificates that the server's must be signed by; None: the system's."""
    key: bytes | None = None
    """The device's own, for a server that wants a client certificate."""
    certificate: bytes | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    """Without the brackets of an IPv6 address."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def here(self) -> bool:
        """Whether it is this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


ADDRESSES = 16
"""Of one setting: more than a place has front doors; each may cost a second of looking for a way."""


def addresses(server: str) -> tuple[Address, ...]:
    """``HOST:PORT``, or several with commas between them: servers that stand for each other, the first first.

    Raises:
        EngineError: one has no port, or there are too many.
    """
    found = []
    for each in server.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not colon or not host or not port.isdigit():
            raise EngineError(f"{each.strip()!r} is no address of a server; write HOST:PORT")
        found.append(Address(host.strip("[]"), int(port)))
    if len(found) > ADDRESSES:
        raise EngineError(
            f"{len(found)} addresses of servers; name {ADDRESSES} at most, or a balancer before them"
        )
    return tuple(found)


class Channels:
    """The newest pair, and those that it replaced. Use it in one loop.

    One address is kept to until it fails, and all addresses of its name are gRPC's to try (pick_first). Then
    a new pair goes to the next: nothing is balanced here.
    """

    def __init__(self, server: str, trust: Trust) -> None:
        """``server``: see ``addresses``; on this machine it is spoken to in plain text, unless ``trust`` has
        roots.

        Raises:
            EngineError: an address is none.
        """
        self._addresses, self._trust = addresses(server), trust
        self._pair: Pair | None = None
        self._next = self._tried = 0
        """Number of the address that a new pair goes to; ``_tried``: that the newest went to."""
        self._ending: list[asyncio.Task[None]] = []

    @property
    def pair(self) -> Pair:
        """The newest."""
        if self._pair is None:
            self._pair = self._opened(self._next)
        return self._pair

    def open(self) -> Pair:
        """A new pair, not connected yet: to the address in use, unless that one failed, then each time to the
        next."""
        pair = self._opened(self._next)
        self._next = self._after(pair)
        return pair

    def adopt(self, pair: Pair) -> None:
        """Later calls take ``pair``; those on the old one go on. Its other half is connected now."""
        old, self._pair, self._next = self._pair, pair, pair.number
        pair.bulk.get_state(try_to_connect=True)
        if old is not None and old is not pair:
            self._end(old, GRACE_S)

    def answered(self, pair: Pair, *, well: bool = True) -> None:
        """Somebody answers at the other end of ``pair``; not ``well``: nobody, or not much longer."""
        pair.failed = not well
        if pair is self._pair:
            self._next = pair.number if well else self._after(pair)

    def discard(self, pair: Pair) -> None:
        """``pair`` was never adopted."""
        self._end(pair, None)

    async def close(self) -> None:
        """Cuts everything."""
        if self._pair is not None:
            self._end(self._pair, None)
            self._pair = None
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def stranger(self, timeout_s: float) -> Stranger:
        """What is wrong with whoever answers at the server's address, or with this device in their eyes."""
        at = self._addresses[self._tried]
        if self._plain(at):
            return ""
        context = ssl.create_default_context(
            cadata=self._trust.roots.decode("ascii", "replace") if self._trust.roots else None
        )
        context.set_alpn_protocols(["h2"])
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(at.host, at.port, ssl=context)
                # In HTTP/2 a server speaks first, unless it hangs up on a client without a certificate.
                return "" if await reader.read(1) else "barred"
        except ssl.SSLCertVerificationError as e:
            return "outdated" if e.verify_code in NOT_TODAY else "forged"
        except ssl.SSLError:
            return "forged" if writer is None else ""
        except (OSError, TimeoutError):
            return ""
        finally:
            if writer is not None:
                writer.close()
                with suppress(OSError, ssl.SSLError, TimeoutError):
                    await asyncio.wait_for(writer.wait_closed(), 0.2)

    def _after(self, pair: Pair) -> int:
        return (pair.number + 1) % len(self._addresses)

    def _plain(self, at: Address) -> bool:
        """Whether nothing leaves this machine, and no certificate is asked for."""
        return at.here and self._trust.roots is None

    def _opened(self, number: int) -> Pair:
        at, self._tried = self._addresses[number], number
        return Pair(self._channel(at, "bulk"), self._channel(at, "control"), number)

    def _channel(self, at: Address, kind: Literal["bulk", "control"]) -> Any:
        options = (*OPTIONS, ("grpc.keepalive_time_ms", PING_MS[kind]))
        if self._plain(at):
            return grpc.aio.insecure_channel(str(at), options)
        trust = self._trust
        credentials = grpc.ssl_channel_credentials(trust.roots, trust.key, trust.certificate)
        return grpc.aio.secure_channel(str(at), credentials, options)

    def _end(self, pair: Pair, grace_s: float | None) -> None:
        self._ending = [task for task in self._ending if not task.done()]
        while len(self._ending) >= REPLACED:
            self._ending.pop(0).cancel()
        self._ending += [asyncio.create_task(_closed(c, grace_s)) for c in (pair.bulk, pair.control)]


async def _closed(channel: Any, grace_s: float | None) -> None:
    try:
        await channel.close(grace_s)
    except asyncio.CancelledError:
        await channel.close(None)
        raise
