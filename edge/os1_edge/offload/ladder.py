"""Which size and quality a picture leaves in: the largest that the uplink carries in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from os1_edge.offload.engine import Message, Task


@dataclass(frozen=True, slots=True)
class Rung:
    """A picture's longer side in pixels, and its JPEG quality."""

    side: int
    quality: int
    bits_per_pixel: float
    """Of a typical photo at that quality."""

    @property
    def usual_bytes(self) -> int:
        """Of a typical 4:3 photo."""
        return round(self.side * self.side * 0.75 * self.bits_per_pixel / 8)


RUNGS = (
    Rung(1024, 85, 1.06),
    Rung(768, 75, 0.80),
    Rung(512, 65, 0.68),
    Rung(384, 55, 0.59),
    Rung(336, 45, 0.52),
)
"""Best first. Bits a pixel: medians of 640 x 480 glasses photos (see.jpeg). LLaVA-1.5 looks at 336 x 336."""

READABLE = 768
"""Pixels below which text in a picture cannot be read any more."""

Reencode = Callable[[bytes, int, int], bytes]
"""Makes a picture (JPEG or PNG) smaller: its bytes, the longer side, the JPEG quality. Blocking."""


class Pictures:
    """Makes pictures smaller, and learns from each how heavy the scenes here are."""

    def __init__(self, reencode: Reencode | None) -> None:
        """``reencode``: None: pictures leave as they are or not at all."""
        self._reencode = reencode
        self._heaviness = 1.0
        """Bytes of pictures here over those of typical ones."""

    def rungs(self, sizes: Sequence[int], task: Task) -> tuple[tuple[int, int], ...]:
        """(rung, bytes of all pictures) from the best on; rung -1: as they are.

        Args:
            sizes: bytes of the pictures.
            task: a caption may be asked to read, so it is not made unreadable.
        """
        found = [(-1, sum(sizes))]
        if self._reencode is None or not sizes:
            return tuple(found)
        for number, rung in enumerate(RUNGS):
            size = round(len(sizes) * rung.usual_bytes * self._heaviness)
            if size < found[-1][1] and (task != "caption" or rung.side >= READABLE):
                found.append((number, size))
        return tuple(found)

    async def shrunk(self, messages: Sequence[Message], number: int | None) -> Sequence[Message]:
        """``messages`` with pictures of the rung ``number``, made in a worker thread."""
        if self._reencode is None or number is None or number < 0:
            return messages
        rung, encode, loop = RUNGS[number], self._reencode, asyncio.get_running_loop()
        out: list[Message] = []
        for message in messages:
            made: list[bytes] = []
            for image in message.images:
                small = await loop.run_in_executor(None, encode, image, rung.side, rung.quality)
                share = min(max(len(small) / rung.usual_bytes, 0.2), 5.0)
                self._heaviness += 0.5 * (share - self._heaviness)
                made.append(small if len(small) < len(image) else image)
            out.append(replace(message, images=tuple(made)))
        return out


def told(number: int | None, images: int) -> str:
    """In words how pictures leave; "" where none do."""
    if number is None or not images:
        return ""
    return "as they are" if number < 0 else f"{RUNGS[number].side} pixels, quality {RUNGS[number].quality}"
