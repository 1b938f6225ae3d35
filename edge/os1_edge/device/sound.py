"""Sound files in any common format, as what the runtime works on: mono float32 at 16 kHz."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
import soxr

from os1_edge.events import RATE, Samples

BLOCK_S = 10.0
"""Files are read in blocks, so that hours of sound need little memory."""


class BadSound(Exception):
    """A sound file cannot be used; the message names it and says why."""


def blocks(path: Path) -> Iterator[Samples]:
    """Reads ``path`` block by block, mixed to mono and resampled to 16 kHz.

    Samples that are not numbers become silence.

    Raises:
        BadSound: no such file, or not a sound file.
    """
    try:
        if not path.is_file():
            raise BadSound(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
    except OSError as e:
        raise BadSound(f"{path}: {e.strerror}") from None
    try:
        with soundfile.SoundFile(str(path)) as file:
            resampler = soxr.ResampleStream(file.samplerate, RATE, 1, dtype="float32")
            size = int(BLOCK_S * file.samplerate)
            while len(block := file.read(size, dtype="float32", always_2d=True)):
                mono = np.clip(np.nan_to_num(block.mean(axis=1), nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
                yield _resampled(resampler, mono, last=False)
            yield _resampled(resampler, np.zeros(0, np.float32), last=True)
    except (soundfile.SoundFileError, RuntimeError) as e:
        reason = str(e).splitlines()[0].rpartition(": ")[2]
        raise BadSound(f"{path}: not a sound file that can be read ({reason})") from None


def read(path: Path) -> Samples:
    """The whole of ``path``; shape (n,)."""
    return np.concatenate([*blocks(path), np.zeros(0, np.float32)])


def _resampled(resampler: soxr.ResampleStream, mono: Samples, *, last: bool) -> Samples:
    return np.asarray(resampler.resample_chunk(mono, last=last), np.float32)
