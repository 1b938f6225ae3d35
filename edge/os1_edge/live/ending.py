"""How a live companion begins and ends: alone on its memory, and cleanly at SIGINT or SIGTERM, whenever one
comes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class AlreadyWorn(Exception):
    """Another companion lives on this memory."""


@contextmanager
def alone(memory_file: Path) -> Iterator[None]:
    """No other companion lives on the memory until the block is left. Other commands may use it meanwhile.

    Raises:
        AlreadyWorn: one does.
    """
    file = memory_file.with_name(f"{memory_file.name}.worn")
    file.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = held.read(20).strip()
            raise AlreadyWorn(
                f"another companion{f' (process {who})' if who.isdigit() else ''} lives on {memory_file}; "
                "end that one first"
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        yield  # the lock goes with the open file, whatever ends the process


def refuse_if_worn(memory_file: Path) -> None:
    """Says so early where another companion lives on the memory, before seconds of loading.

    Raises:
        AlreadyWorn: one does.
    """
    if memory_file.with_name(f"{memory_file.name}.worn").exists():
        with alone(memory_file):
            pass


def run_until_told(main: Coroutine[Any, Any, None]) -> None:
    """Runs ``main`` until it returns, raises, or SIGINT or SIGTERM comes: then it is cancelled and may take
    its time to put things away; further signals change nothing."""
    asyncio.run(_until_told(main))


async def _until_told(main: Coroutine[Any, Any, None]) -> None:
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    living, waiting = asyncio.create_task(main), asyncio.create_task(told.wait())
    await asyncio.wait((living, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if living.done():
        return living.result()
    living.cancel()
    with suppress(asyncio.CancelledError):
        await living
    return None


def since_start_s() -> float | None:
    """Seconds that this process has lived, its interpreter's start included; ``None`` where the kernel does
    not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
