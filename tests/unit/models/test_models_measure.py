"""The arithmetic of the Whisper measurement."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from os1_models.measure_whisper import Variant, audio_context, peak_kib, read_wav, table, word_errors


@pytest.mark.parametrize(
    ("seconds", "frames"), [(0.5, 512), (10.24, 512), (10.25, 768), (25.6, 1280), (25.7, 0), (42.0, 0)]
)
def test_the_window_holds_the_clip_and_is_a_multiple_of_256(seconds: float, frames: int) -> None:
    assert audio_context(seconds) == frames


@pytest.mark.parametrize(
    ("reference", "heard", "errors"),
    [("a b c", "a b c", 0), ("a b c", "a x c", 1), ("a b c", "", 3), ("", "a b", 2), ("a b", "b a c", 2)],
)
def test_words_are_counted_by_edit_distance(reference: str, heard: str, errors: int) -> None:
    assert word_errors(reference.split(), heard.split()) == errors


def test_a_row_sums_up_a_variant() -> None:
    variant = Variant(
        "q8_0", 43_600_000, 1, 40, 204_800, factors=[0.1, 0.2, 0.3], cpu_factors=[0.1, 0.1, 0.3]
    )
    row = variant.row()
    assert (row["wer_percent"], row["rtf_median"], row["peak_rss_mib"]) == (2.5, 0.2, 200)
    assert row["cpu_median"] == 0.1
    assert table([row]).splitlines()[2].startswith("| q8_0 | 2.5 |")


def test_only_16_khz_mono_is_read(tmp_path: Path) -> None:
    for rate in (16_000, 8_000):
        with wave.open(str(tmp_path / f"{rate}.wav"), "wb") as clip:
            clip.setnchannels(1)
            clip.setsampwidth(2)
            clip.setframerate(rate)
            clip.writeframes(np.array([0, 16384, -32768], "<i2").tobytes())
    assert read_wav(tmp_path / "16000.wav").tolist() == [0.0, 0.5, -1.0]
    with pytest.raises(ValueError, match="not 16 kHz"):
        read_wav(tmp_path / "8000.wav")


def test_memory_is_read_from_the_kernel() -> None:
    assert peak_kib() > 1000
