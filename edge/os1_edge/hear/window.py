"""How much of Whisper's window to compute, and when to distrust what came of it. Pure.

The encoder's cost grows with its window, so a short utterance gets a short one. Cut close, Whisper no longer
finds its end and loops. So a pass over a small window is checked; if anything about it is odd, a pass over a
larger one decides. ``docs/decisions/0010-recogniser-window.md`` has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from os1_edge.events import RATE, Samples

WINDOW = 1500
"""Encoder positions of Whisper's whole 30 s window, 50 a second."""

STEP = 256
"""Encoder positions come in multiples of this: with flash attention and another number, a transcript
depends on the utterance before it."""

SAFE = 512
"""Encoder positions at least in a pass that is to be believed without a check of its ending."""

MARGIN = 64
"""Encoder positions (1.28 s) at least that a window is longer than the audio."""

TIGHT = 32
"""The same (0.64 s) for the smallest window, which is checked most."""

FRAME = RATE // 50
"""Samples (20 ms) of one loudness frame."""

END_SLACK_S = 0.3
"""Whisper's closing time may lie this long before the last sound and still close the utterance."""

MISSED_S = 1.0
"""Sound this long after Whisper's closing time has not been transcribed."""

UNSURE = -0.75
"""Mean log probability of the words under which the smallest window's pass is distrusted."""

HOPELESS = -1.2
"""The same for a larger window; whisper.cpp's own bound is -1.0, over the time tokens too."""


@dataclass(frozen=True, slots=True)
class Pass:
    """How to run Whisper once."""

    positions: int
    """Encoder positions; 0 means all."""
    max_tokens: int
    """A transcript that reaches this is a loop."""
    last: bool
    """Nothing follows: whisper.cpp's own checks and temperatures decide."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What one pass gave."""

    words: tuple[int, ...]
    """Token numbers, without those of time."""
    tokens: int
    """How many tokens there were in all."""
    confidence: float
    """Mean log probability of ``words``."""
    closed_s: float | None
    """Where Whisper says that the last word ended, if it says so."""


def passes(seconds: float) -> tuple[Pass, ...]:
    """The passes to try, in order, for ``seconds`` of audio."""
    quick, calm = int(6 * seconds) + 10, int(10 * seconds) + 16
    # whisper.cpp looks for loops in transcripts of more than 32 tokens only: the last pass must get there.
    out = [Pass(0, max(96, calm), True)]
    needed = seconds * 50
    safe = max(SAFE, math.ceil((needed + MARGIN) / STEP) * STEP)
    if safe < WINDOW:
        out.insert(0, Pass(safe, calm, False))
    if needed + TIGHT <= STEP:
        out.insert(0, Pass(STEP, quick, False))
    return tuple(out)


def sound_end_s(audio: Samples) -> float:
    """Where the last sound within 30 dB of the loudest ends, in seconds; for steady noise, the whole."""
    whole = len(audio) // FRAME
    if not whole:
        return len(audio) / RATE
    power = np.mean(np.square(audio[: whole * FRAME].reshape(whole, FRAME), dtype=np.float64), axis=1)
    loud = np.flatnonzero(power >= power.max() / 1000)
    return float(loud[-1] + 1) * FRAME / RATE


def looped(words: Sequence[int], least: int = 3) -> bool:
    """Whether a phrase stands ``least`` times in a row, or all of three words or more was said twice."""
    n = len(words)
    if n >= 6 and n % 2 == 0 and list(words[: n // 2]) == list(words[n // 2 :]):
        return True
    for size in range(1, n // least + 1):
        run = 0
        for i in range(size, n):
            run = run + 1 if words[i] == words[i - size] else 0
            if run >= size * (least - 1):
                return True
    return False


def doubt(heard: Heard, how: Pass, end_s: float) -> str | None:
    """Why the pass is not to be believed; None if it is."""
    if heard.tokens >= how.max_tokens:
        return "more words than can be said in that time"
    if looped(heard.words):
        return "it repeats itself"
    if not heard.words:
        return "no words" if how.positions < SAFE else None
    if heard.closed_s is not None and heard.closed_s < end_s - MISSED_S:
        return "sound follows the last word"
    if heard.words and heard.confidence < (UNSURE if how.positions < SAFE else HOPELESS):
        return "unsure of the words"
    return None
