"""How many may stand at the page's door, and for how long: who is not paired can take neither the companion's
file descriptors nor its patience (slow requests, thousands of connections)."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any

MOST = 64
"""Connections at once. A browser opens six and a socket, and eight browsers are paired at most."""

EACH = 24
"""Of them from one address."""

HEAD_S = 10.0
"""A connection over which no paired browser has asked anything is closed after this; who types the code opens
another."""


class Gate:
    """Counts connections; ``MOST`` and ``EACH`` bound them."""

    def __init__(self) -> None:
        self.here: Counter[str] = Counter()

    def enters(self, address: str) -> bool:
        """Whether another connection from ``address`` may come in; it counts until ``leaves``."""
        if self.here.total() >= MOST or self.here[address] >= EACH:
            return False
        self.here[address] += 1
        return True

    def leaves(self, address: str) -> None:
        """A connection has ended."""
        self.here[address] -= 1
        if not self.here[address]:
            del self.here[address]


class Visitor(asyncio.Protocol):
    """One connection: passes everything on to the server's own protocol, if it may come in. It is counted
    from its first moment, so that an unfinished TLS handshake is a visitor as well."""

    def __init__(
        self,
        gate: Gate,
        make: Callable[[], asyncio.Protocol],
        paired: set[Any],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``make`` makes the server's protocol, which is in ``paired`` once a paired browser has asked."""
        self._gate, self._make, self._paired, self._tls = gate, make, paired, tls
        self._inner: asyncio.Protocol | None = None
        self._counted = False
        self._handshake: asyncio.Task[None] | None = None
        self._early = b""
        """What came with the end of the handshake."""
        self._address = ""
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        assert isinstance(transport, asyncio.Transport)
        self._address = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._gate.enters(self._address):
            transport.abort()
            return
        self._counted = True

        def leave_if_unpaired() -> None:
            if self._inner not in self._paired:
                transport.abort()

        self._patience = asyncio.get_running_loop().call_later(HEAD_S, leave_if_unpaired)
        if self._tls is None:
            self._come_in(transport)
        else:
            transport.pause_reading()  # the handshake's first bytes are for TLS alone
            self._handshake = asyncio.create_task(self._shake_hands(transport, self._tls))

    async def _shake_hands(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secure = await asyncio.get_running_loop().start_tls(transport, self, tls, server_side=True)
        except OSError:  # also of ``ssl``: it speaks no TLS, does not trust the certificate, or is gone
            transport.abort()
            return
        if self._counted and secure is not None:
            self._come_in(secure)

    def _come_in(self, transport: asyncio.Transport) -> None:
        inner = self._inner = self._make()
        inner.connection_made(transport)
        if self._early:
            early, self._early = self._early, b""
            inner.data_received(early)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        if self._inner is not None:
            self._inner.data_received(data)
        else:
            self._early += data  # of one step of the loop, before the handshake's task goes on

    def eof_received(self) -> bool | None:
        """See ``asyncio.Protocol``."""
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        """See ``asyncio.Protocol``."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See ``asyncio.Protocol``."""
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        if self._patience is not None:
            self._patience.cancel()
        if self._counted:
            self._counted = False
            self._gate.leaves(self._address)
        if self._inner is not None:
            inner, self._inner = self._inner, None
            self._paired.discard(inner)
            inner.connection_lost(exc)
