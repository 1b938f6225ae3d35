"""Lines of standard input or a script, as they come."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator
from pathlib import Path

LONGEST = 2000
"""Characters of one line that are taken: two minutes of speech."""

BLOCK = 4096


async def of_input(descriptor: int = 0) -> AsyncIterator[str]:
    """The lines typed or piped in, until the end.

    The loop waits for them: a thread that blocks in a read could not be ended by Ctrl-C.
    """
    try:
        ready = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, ready.set)
    except (PermissionError, NotImplementedError):  # a plain file is always ready
        ready = None
    rest = b""
    try:
        while True:
            if ready is not None:
                await ready.wait()
                ready.clear()
                if not select.select((descriptor,), (), (), 0)[0]:
                    continue  # told again of what was read meanwhile
            block = os.read(descriptor, BLOCK)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield _text(line)
            rest = rest[: 4 * LONGEST]
            if not block:
                break
        if rest:
            yield _text(rest)
    finally:
        if ready is not None:
            asyncio.get_running_loop().remove_reader(descriptor)


async def of_script(path: Path) -> AsyncIterator[str]:
    """The lines of a file (UTF-8). Raises ``OSError``."""
    whole = await asyncio.to_thread(path.read_bytes)
    for line in whole.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        yield _text(line)


def _text(line: bytes) -> str:
    return " ".join(line.decode("utf-8", "replace").split())[:LONGEST]
