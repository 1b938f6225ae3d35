"""A stage: one part of the system, made ready once and then measured again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter

from os1_edge.bench.result import Better

PATIENCE = 2.5
"""A device ten times as slow must not take ten times as long: it gives fewer samples instead."""

Of = dict[str, str | int | float]


class Unavailable(Exception):
    """A stage that cannot run here; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure that a stage gives each time."""

    name: str
    unit: str = "ms"
    better: Better = "lower"
    of: Of = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """How everything is measured."""

    threads: int = 2
    quick: bool = False


Work = Callable[[], Sequence[float]]
"""Does it once; one value for each reading."""
Prepare = Callable[[Setting], AbstractContextManager[Work]]


@dataclass(frozen=True, slots=True)
class Stage:
    """What is measured together, because it is made ready together."""

    name: str
    group: str
    readings: tuple[Reading, ...]
    prepare: Prepare
    """Makes it ready; raises ``Unavailable`` or ``ModelMissing`` where it cannot."""
    repeats: int = 15
    """Samples of a round, where time allows."""
    least: int = 3
    """Samples of a round where patience allows: two rounds of them are enough to compare by rank."""
    within_s: float = 2.0
    """Seconds of a round after which no sample is begun; the least ones have ``PATIENCE`` times as long."""
    ready_s: float = 0.5
    """About what it takes to be made ready; for the time left."""
    warm: int = 1
    """Times that it is done before it counts."""
    quick: bool = True
    """Part of the quick suite."""

    @property
    def expected_s(self) -> float:
        """About what a round takes."""
        return self.ready_s + self.within_s


@dataclass(slots=True)
class Block:
    """The samples of one stage in one round, a list for each of its readings."""

    values: list[list[float]]

    @property
    def n(self) -> int:
        """Samples taken."""
        return len(self.values[0])


def timed(call: Callable[[], object]) -> float:
    """Milliseconds that ``call`` takes, wall time."""
    began = perf_counter()
    call()
    return 1000 * (perf_counter() - began)


def take(
    stage: Stage,
    setting: Setting,
    block: Block,
    stopped: Callable[[], bool] = lambda: False,
    now: Callable[[], float] = perf_counter,
) -> None:
    """One round of ``stage`` into ``block``, sample by sample: what was taken is there, whatever comes.

    Raises:
        Unavailable: it cannot run here.
        ValueError: the stage gave another number of values than it has readings.
    """
    with stage.prepare(setting) as work:
        for _ in range(stage.warm):
            if stopped():
                return
            work()
        began = now()
        for number in range(stage.repeats):
            wait = stage.within_s * (1 if number >= stage.least else PATIENCE)
            if stopped() or (number and now() - began >= wait):
                return
            for values, value in zip(block.values, work(), strict=True):
                values.append(value)


def empty(stage: Stage) -> Block:
    """A block without samples."""
    return Block([[] for _ in stage.readings])


def names(stages: Iterable[Stage]) -> list[str]:
    """For ``--only``."""
    return [stage.name for stage in stages]
