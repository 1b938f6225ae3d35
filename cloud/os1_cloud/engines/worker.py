"""The server's side of a worker process: starts it, gives it jobs, stops them, replaces it.

A process a model: what it leaks goes with it (llama-cpp-python#1886), what crashes it hurts one answer, and
llama.cpp is never asked twice at a time (#1367).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from os1_cloud.engines import BadImage, BadSchema, EngineError, EngineLost, TooLong
from os1_cloud.engines.frames import HEAD, Frame, lengths, pack

log = logging.getLogger(__name__)
STOP_S = 2.0
"""A worker that has not stopped by then is killed: a hundred times what it should take."""
ERRORS: dict[str, type[Exception]] = {
    "failed": EngineError,
    "too_long": TooLong,
    "bad_schema": BadSchema,
    "bad_image": BadImage,
}


@dataclass(frozen=True, slots=True)
class Recycle:
    """When a worker is replaced, between two jobs; 0: never."""

    jobs: int = 2000
    """About 10 MB a picture leaked in llama-cpp-python#1886: 2,000 of them would fill a small machine."""
    growth_bytes: int = 2 * 1024**3
    """More memory than after its first job."""


class Worker:
    """One process with one model. To be used inside a running event loop, one job at a time."""

    def __init__(self, name: str, spec: dict[str, Any], recycle: Recycle = Recycle()) -> None:
        """Args:
        name: for messages.
        spec: what `child.load` is to load.
        recycle: when to replace it.
        """
        self.name = name
        self.facts: dict[str, Any] = {}
        """What the model told about itself."""
        self.starts = 0
        self._spec, self._recycle = spec, recycle
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._number = self._jobs = self._first_bytes = 0
        self._load_s = 0.0
        self._broken = ""
        """Why it could not be started when that was tried last."""
        self._closed = False
        self._renewal: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def memory_bytes(self) -> int:
        """Resident memory of the process; 0 if that cannot be told."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    async def start(self) -> None:
        """Starts it and waits until its model is loaded.

        Raises:
            EngineError: it cannot be loaded.
        """
        async with self._turn:
            await self._start()

    async def check(self) -> None:
        """Finds a process that died while nobody asked, and starts another.

        Raises:
            EngineError: the last try to start it failed.
        """
        dead = self._process is None or self._process.returncode is not None
        if dead and not self._turn.locked():
            self._renew_soon()
        if self._broken:
            raise EngineError(self._broken)

    def close(self) -> None:
        """Ends the process, and starts no other by itself."""
        self._closed = True
        if self._renewal is not None:
            self._renewal.cancel()
        self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process = None

    async def do(self, job: dict[str, Any], blob: bytes = b"") -> AsyncGenerator[Frame, None]:
        """The parts of a job's result. Closing the iterator stops the job and returns once it has stopped.

        Raises:
            EngineError: the worker failed.
            EngineLost: it died, or does not start; the next job finds a new one, or tries again.
            TooLong, BadSchema, BadImage: the model says so.
        """
        async with self._turn:
            if self._process is None or self._process.returncode is not None:
                try:
                    await self._start()
                except EngineError as e:
                    raise EngineLost(str(e), self._load_s) from e
                except asyncio.CancelledError:
                    self._renew_soon()  # else questions in a hurry might stop each try
                    raise
            self._number += 1
            number, ended = self._number, False
            try:
                await self._send({"op": "do", "id": number, **job}, blob)
                while True:
                    message, part = await self._receive()
                    if message["op"] == "end":
                        ended = True
                        if message["error"]:
                            raise ERRORS[message["error"]](message["why"])
                        return
                    yield message, part
            except EOFError as e:
                self._kill()
                ended = True
                raise EngineLost(f"{self.name}: its worker process died", self._load_s) from e
            finally:
                if not ended:
                    await asyncio.shield(self._stop(number))
                self._job_done()

    async def _stop(self, number: int) -> None:
        """Stops a job and waits until the worker is free."""
        try:
            async with asyncio.timeout(STOP_S):
                await self._send({"op": "stop", "id": number})
                while (await self._receive())[0]["op"] != "end":
                    pass
        except (TimeoutError, EOFError):
            log.warning("%s: its worker did not stop and was killed", self.name)
            self._kill()

    async def _start(self) -> None:
        began = asyncio.get_running_loop().time()
        self._kill()
        self.starts, self._jobs, self._first_bytes = self.starts + 1, 0, 0
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "os1_cloud.engines.child",
                json.dumps(self._spec),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            message, _ = await self._receive()
        except OSError as e:
            message = {"op": "failed", "why": e.strerror}
        except EOFError:
            message = {"op": "died"}
        except BaseException:
            self._kill()
            raise
        finally:
            self._load_s = asyncio.get_running_loop().time() - began
        if message["op"] == "ready":
            self.facts, self._broken = message, ""
            return
        self._kill()
        self._broken = f"{self.name}: its worker process died while it loaded"
        if message["op"] == "failed":
            self._broken = f"{self.name} cannot be loaded: {message['why']}"
        raise EngineError(self._broken)

    def _job_done(self) -> None:
        self._jobs += 1
        used = self.memory_bytes
        self._first_bytes = self._first_bytes or used
        limits = self._recycle
        if (limits.jobs and self._jobs >= limits.jobs) or (
            limits.growth_bytes and used - self._first_bytes >= limits.growth_bytes
        ):
            log.info("%s: its worker is replaced after %d jobs, %d MB", self.name, self._jobs, used // 2**20)
            self._kill()
        if self._process is None:
            # At once, not with the next question: nobody should wait for a model to load.
            self._renew_soon()

    def _renew_soon(self) -> None:
        if not self._closed:
            self._renewal = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        try:
            async with self._turn:
                # Else a question that waited has started it.
                if not self._closed and (self._process is None or self._process.returncode is not None):
                    await self._start()
        except EngineError as e:
            log.error("%s", e)

    async def _send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        pipe = None if self._process is None else self._process.stdin
        if pipe is None:
            raise EOFError
        try:
            pipe.write(pack(message, blob))
            await pipe.drain()
        except (ConnectionError, BrokenPipeError) as e:
            raise EOFError from e

    async def _receive(self) -> Frame:
        pipe = None if self._process is None else self._process.stdout
        if pipe is None:
            raise EOFError
        try:
            text, blob = lengths(await pipe.readexactly(HEAD.size))
            return json.loads(await pipe.readexactly(text)), await pipe.readexactly(blob)
        except (asyncio.IncompleteReadError, ValueError) as e:
            raise EOFError from e
