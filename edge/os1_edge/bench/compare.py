"""Is a difference between two measurements real? Pure: samples in, a verdict with its reason out.

A difference is called real only where all of this holds:

- the samples differ by rank (Mann-Whitney U, two-sided, below ``ALPHA``);
- the 95 % interval of the ratio of medians (bootstrap) does not hold 1;
- the ratio is further from 1 than the noise: what this series differed by between the rounds of one and the
  same run (A against A), on either side, and twice what the median series did (on a machine with more at work
  than it has cores, what the worst tenth did).

The last is what samples taken in one go cannot tell: a machine that grew warm, another layout in memory.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from os1_edge.bench.result import Result, Series

ALPHA = 0.01
"""Of 60 series that are all the same, one in two comparisons may come so far by chance; the noise then stops
most. With 5 % it would be three in every comparison."""

LEAST = 5
"""Samples on each side: with four, no arrangement of ranks is rarer than 3 %."""

EXACT = 400
"""Products of sample sizes up to which the distribution of U is counted out; beyond, the normal one fits."""

DRAWS = 1000

REACH = 2.0
"""Times the median difference between two rounds: where rounds differ by a normal error, 95 % of the
differences between two runs of two rounds lie below (1.96 / 0.674 / sqrt 2)."""

WORST = 0.9
"""On a busy machine, the quantile of the series' noises that counts for all of them."""

Kind = Literal["better", "worse", "same", "too few"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one series from A to B."""

    name: str
    unit: str
    a: float
    b: float
    """Medians."""
    ratio: float
    """B by A."""
    low: float
    high: float
    p: float
    noise: float
    """Ratio minus 1 up to which a difference is held to be the machine's."""
    kind: Kind
    why: str

    @property
    def change_for_worse(self) -> float:
        """How much worse B is, as a share of A; 0 where it is not."""
        return abs(self.ratio - 1) if self.kind == "worse" else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results beside each other."""

    verdicts: tuple[Verdict, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    cautions: tuple[str, ...]

    def failing(self, over: float) -> list[Verdict]:
        """Those that are really worse by more than ``over``."""
        return [v for v in self.verdicts if v.change_for_worse > over]

    def blind(self, over: float) -> list[Verdict]:
        """Those whose noise hides a change of ``over``."""
        return [v for v in self.verdicts if v.kind in ("same", "too few") and v.noise > over]

    def to_dict(self) -> dict[str, Any]:
        """For a program."""
        return asdict(self)


def compare(a: Result, b: Result) -> Comparison:
    """Every series that both have."""
    mine, theirs = ({s.name: s for s in r.series} for r in (a, b))
    pooled = max(map(pooled_noise, (a, b)))
    verdicts = [judge(mine[name], theirs[name], pooled) for name in mine if name in theirs]
    return Comparison(
        tuple(verdicts),
        tuple(name for name in mine if name not in theirs),
        tuple(name for name in theirs if name not in mine),
        tuple(cautions(a, b)),
    )


def judge(a: Series, b: Series, pooled: float = 0.0) -> Verdict:
    """One series. ``pooled`` is the machine's noise at large."""
    # What comes out the same every time (bytes, word errors) has no part in how restless the machine is.
    noise = max(REACH * pooled if a.iqr or b.iqr else 0.0, own_noise(a), own_noise(b))
    ratio = _ratio(b.median, a.median)

    def verdict(kind: Kind, why: str, p: float = 1.0, low: float = ratio, high: float = ratio) -> Verdict:
        return Verdict(a.name, a.unit, a.median, b.median, ratio, low, high, p, noise, kind, why)

    if a.unit != b.unit:
        return verdict("too few", f"measured in {a.unit} and in {b.unit}")
    if min(a.n, b.n) < LEAST:
        return verdict("too few", f"{min(a.n, b.n)} samples; {LEAST} are the least")
    p = mann_whitney(a.samples, b.samples)
    low, high = ratio_interval(a.samples, b.samples)
    if a.median == b.median:
        return verdict("same", "the medians are equal", p, low, high)
    if p >= ALPHA or low <= 1 <= high:
        return verdict("same", f"such a difference comes by chance (p {p:.2g})", p, low, high)
    if abs(math.log(ratio)) <= math.log1p(noise):
        return verdict("same", f"inside the noise of this machine ({noise:.1%})", p, low, high)
    worse = (ratio > 1) == (a.better == "lower")
    return verdict("worse" if worse else "better", f"p {p:.2g}, noise {noise:.1%}", p, low, high)


def own_noise(series: Series) -> float:
    """By how much, as a share, the rounds of one run differ; 0 with a single round."""
    medians = [statistics.median(block) for block in series.blocks]
    return max((math.exp(abs(math.log(_ratio(y, x)))) - 1 for x, y in pairwise(medians)), default=0.0)


def pooled_noise(result: Result) -> float:
    """The median series' noise: two rounds are little to know one series' own by. Where more was at work than
    there are cores, what the worst tenth of the series exceeds: others come and go, and hit some of them."""
    noises = [own_noise(s) for s in result.series if len(s.blocks) > 1 and s.iqr > 0]
    overrun = result.machine.load_before > result.machine.cores
    return float(np.quantile(noises, WORST if overrun else 0.5)) if noises else 0.0


def cautions(a: Result, b: Result) -> list[str]:
    """What makes the two hard to compare."""
    out = []
    if (a.machine.cpu, a.machine.cores) != (b.machine.cpu, b.machine.cores):
        out.append(f"two machines: {a.machine.cpu} and {b.machine.cpu}")
    if a.threads != b.threads:
        out.append(f"measured with {a.threads} and with {b.threads} threads")
    if a.mode != b.mode:
        out.append(f"one is {a.mode}, the other {b.mode}")
    for which, result in (("A", a), ("B", b)):
        out += [f"{which}: {warning}" for warning in result.warnings]
        if all(len(s.blocks) < 2 for s in result.series):
            out.append(f"{which} has one round only, so its noise is not known; measure with --rounds 2")
    return out


def mann_whitney(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Two-sided p of "one is as often above as below the other". Counted out where there are few samples and
    no ties, else by the normal distribution with ties and continuity corrected for.
    Mann & Whitney 1947, Annals of Mathematical Statistics 18(1)."""
    n, m = len(xs), len(ys)
    both = np.concatenate([np.asarray(xs, float), np.asarray(ys, float)])
    values, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]
    u = float(ranks[:n].sum() - n * (n + 1) / 2)
    if len(values) == n + m and n * m <= EXACT:
        ways = _ways(n, m)
        tail = sum(ways[: int(min(u, n * m - u)) + 1])
        return min(1.0, 2 * tail / sum(ways))
    ties = float((counts**3 - counts).sum()) / ((n + m) * (n + m - 1))
    variance = n * m / 12 * (n + m + 1 - ties)
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def _ways(n: int, m: int) -> list[int]:
    """How many orders of n and m samples give each U: coefficients of the Gaussian binomial."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    return ways


def ratio_interval(xs: Sequence[float], ys: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Where the ratio of medians (ys by xs) lies, 95 %: percentile bootstrap (Efron 1979)."""
    rng = np.random.default_rng(seed)
    drawn = [
        np.median(rng.choice(np.asarray(values, float), (DRAWS, len(values))), axis=1) for values in (xs, ys)
    ]
    below, above = np.maximum(drawn[0], 1e-12), np.maximum(drawn[1], 1e-12)
    low, high = np.percentile(above / below, (2.5, 97.5))
    return float(low), float(high)


def _ratio(above: float, below: float) -> float:
    if above == below:
        return 1.0
    return max(above, 1e-12) / max(below, 1e-12)
