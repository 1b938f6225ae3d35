"""Recordings with pauses inside a sentence, made from speech clips: what the end-of-turn benchmark hears.

```
clip      |~~this is~the thing i liked~~~best of all~~|
                   ^ short, quiet gaps  ^ (60-250 ms: between words; longer ones end clauses)
joined    |~~this is~the thing......... i liked~~~best of all~~..............|
                            0.3-1.0 s of the clip's own room               2 s of it: the turn is over
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from os1_edge.events import RATE, Samples

STEP = RATE // 100
"""Samples of an energy step: 10 ms."""

PAUSE_S = (0.3, 1.0)
"""Shortest and longest pause inside a sentence."""

GAP = (6, 25)
"""Steps of a gap between words: shorter ones are inside a consonant, longer ones end a clause."""

APART = 120
"""Steps (1.2 s) from pause to pause, and from either end of the speech."""

AFTER = 2 * RATE
"""Samples of room after the speech."""

MOST = 3
"""Pauses in one clip at most."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A recording of one turn."""

    audio: Samples
    """Shape (n,), 16 kHz."""
    pauses: tuple[tuple[int, int], ...]
    """Sample indices (start, end) of the pauses made."""
    end: int
    """Sample index one after the speech, by its energy."""


def joined(clip: Samples, seed: int) -> Joined | None:
    """``clip`` (one speaker, 16 kHz) with pauses inside; None where it has no fit gap between words."""
    if len(clip) < 2 * APART * STEP:
        return None
    loud = _levels(clip)
    floor, top = float(np.quantile(loud, 0.1)), float(np.quantile(loud, 0.95))
    # A quarter of the way from the room to the voice: above a breath, under a soft consonant.
    speech = loud > floor + max(6.0, (top - floor) / 4)
    if not speech.any():
        return None
    rng = np.random.default_rng(seed)
    first, last = np.flatnonzero(speech)[[0, -1]]
    cuts = _cuts(speech, int(first), int(last), rng)
    if not cuts:
        return None
    room = _room(clip, loud)
    pieces: list[Samples] = []
    pauses: list[tuple[int, int]] = []
    at, length = 0, 0
    for begin, end in cuts:
        middle = (begin + end) // 2 * STEP
        pause = round(rng.uniform(*PAUSE_S) * RATE)
        inserted = _tone(room, max(0, pause - (end - begin) * STEP), rng)
        pieces += [clip[at:middle], inserted]
        length += middle - at + len(inserted)
        pauses.append((length - len(inserted) - (middle - begin * STEP), length + end * STEP - middle))
        at = middle
    stop = (int(last) + 1) * STEP
    pieces += [clip[at:stop], _tone(room, AFTER, rng)]
    return Joined(np.concatenate(pieces), tuple(pauses), length + stop - at)


def _levels(clip: Samples) -> NDArray[np.float64]:
    """dB of each whole step, smoothed over three."""
    power = (clip[: len(clip) // STEP * STEP].reshape(-1, STEP).astype(np.float64) ** 2).mean(axis=1)
    return 10 * np.log10(np.convolve(np.pad(power, 1, mode="edge"), np.ones(3) / 3, "valid") + 1e-9)


def _cuts(
    speech: NDArray[np.bool_], first: int, last: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Some gaps between words as (first step, one after the last), in order."""
    edges = np.flatnonzero(np.diff(speech.astype(np.int8)))
    falls, rises = edges[~speech[edges + 1]] + 1, edges[speech[edges + 1]] + 1
    gaps = [(int(a), int(rises[rises > a][0])) for a in falls if (rises > a).any()]
    fit = [g for g in gaps if GAP[0] <= g[1] - g[0] <= GAP[1] and first + APART <= g[0] <= last - APART]
    chosen: list[tuple[int, int]] = []
    for i in rng.permutation(len(fit)):
        if len(chosen) < MOST and all(abs(fit[i][0] - c[0]) >= APART for c in chosen):
            chosen.append(fit[i])
    return sorted(chosen)


def _room(clip: Samples, loud: NDArray[np.float64]) -> Samples:
    """The quietest 160 ms."""
    steps = 16
    means = np.convolve(loud, np.ones(steps) / steps, "valid")
    at = int(means.argmin()) * STEP
    return clip[at : at + steps * STEP]


def _tone(room: Samples, length: int, rng: np.random.Generator) -> Samples:
    """``length`` samples of ``room``: overlapping slices from random places, so that no loop is heard."""
    size = 8 * STEP
    window = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size))
    out = np.zeros(length + 2 * size)
    for at in range(0, length + size, size // 2):
        start = int(rng.integers(0, len(room) - size + 1))
        out[at : at + size] += window * room[start : start + size]
    return out[size // 2 : size // 2 + length].astype(np.float32)
