"""Sound of any block length as the runtime's frames. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from os1_edge.events import CHUNK, AudioFrame, Samples


def frames(blocks: Iterable[Samples]) -> Iterator[AudioFrame]:
    """Blocks of any length as frames of 512 samples; the last is filled up with silence."""
    start, rest = 0, np.zeros(0, np.float32)
    for block in blocks:
        rest = np.concatenate([rest, block])
        whole = len(rest) // CHUNK * CHUNK
        for offset in range(0, whole, CHUNK):
            yield AudioFrame(start + offset, rest[offset : offset + CHUNK])
        start, rest = start + whole, rest[whole:]
    if len(rest):
        yield AudioFrame(start, np.pad(rest, (0, CHUNK - len(rest))))
