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


SLOWEST, FASTEST = 2_000, 768_000
"""Samples a second; a header with less or more is broken, and 1 Hz would make hours of seconds."""

INTEGERS = 16.0
"""Floating-point sound beyond this is not loud: it is on the scale of 16-bit integers."""

CANCELLED = 0.01
"""Share of the loudest channel's power below which the channels' mean is silence by cancellation. Not reached
by one speaking channel among up to nine silent ones."""


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
            if not SLOWEST <= file.samplerate <= FASTEST:
                told = f"{file.samplerate} samples a second cannot be right"
                raise BadSound(f"{path}: {told} ({SLOWEST} to {FASTEST} are read)")
            scale = 1.0
            resampler = soxr.ResampleStream(file.samplerate, RATE, 1, dtype="float32")
            size = int(BLOCK_S * file.samplerate)
            while len(block := file.read(size, dtype="float32", always_2d=True)):
                clean = np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0)
                if float(np.abs(clean).max()) > INTEGERS:
                    scale = 1.0 / 32768
                mono = np.clip(_mono(clean * np.float32(scale)), -1.0, 1.0)
                yield _resampled(resampler, mono, last=False)
            yield _resampled(resampler, np.zeros(0, np.float32), last=True)
    except (soundfile.SoundFileError, RuntimeError) as e:
        reason = str(e).splitlines()[0].rpartition(": ")[2]
        raise BadSound(f"{path}: not a sound file that can be read ({reason})") from None


def read(path: Path) -> Samples:
    """The whole of ``path``; shape (n,)."""
    return np.concatenate([*blocks(path), np.zeros(0, np.float32)])


def _mono(channels: Samples) -> Samples:
    """The mean of all channels; the loudest where they cancel each other out, as with one plugged in the
    wrong way round."""
    mean = channels.mean(axis=1)
    power = (channels.astype(np.float64) ** 2).mean(axis=0)
    if float((mean.astype(np.float64) ** 2).mean()) < CANCELLED * float(power.max()):
        return np.asarray(channels[:, int(power.argmax())], np.float32)
    return np.asarray(mean, np.float32)


def _resampled(resampler: soxr.ResampleStream, mono: Samples, *, last: bool) -> Samples:
    return np.asarray(resampler.resample_chunk(mono, last=last), np.float32)
