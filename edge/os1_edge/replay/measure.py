"""Numbers of a replay: word errors, where speech really ended, what the machine spent."""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from os1_edge.device.session import Utterance
from os1_edge.events import RATE, Samples, TurnEnded

_DIGITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_NUMBERS = {word: str(number) for number, word in enumerate(_DIGITS.split())}

NEAR_S = 0.5
"""A reference that ends this close to a turn's end ends the turn's speech too: the detector errs by less, and
the pause that splits an utterance over two turns is longer."""

QUIET = 0.03
"""Loudness relative to a turn's loudest 10 ms below which nothing is being said (-30 dB)."""


def words(text: str) -> list[str]:
    """The words of ``text`` for comparing: lower case, no punctuation, small numbers as digits."""
    found = re.findall(r"[\w']+", text.lower().replace("’", "'"))
    return [_NUMBERS.get(w.strip("'"), w.strip("'")) for w in found if w.strip("'")]


def word_errors(reference: str, heard: str) -> tuple[int, int]:
    """(words wrong, missing or too many; words in the reference), by Levenshtein distance."""
    ref, hyp = words(reference), words(heard)
    row = list(range(len(hyp) + 1))
    for i, a in enumerate(ref, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(hyp, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1], len(ref)


def word_error_rate(pairs: Iterable[tuple[str, str]]) -> float | None:
    """Errors per word of reference over all (reference, heard); ``None`` without a word of reference.

    A reference that nothing was heard of stands beside "" and counts as so many missing words; what was heard
    without a reference stands beside "" too, and counts as so many words too many.
    """
    counts = [word_errors(reference, heard) for reference, heard in pairs]
    of = sum(count for _, count in counts)
    return sum(errors for errors, _ in counts) / of if of else None


def turn_of(said: Utterance, spans: Sequence[tuple[float, float]]) -> int | None:
    """Which of the turns, each from one session second to another, heard most of ``said``; ``None``: none.
    The earlier one where two heard as much."""
    heard = [min(said.end_s, end) - max(said.start_s, start) for start, end in spans]
    best = max(range(len(heard)), key=heard.__getitem__, default=None)
    return best if best is not None and heard[best] > 0 else None


def last_speech_s(ended: TurnEnded, utterances: Sequence[Utterance]) -> float:
    """Session second of the turn's last speech sample, by a reference that ends with the turn, or else by the
    input's loudness: never by the detector whose delay is being measured."""
    start_s, end_s, decided_s = ended.start / RATE, ended.end / RATE, ended.decided / RATE
    ends = [
        u.end_s
        for u in utterances
        if u.start_s < end_s and start_s < u.end_s <= decided_s and abs(u.end_s - end_s) <= NEAR_S
    ]
    if ends:
        return min(ends, key=lambda end: abs(end - end_s))
    return (ended.audio_start + last_speech_sample(ended.audio)) / RATE


def last_speech_sample(audio: Samples) -> int:
    """Index one after the last 10 ms of ``audio`` that is louder than ``QUIET`` of the loudest."""
    size = RATE // 100
    whole = audio[: len(audio) // size * size].reshape(-1, size)
    if not len(whole):
        return len(audio)
    loudness = np.sqrt((whole**2).mean(axis=1))
    loud = np.flatnonzero(loudness > QUIET * loudness.max())
    return int(loud[-1] + 1) * size if len(loud) else len(audio)


def percentile(values: Sequence[float], percent: float) -> float:
    """The ``percent`` percentile, between neighbours in proportion."""
    return float(np.percentile(values, percent))


def machine() -> dict[str, str | int | float]:
    """What the replay ran on."""
    return {
        "cpu": _proc("/proc/cpuinfo", r"(?:model name|Hardware)\s*:\s*(.+)")
        or platform.processor()
        or "unknown",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_mb": int(_proc("/proc/meminfo", r"MemTotal:\s*(\d+)") or 0) // 1024,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def spent() -> tuple[float, float]:
    """(largest resident size so far in MB, CPU seconds so far) of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss / unit, usage.ru_utime + usage.ru_stime


def _proc(path: str, pattern: str) -> str | None:
    try:
        found = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return found[1].strip() if found else None
