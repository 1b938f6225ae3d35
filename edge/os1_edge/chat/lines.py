"""Lines of standard input or a script, as they come."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import select
from collections.abc import AsyncIterator
from dataclasses import dataclass

LONGEST = 2000
"""Characters of one line that are taken: two minutes of speech."""

BYTES = 4 * LONGEST
"""Of a line that are looked at: no character of UTF-8 has more than four."""

BLOCK = 4096

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
"""Nobody says these; a file that has them is no text, a terminal that sends them means a key."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, in single spaces."""

    text: str
    """Empty where it is no text."""
    problem: str = ""
    """What of it was not taken, and why; empty: all of it was."""


async def of_input(descriptor: int = 0) -> AsyncIterator[Line]:
    """The lines typed or piped in, or those of an open file, until the end.

    The loop waits for them: a thread that blocks in a read could not be ended by Ctrl-C. Raises ``OSError``.
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
                yield line_of(line)
            rest = rest[: BYTES + 1]
            if not block:
                break
        if rest:
            yield line_of(rest)
    finally:
        if ready is not None:
            asyncio.get_running_loop().remove_reader(descriptor)


def line_of(line: bytes) -> Line:
    """What stands in ``line``, which may be anything."""
    long = len(line) > BYTES
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(line[:BYTES], final=not long)
    except UnicodeDecodeError:
        return Line("", "is not UTF-8 text and is left out")
    text = text.removeprefix("\N{BYTE ORDER MARK}")
    if _CONTROL.search(text):
        return Line("", "holds control characters, is no text and is left out")
    text = " ".join(text.split())
    if long or len(text) > LONGEST:
        return Line(text[:LONGEST], f"is long; what follows its first {LONGEST} characters is left out")
    return Line(text)
