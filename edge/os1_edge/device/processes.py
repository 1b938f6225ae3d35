"""Ending a program with all that it has started: a child that holds its pipes would keep who reads them
waiting."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal


async def end(process: asyncio.subprocess.Process, within_s: float = 1.0) -> bytes:
    """Ends ``process`` and its children, if need be by force; what it wrote to its standard error.

    It must have been started with ``start_new_session=True``.
    """
    _signal(process.pid, signal.SIGTERM)
    try:
        _, words = await asyncio.wait_for(process.communicate(), within_s)
    except TimeoutError:
        _signal(process.pid, signal.SIGKILL)
        _, words = await process.communicate()
    return words or b""


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
