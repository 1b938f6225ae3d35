"""The voice: the first clause of a reply, and what a second of speech costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import os1_models
from os1_edge.bench.speech import CLAUSE, REPLY
from os1_edge.bench.stage import Reading, Setting, Stage, Unavailable, Work, timed
from os1_edge.speak.clauses import clauses_of
from os1_edge.speak.tts import Piper


@contextmanager
def _voice(setting: Setting, *, threads: int) -> Iterator[Work]:
    if threads > setting.threads:
        raise Unavailable(f"it keeps to {setting.threads} cores; see --threads")
    voice = Piper(os1_models.path("piper-joe"), threads=threads or setting.threads)
    clauses = list(clauses_of(REPLY))

    def work() -> Sequence[float]:
        clause, first = timed(lambda: voice.speak(CLAUSE)), timed(lambda: voice.speak(clauses[0]))
        samples: list[int] = []
        ms = timed(lambda: samples.extend(len(voice.speak(c).samples) for c in clauses))
        return clause, first, ms / 1000 / (sum(samples) / voice.rate)

    yield work


def voice(threads: int = 0) -> Stage:
    """``threads`` 0: all that are measured with."""
    told = f", {threads} thread{'s' * (threads > 1)}" if threads else ""
    of: dict[str, str | int | float] = {"threads": threads} if threads else {}
    return Stage(
        f"voice{told}",
        "speak",
        (
            Reading(f"voice, five words{told}", of=of | {"figure": "clause"}),
            Reading(f"voice, first clause{told}", of=of | {"figure": "first clause"}),
            Reading(f"voice, rtf{told}", "x", of=of | {"figure": "rtf"}),
        ),
        partial(_voice, threads=threads),
        repeats=8,
        within_s=3.0,
        ready_s=1.0,
        quick=not threads,
    )


def stages() -> list[Stage]:
    """All of them."""
    return [voice(), *(voice(n) for n in (1, 2, 4))]
