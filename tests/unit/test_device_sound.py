"""Sound files that are not what they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from os1_edge.device.sound import BadSound, read
from os1_edge.events import RATE, Samples

TONE: Samples = (0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)).astype(np.float32)


def written(folder: Path, sound: Samples, rate: int = RATE) -> Path:
    file = folder / "x.wav"
    soundfile.write(file, sound, rate, "FLOAT")
    return file


def rms(sound: Samples) -> float:
    return float(np.sqrt((sound**2).mean()))


def test_a_channel_that_is_no_numbers_does_not_silence_the_other(tmp_path: Path) -> None:
    broken = np.full_like(TONE, np.nan)
    assert rms(read(written(tmp_path, np.stack([TONE, broken], 1)))) > 0.1


def test_channels_that_cancel_each_other_out_are_heard_all_the_same(tmp_path: Path) -> None:
    assert rms(read(written(tmp_path, np.stack([TONE, -TONE], 1)))) == pytest.approx(rms(TONE), abs=0.02)


def test_two_channels_are_their_mean(tmp_path: Path) -> None:
    silent = np.zeros_like(TONE)
    assert rms(read(written(tmp_path, np.stack([TONE, silent], 1)))) == pytest.approx(rms(TONE) / 2, abs=0.02)


def test_sound_on_the_scale_of_integers_is_brought_back(tmp_path: Path) -> None:
    sound = read(written(tmp_path, TONE * 32768))
    assert rms(sound) == pytest.approx(rms(TONE), abs=0.02)


@pytest.mark.parametrize("rate", [1, 100, 1_000_000])
def test_a_rate_that_cannot_be_right_is_told(tmp_path: Path, rate: int) -> None:
    file = written(tmp_path, TONE[:100])
    data = bytearray(file.read_bytes())
    data[24:28] = rate.to_bytes(4, "little")
    file.write_bytes(bytes(data))
    with pytest.raises(BadSound, match="samples a second cannot be right"):
        read(file)
