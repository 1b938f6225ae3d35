"""Microphone and speaker over a program's pipe (``device/programs.py``)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import signal
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Callable

import numpy as np

from os1_edge.device.processes import end
from os1_edge.device.programs import NoSound, Program
from os1_edge.device.retimed import Retimed
from os1_edge.device.ring import Ring
from os1_edge.events import Samples

log = logging.getLogger(__name__)

READ = 4096
"""Bytes read at once: an eighth of a second at 16 kHz; what is there sooner comes sooner."""

HEADER_S = 5.0
"""A program that gives no first byte for so long has no device."""

WAV_HEADER = 44
"""Bytes of the plainest WAV header, which the recording programs write."""

BLOCK_S = 0.02
"""The speaker's program gets sound in blocks of this."""

PRESENT_S = 5.0
"""How often it is asked whether a named microphone is still there."""

IDLE_S = 30.0
"""The speaker is let go after so long without a reply: an open device costs power."""

ENDS_S = 1.0
"""A program that was told to end and is still there after this is killed."""

F_SETPIPE_SZ = 1031
"""Linux: the size of a pipe. Sixty-four kilobytes, the usual one, are two seconds of speech."""


class PipeMicrophone:
    """A running recorder. ``device.microphone.Device``."""

    def __init__(self, process: asyncio.subprocess.Process, rate: int, first: bytes, named: str = "") -> None:
        self._process, self._named = process, named
        self._first = first
        self.rate = rate

    @classmethod
    async def open(cls, program: Program) -> PipeMicrophone:
        """Starts ``program`` and reads what it is going to give.

        Raises:
            OSError: it cannot be started, or gives nothing.
        """
        process = await asyncio.create_subprocess_exec(
            *program.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=READ,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            first = await asyncio.wait_for(process.stdout.readexactly(WAV_HEADER), HEADER_S)
            rate = _wav_rate(first)
        except BaseException as e:
            words = await _ended(process)
            if isinstance(e, asyncio.IncompleteReadError | TimeoutError):
                raise OSError(words or f"{program.argv[0]} gives no sound") from None
            raise
        return cls(process, rate or program.rate, b"" if rate else first, program.named)

    async def blocks(self) -> AsyncGenerator[Samples, None]:
        """See ``Device``."""
        assert self._process.stdout is not None
        rest = self._first
        watching = asyncio.create_task(self._end_with_it()) if self._named else None
        try:
            while data := await self._process.stdout.read(READ):
                data = rest + data
                whole = len(data) - len(data) % 2
                rest = data[whole:]
                yield np.frombuffer(data[:whole], "<i2").astype(np.float32) / 32768.0
        finally:
            if watching is not None:
                watching.cancel()
            words = await _ended(self._process)
        if words:
            raise OSError(words)

    async def _end_with_it(self) -> None:
        """Ends the program when its device is gone: PulseAudio would go on with whatever else there is, such
        as the sound of the companion's own speaker, and not come back."""
        while await has_source(self._named):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(PRESENT_S)
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()


async def has_source(name: str) -> bool:
    """Whether the sound server has a microphone ``name``; what cannot be told counts as yes."""
    try:
        listing = await asyncio.create_subprocess_exec(
            "pactl",
            "list",
            "short",
            "sources",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return True
    try:
        found, _ = await asyncio.wait_for(listing.communicate(), HEADER_S)
    except BaseException as e:
        await end(listing)
        if isinstance(e, TimeoutError):
            return True
        raise
    names = [line.split("\t")[1] for line in found.decode("utf-8", "replace").splitlines() if "\t" in line]
    # It may be called by its number, or by a word such as @DEFAULT_SOURCE@.
    return listing.returncode != 0 or name in names or name.isdigit() or name.startswith("@")


def _wav_rate(header: bytes) -> int | None:
    """The rate that a WAV header tells; ``None`` where there is none.

    Raises:
        OSError: the WAV is not mono of 16 bits.
    """
    if header[:4] != b"RIFF" or header[8:16] != b"WAVEfmt ":
        return None
    channels, rate = int.from_bytes(header[22:24], "little"), int.from_bytes(header[24:28], "little")
    bits = int.from_bytes(header[34:36], "little")
    if channels != 1 or bits != 16 or not 4000 <= rate <= 384_000:
        found = f"{channels} channels of {bits} bits at {rate} Hz"
        raise OSError(f"the recorder gives {found}; mono of 16 bits is needed")
    return rate


async def _ended(process: asyncio.subprocess.Process) -> str:
    """Ends the program; the last line that it wrote for people."""
    lines = (await end(process)).decode("utf-8", "replace").strip().splitlines()
    ended_by_us = process.returncode in (0, -signal.SIGTERM, -signal.SIGKILL)
    return lines[-1][:200] if lines and not ended_by_us else ""


class PipeSpeaker:
    """``speak.sink.Sink`` on a program that plays. It runs from a reply's beginning until ``IDLE_S`` after
    the last one, fed by a thread, so that a busy loop is not heard."""

    latency_s = 0.1
    """The program's own buffer (its command line says 60-80 ms) and a block."""

    def __init__(self, program: Callable[[int], Program], now: Callable[[], float]) -> None:
        """``program`` gives the player for a rate; ``now`` the session's second, from any thread."""
        self._program, self._now = program, now
        self._lock = threading.Lock()
        self._feed: _Feed | None = None
        self._retimed: Retimed | None = None

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``Sink``."""
        feed = self._feed
        if feed is None or not feed.keep(IDLE_S):
            self._feed = feed = _Feed(self._program(rate), self._now)
        self._retimed = Retimed(rate, feed.ring.rate)

    def write(self, block: Samples, at_s: float) -> None:
        """See ``Sink``."""
        feed = self._feed
        if feed is None or self._retimed is None:
            return
        if (error := feed.error) is not None:
            raise error
        feed.keep(IDLE_S)
        for samples, due_s in self._retimed.add(block, at_s):
            feed.ring.put(samples, due_s)

    def drop(self, from_s: float) -> None:
        """See ``Sink``."""
        if self._feed is not None and self._retimed is not None:
            self._retimed.drop()
            self._feed.ring.drop(from_s)

    def end(self) -> str | None:
        """See ``Sink``."""
        if self._feed is not None and self._retimed is not None:
            for samples, due_s in self._retimed.finish():
                self._feed.ring.put(samples, due_s)
        return None

    def close(self) -> None:
        """Lets the speaker go, now."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.stop()


class _Feed:
    """A running player and the thread that feeds it."""

    def __init__(self, program: Program, now: Callable[[], float]) -> None:
        self.ring = Ring(program.rate)
        self.error: OSError | None = None
        self._now = now
        self._until = time.monotonic() + IDLE_S
        self._over = False
        self._process = subprocess.Popen(
            program.argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._process.stdin, F_SETPIPE_SZ, READ)
        self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
        self._thread.start()

    def keep(self, seconds: float) -> bool:
        """Goes on for so long; whether it still can."""
        self._until = time.monotonic() + seconds
        return not self._over and self.error is None

    def stop(self) -> None:
        """Ends thread and program."""
        self._over = True
        self._thread.join(ENDS_S)

    def _run(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        count = round(BLOCK_S * self.ring.rate)
        due = time.monotonic()
        try:
            while not self._over and time.monotonic() < self._until:
                sound = self.ring.take(count, self._now())
                stdin.write((np.clip(sound, -1.0, 1.0) * 32767.0).astype("<i2").tobytes())
                stdin.flush()
                due = max(due + BLOCK_S, time.monotonic() - BLOCK_S)
                time.sleep(max(0.0, due - time.monotonic()))
        except OSError as e:
            self.error = NoSound(f"the player ended ({e.strerror})")
        finally:
            self._over = True
            with contextlib.suppress(OSError):
                stdin.close()
            self._process.terminate()
            try:
                self._process.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
