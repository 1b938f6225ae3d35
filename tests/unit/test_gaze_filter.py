"""The One Euro filter: still gaze is calm, a jump passes."""

from __future__ import annotations

import numpy as np
import pytest

from os1_edge.see.gaze.filter import OneEuro


def test_a_still_gaze_is_calmed_to_a_third_of_its_noise() -> None:
    rng, calm = np.random.default_rng(0), OneEuro(min_cutoff_hz=1.0, beta=0.0)
    noisy = rng.normal(0, 1, 600)
    out = [calm.step(i / 60, (float(v),))[0] for i, v in enumerate(noisy)]
    assert np.std(out[60:]) < np.std(noisy) / 3


def test_a_jump_arrives_sooner_with_more_beta() -> None:
    slow, quick = OneEuro(1.0, 0.0), OneEuro(1.0, 0.5)
    for i in range(30):
        slow.step(i / 60, (0.0,))
        quick.step(i / 60, (0.0,))
    after = [(slow.step(i / 60, (20.0,))[0], quick.step(i / 60, (20.0,))[0]) for i in range(30, 34)][-1]
    assert after[0] < 10 < 18 < after[1]


def test_after_a_reset_the_first_value_passes_as_it_is() -> None:
    calm = OneEuro()
    calm.step(0.0, (0.0, 0.0))
    calm.reset()
    assert calm.step(0.1, (30.0, -4.0)) == (30.0, -4.0)


def test_a_clock_that_stands_still_or_goes_back_changes_nothing() -> None:
    calm = OneEuro()
    first = calm.step(1.0, (5.0,))
    assert calm.step(1.0, (50.0,)) == first
    assert calm.step(0.5, (50.0,)) == first


@pytest.mark.parametrize("wrong", [{"min_cutoff_hz": 0.0}, {"beta": -1.0}, {"d_cutoff_hz": 0.0}])
def test_cutoffs_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        OneEuro(**wrong)
