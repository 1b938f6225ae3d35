"""A server that this process starts for itself and keeps: vLLM or llama-server on this machine.

upstream imports it. keeper is the process between, which ends the server whatever becomes of this one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from os1_cloud.engines import EngineError
from os1_cloud.engines.http import Endpoint, endpoint
from os1_cloud.engines.pulse import ill, look

log = logging.getLogger(__name__)
PORT = "{port}"
"""In a command and its url: a port of loopback that is free when the server is started."""
URL = f"http://127.0.0.1:{PORT}/v1"
POLL_S = 0.25
"""Between two looks whether it is ready: a small model is loaded in two seconds."""
TELL_S = 15.0
"""Between two lines of the log while it starts."""
FIRST_S, LONGEST_S = 0.5, 60.0
"""Before it is started again: doubled each time, up to the longest."""
STEADY_S = 300.0
"""A server that ran for so long has not failed at its start: its waits begin anew."""


def wait_s(failures: int) -> float:
    """Before the next start.

    Args:
        failures: ends in a row, each before `STEADY_S`; 0: the first.
    """
    return min(FIRST_S * 2.0 ** min(failures, 16), LONGEST_S)


class _Keeper(asyncio.SubprocessProtocol):
    """What a keeper says."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        """Two lines at most, see keeper; an empty one: it is gone."""
        self._rest = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.said.put_nowait(json.loads(line))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.said.put_nowait({})


class Command:
    """One server. To be used inside a running event loop."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        url: str,
        headers: list[tuple[str, str]],
        start_s: float,
    ) -> None:
        """Args:
            name: for messages.
            command: its arguments, the program first; no shell reads them. `PORT` in them is replaced.
            url: where it will be, with `PORT`.
            headers: sent when it is asked whether it is ready.
            start_s: seconds it may take to be ready.

        Raises:
            ValueError: `url` is none.
        """
        self.to: Endpoint | None = None
        """Where it is, while it is ready."""
        self.pid = 0
        """Of its process, and its process group, while it runs."""
        self.starts = 0
        self.ready_s = wait_s(0)
        """What the last start took, seconds."""
        self._name, self._command, self._url = name, tuple(command), url
        self._headers, self._start_s = headers, start_s
        self._keeper: asyncio.SubprocessTransport | None = None
        self._end: asyncio.Future[dict[str, Any]] | None = None
        self._keeping: asyncio.Task[None] | None = None
        endpoint(url.replace(PORT, "1"))

    async def start(self) -> None:
        """Starts it, waits until it is ready, and from then on starts it again whenever it ends.

        Raises:
            EngineError: it cannot be started, ended before it was ready, or took too long.
        """
        await self._start()
        self._keeping = asyncio.ensure_future(self._keep())

    def close(self) -> None:
        """Ends it: its keeper does, within `keeper.TERM_S`."""
        if self._keeping is not None:
            self._keeping.cancel()
        self._let_go()

    async def _keep(self) -> None:
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            if self._end is not None:
                end = await self._end
                if not end:  # the keeper was killed, so nobody has ended what it kept
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(self.pid, signal.SIGKILL)
                log.error("%s: its server ended with code %s", self._name, end.get("code", "unknown"))
            self._let_go()
            if loop.time() - began >= STEADY_S:
                failures = 0
            await asyncio.sleep(wait_s(failures))
            failures += 1
            try:
                await self._start()
            except EngineError as e:
                log.error("%s", e)

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        began, port = loop.time(), _free_port()
        to = endpoint(self._url.replace(PORT, str(port)))
        self.starts += 1
        try:
            keeper = await self._kept(port)
            self._end = asyncio.ensure_future(keeper.said.get())
            async with asyncio.timeout(self._start_s):
                await self._until_ready(to, self._end, began)
        except TimeoutError as e:
            self._let_go()
            raise EngineError(f"{self._name}: its server was not ready within {self._start_s:g} s") from e
        except BaseException:
            self._let_go()
            raise
        self.ready_s = loop.time() - began
        log.info("%s: its server is ready after %.1f s", self._name, self.ready_s)
        if self._keeper is not None:
            stdin: Any = self._keeper.get_pipe_transport(0)
            stdin.write(b"ready\n")
        self.to = to

    async def _kept(self, port: int) -> _Keeper:
        """The keeper of a new server."""
        command = [part.replace(PORT, str(port)) for part in self._command]
        arguments = (sys.executable, "-m", "os1_cloud.engines.keeper", json.dumps(command))
        try:
            self._keeper, keeper = await asyncio.get_running_loop().subprocess_exec(
                _Keeper, *arguments, stderr=asyncio.subprocess.DEVNULL
            )
        except OSError as e:
            raise EngineError(f"{self._name}: {command[0]} cannot be started: {e.strerror}") from e
        first = await keeper.said.get()
        if "pid" not in first:
            why = first.get("failed", "its keeper died")
            raise EngineError(f"{self._name}: {command[0]} cannot be started: {why}")
        self.pid = first["pid"]
        return keeper

    async def _until_ready(self, to: Endpoint, end: asyncio.Future[dict[str, Any]], began: float) -> None:
        loop, told = asyncio.get_running_loop(), began
        while True:
            seen = await look(to, self._headers, starts=True)
            if end.done():
                raise EngineError(f"{self._name}: its server {_ended(end.result())} before it was ready")
            if not (why := ill(seen)):
                return
            if loop.time() - told >= TELL_S:
                told = loop.time()
                log.warning("%s: waits for its server, %.0f s: %s", self._name, told - began, why)
            await asyncio.wait({end}, timeout=POLL_S)

    def _let_go(self) -> None:
        self.to, self.pid = None, 0
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._keeper is not None:
            self._keeper.close()  # the end of its input
            self._keeper = None


def _ended(said: dict[str, Any]) -> str:
    words = " ".join(str(said.get("said", "")).split())
    return f"ended with code {said.get('code', 'unknown')}" + (f" ({words})" if words else "")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
