"""Sound at another rate, in its time."""

from __future__ import annotations

import numpy as np
import pytest

from os1_edge.device.retimed import Retimed
from os1_edge.events import Samples


def placed(pieces: list[tuple[Samples, float]], rate: int, seconds: float) -> Samples:
    out = np.zeros(round(seconds * rate), np.float32)
    end = 0
    for samples, at_s in pieces:
        start = round(at_s * rate)
        assert start >= end, "pieces overlap"
        end = start + len(samples)
        out[start:end] = samples
    return out


@pytest.mark.parametrize(("rate_in", "rate_out"), [(22_050, 48_000), (22_050, 16_000), (16_000, 16_000)])
def test_a_tone_in_blocks_is_the_same_tone_at_the_other_rate(rate_in: int, rate_out: int) -> None:
    size = rate_in // 50
    tone = np.sin(2 * np.pi * 440 * np.arange(50 * size) / rate_in).astype(np.float32)
    retimed, pieces = Retimed(rate_in, rate_out), []
    for n in range(50):
        pieces += retimed.add(tone[n * size : (n + 1) * size], 1.0 + n * size / rate_in)
    pieces += retimed.finish()
    out = placed(pieces, rate_out, 2.2)
    wanted = np.zeros_like(out)
    t = np.arange(rate_out) / rate_out
    wanted[rate_out : 2 * rate_out] = np.sin(2 * np.pi * 440 * t)
    middle = slice(round(1.05 * rate_out), round(1.95 * rate_out))
    assert np.abs(out[middle] - wanted[middle]).max() < 0.02


def test_a_gap_stays_a_gap_and_nothing_before_it_is_lost() -> None:
    retimed = Retimed(22_050, 48_000)
    block = np.ones(441, np.float32)
    pieces = retimed.add(block, 0.0) + retimed.add(block, 0.02) + retimed.add(block, 0.5) + retimed.finish()
    out = placed(pieces, 48_000, 1.0)
    assert np.abs(out[200:1700] - 1).max() < 0.05
    assert not out[2200:23_000].any()
    assert np.abs(out[24_200:24_700] - 1).max() < 0.05


def test_what_was_dropped_does_not_sound_in_the_next() -> None:
    retimed = Retimed(22_050, 48_000)
    retimed.add(np.ones(441, np.float32), 0.0)
    retimed.drop()
    pieces = retimed.add(np.zeros(441, np.float32), 0.1) + retimed.finish()
    assert not placed(pieces, 48_000, 0.2).any()
    assert pieces[0][1] == pytest.approx(0.1)
