"""Runs stages, round after round, within a time; what was measured stays whatever ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType
from typing import Any

import os1_models
from os1_edge.bench.result import Series, Skipped, series
from os1_edge.bench.stage import Block, Setting, Stage, Unavailable, empty, take

LIMIT_S = {"quick": 120.0, "full": 900.0}
"""The whole run; loading models and writing the page are in it."""

MARGIN_S = {"quick": 10.0, "full": 60.0}
"""Kept for what lasts longer than expected."""


@dataclass(slots=True)
class Done:
    """What a run has so far."""

    blocks: dict[str, list[Block]] = field(default_factory=dict)
    """By stage, one a round."""
    skipped: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def series(self, stages: Sequence[Stage]) -> list[Series]:
        """The figures of every reading that has a sample."""
        return [
            series(
                reading.name,
                stage.group,
                reading.unit,
                [block.values[number] for block in self.blocks[stage.name]],
                reading.better,
                dict(reading.of),
            )
            for stage in stages
            if any(block.n for block in self.blocks.get(stage.name, ()))
            for number, reading in enumerate(stage.readings)
        ]

    def left_out(self) -> list[Skipped]:
        """What has no sample, and why."""
        return [
            Skipped(name=name, why=why)
            for name, why in self.skipped.items()
            if not any(block.n for block in self.blocks.get(name, ()))
        ]


@dataclass(frozen=True, slots=True)
class Step:
    """Told before each stage and at the end."""

    stage: str
    done: int
    of: int
    left_s: float


Tell = Callable[[Step], None]


class Stop:
    """Set by Ctrl-C. The second one is raised, in the middle of whatever is going on."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked

    @contextmanager
    def listening(self, tell: Callable[[], None]) -> Iterator[Stop]:
        """Takes Ctrl-C until left. A flag, not an exception: one that rises inside a library's callback is
        swallowed there, or leaves a model half freed."""

        def asked(_number: int, _frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True
            tell()

        before: Any = signal.signal(signal.SIGINT, asked)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)


def time_left(expected: Sequence[float], done: int, took_s: float, limit_s: float) -> float:
    """Seconds that the steps from ``done`` on will take, by how the steps before them did against what was
    expected of them; never more than the limit leaves."""
    before, after = sum(expected[:done]), sum(expected[done:])
    pace = took_s / before if before > 0 else 1.0
    return max(0.0, min(after * min(max(pace, 0.2), 5.0), limit_s - took_s))


def learned(expected: list[float], number: int, stages: int, took_s: float) -> None:
    """What a stage took is what is expected of it in the rounds to come."""
    for later in range(number + stages, len(expected), stages):
        expected[later] = took_s


@dataclass(slots=True)
class Slowness:
    """How much longer this device takes than is expected of one; known from what has run."""

    expected_s: float = 0.0
    took_s: float = 0.0

    @property
    def times(self) -> float:
        """At least 1: a quick device's long stages may be no quicker than they say."""
        return max(1.0, self.took_s / self.expected_s) if self.expected_s else 1.0

    def saw(self, expected_s: float, took_s: float) -> None:
        """A stage for the first time."""
        self.expected_s += expected_s
        self.took_s += took_s


def run(
    stages: Sequence[Stage],
    setting: Setting,
    rounds: int,
    stopped: Callable[[], bool],
    tell: Tell,
    now: Callable[[], float] = perf_counter,
    limit_s: float | None = None,
) -> Done:
    """Each stage once a round. One that fails does not take the others along."""
    mode = "quick" if setting.quick else "full"
    limit, margin = limit_s or LIMIT_S[mode], MARGIN_S[mode] if limit_s is None else 0.0
    done, began = Done(), now()
    # The quick ones first: where time runs out, the few long ones are left out and not the many.
    ordered = sorted(stages, key=lambda stage: stage.expected_s)
    steps = [stage for _ in range(rounds) for stage in ordered]
    expected = [stage.expected_s for stage in steps]
    slow, enough = Slowness(), began + limit - margin
    for number, stage in enumerate(steps):
        took = now() - began
        tell(Step(stage.name, number, len(steps), time_left(expected, number, took, limit)))
        if done.interrupted or stopped():
            done.skipped.setdefault(stage.name, "interrupted before it")
        elif stage.name in done.skipped:
            continue
        elif took + expected[number] * (slow.times if number < len(stages) else 1.0) + margin > limit:
            done.skipped[stage.name] = f"no time left of {limit:.0f} s"
        else:
            _one(stage, setting, done, stopped, now, enough)
            lasted = now() - began - took
            if number < len(stages):
                slow.saw(expected[number], lasted)
            learned(expected, number, len(stages), lasted)
    done.interrupted = done.interrupted or stopped()
    tell(Step("", len(steps), len(steps), 0.0))
    return done


def _one(
    stage: Stage,
    setting: Setting,
    done: Done,
    stopped: Callable[[], bool],
    now: Callable[[], float],
    enough: float,
) -> None:
    """No sample is begun after ``enough``."""
    block = empty(stage)
    try:
        take(stage, setting, block, lambda: stopped() or now() >= enough, now)
    except (Unavailable, os1_models.ModelError) as e:
        done.skipped[stage.name] = str(e)
    except ModuleNotFoundError as e:
        done.skipped[stage.name] = f"{e.name} is not installed"
    except Exception as e:
        # One that is broken is told of; hundreds of samples of others are not lost for it.
        done.skipped[stage.name] = "interrupted" if stopped() else f"failed: {type(e).__name__}: {e}"
    except KeyboardInterrupt:  # asked a second time: now, in the middle of a sample
        done.interrupted = True
    if done.interrupted or stopped():
        done.skipped.setdefault(stage.name, "interrupted")
    if not block.n and now() >= enough:
        done.skipped.setdefault(stage.name, "no time left for a sample")
    if block.n:
        done.blocks.setdefault(stage.name, []).append(block)
