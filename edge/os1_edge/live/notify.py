"""Tells systemd that the companion is up and alive (sd_notify(3)); without systemd, nothing."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping


class Notifier:
    """One service's messages to its manager."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._path = environ.get("NOTIFY_SOCKET", "")
        usec = environ.get("WATCHDOG_USEC", "")
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._every_s = int(usec) / 2e6 if usec.isdigit() and mine else None
        """Half of what the manager waits for a sign of life."""

    def tell(self, state: str) -> None:
        """Sends ``state``, e.g. "READY=1". A manager that does not listen is not our trouble."""
        if not self._path:
            return
        name = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto(state.encode(), name)
        except OSError:
            return

    async def alive(self) -> None:
        """Signs of life from the loop that does the work, for as long as it does."""
        if not self._path or self._every_s is None:
            return
        while True:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self._every_s)
