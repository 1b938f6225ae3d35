"""Which network this device is in, and whether it costs: hints from Linux.

Everything here is read from /proc; elsewhere there are no hints and the probes alone decide.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Protocol

ROUTES = Path("/proc/net/route")
NEIGHBOURS = Path("/proc/net/arp")

POLL_S = 1.0
"""Between two looks at the routes where the kernel does not tell of changes."""

_LINK, _ADDRESS, _ROUTE = 0x1, 0x10, 0x40
"""RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE (linux/rtnetlink.h)."""


@dataclass(frozen=True, slots=True)
class Network:
    """Where packets go out."""

    name: str
    """Opaque: no address can be read from it; "" where there are no hints."""
    interface: str = ""
    up: bool = True
    """False: there is surely no network."""


NO_HINTS = Network("")


def network(routes: str, neighbours: str) -> Network:
    """The network of the default route; told apart by interface and gateway (address and hardware address).

    Args:
        routes: /proc/net/route.
        neighbours: /proc/net/arp.
    """
    rows = [line.split() for line in routes.splitlines()[1:]]
    defaults = [r for r in rows if len(r) >= 8 and r[1] == "00000000" and int(r[3], 16) & 1]
    if not defaults:
        # A server on this machine or on this link needs no default route.
        return Network("", up=True) if not rows else Network(_opaque("no default route"), rows[0][0])
    best = min(defaults, key=lambda r: int(r[6]))
    gateway = ".".join(str(b) for b in reversed(bytes.fromhex(best[2])))
    hardware = next(
        (r[3] for line in neighbours.splitlines()[1:] if (r := line.split()) and r[0] == gateway), ""
    )
    return Network(_opaque(f"{best[0]} {gateway} {hardware}"), best[0])


def _opaque(words: str) -> str:
    return hashlib.sha256(f"os1 network {words}".encode()).hexdigest()[:12]


def read_network() -> Network:
    """The network that this device is in now."""
    try:
        return network(ROUTES.read_text(), NEIGHBOURS.read_text() if NEIGHBOURS.exists() else "")
    except (OSError, ValueError):
        return NO_HINTS


def costs(interface: str, patterns: Collection[str]) -> bool:
    """Whether ``interface`` is one of those that cost (shell patterns such as "wwan*")."""
    return any(fnmatch(interface, pattern) for pattern in patterns)


class Around(Protocol):
    """What the device knows of its surroundings; the router asks before it decides."""

    def network(self) -> Network:
        """The network that the device is in now."""
        ...

    async def changes(self, changed: Callable[[], None]) -> None:
        """Calls ``changed`` when the network is another than before. Until it is cancelled."""
        ...


class Quiet:
    """No hints at all."""

    def network(self) -> Network:
        """See ``Around``."""
        return NO_HINTS

    async def changes(self, changed: Callable[[], None]) -> None:
        """See ``Around``."""
        await asyncio.Event().wait()


class Linux:
    """Hints from /proc, /sys and the kernel's own news; without them as quiet as ``Quiet``."""

    def network(self) -> Network:
        """See ``Around``."""
        return read_network()

    async def changes(self, changed: Callable[[], None]) -> None:
        """See ``Around``."""
        now, told = self.network(), _kernel()
        try:
            while True:
                if told is None:
                    await asyncio.sleep(POLL_S)
                else:
                    await asyncio.get_running_loop().sock_recv(told, 65_536)
                if (new := self.network()) != now:
                    now = new
                    changed()
        finally:
            if told is not None:
                told.close()


def _kernel() -> socket.socket | None:
    """A socket that becomes readable when an interface, an address or a route changes."""
    with suppress(AttributeError, OSError):
        told = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        told.setblocking(False)
        told.bind((0, _LINK | _ADDRESS | _ROUTE))
        return told
    return None
