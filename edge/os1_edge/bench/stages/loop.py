"""The one event loop of everything that speaks gRPC here: grpc.aio keeps handing its events to the first loop
of a process, also when that is closed."""

from __future__ import annotations

import asyncio
from functools import cache


@cache
def runner() -> asyncio.Runner:
    """The loop; it ends with the process."""
    return asyncio.Runner()
