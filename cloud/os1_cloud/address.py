"""Where to listen. Pure.

server, settings and cli import it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


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


def binding_problem(address: Address, tls: bool, credential: bool) -> str | None:
    """Why the server must not listen there in this way, or None.

    Args:
        address: where.
        tls: whether the link is encrypted.
        credential: whether callers need a token or a certificate.
    """
    if address.loopback:
        return None
    if not tls:
        return (
            f"{address} can be reached from other machines, and without TLS anybody between could listen in; "
            "give --tls-cert and --tls-key, or listen on 127.0.0.1"
        )
    if not credential:
        return (
            f"{address} can be reached from other machines, and anybody could ask; "
            "give --tokens FILE, or --client-ca FILE"
        )
    return None
