"""The link matrix on the virtual clock: every cell is a wearer's ten minutes over one kind of link."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Literal

from model import ANSWER, Model, ModelDevice, Path

from os1_edge import clock
from os1_edge.clock import Clock
from os1_edge.offload.budget import Budget, budgets
from os1_edge.offload.engine import Message
from os1_edge.offload.route import MARGIN_S, Rules
from os1_edge.offload.router import Router

RTTS_S = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
RATES = (64e3, 256e3, 1e6, 5e6, 50e6)
FAULTS = (
    "stable",
    "flapping",
    "black hole",
    "half open",
    "dns dead",
    "tls broken",
    "killed",
    "draining",
    "captive",
)
Kind = Literal["reply", "caption"]
KINDS: tuple[Kind, ...] = ("reply", "caption")

TEXT = "Where is my car? " * 60
"""A prompt of a thousand bytes."""
PICTURE = bytes(40_000)

SURE = 0.85
"""The oracle asks the server where at least so many of its first words come before the device would have to
begin: where more were in vain, both sides would work on more than the 15 % of questions allowed."""


@dataclass(frozen=True)
class Cell:
    """One kind of link, and what is asked over it."""

    rtt_s: float
    loss: float
    bits_s: float
    fault: str = "stable"
    kind: Kind = "reply"


@dataclass
class Found:
    """What became of a cell's turns."""

    cell: Cell
    turns: int
    in_time: int
    whole: int
    both: int
    cloud: int
    """Turns whose route was the server, of the last two thirds."""
    settled: int
    share: float
    """What the oracle knows: the share of the server's first words that come before the last moment."""
    live: int

    @property
    def right(self) -> bool:
        """Whether most turns took the oracle's side."""
        return (self.cloud * 2 > self.settled) == (self.share >= SURE)


def cells(faults: Sequence[str] = FAULTS, every: int = 1) -> Iterator[Cell]:
    """The matrix; each ``every``-th cell of it."""
    number = 0
    for fault in faults:
        for rtt in RTTS_S:
            for loss in LOSSES:
                for rate in RATES:
                    for kind in KINDS:
                        number += 1
                        if number % every == 0:
                            yield Cell(rtt, loss, rate, fault, kind)


def live(cell: Cell, turns: int = 45, every_s: float = 8.0, seed: int = 1) -> Found:
    """That many turns in ``cell``."""
    return clock.run(_live(cell, turns, every_s, seed), virtual=True)


async def _live(cell: Cell, turns: int, every_s: float, seed: int) -> Found:
    chance = random.Random(f"{cell}{seed}")
    model = Model(Path(cell.rtt_s, cell.loss, cell.bits_s), chance, _fault(cell.fault, every_s))
    device = ModelDevice(chance)
    budget = budgets()[cell.kind]
    rules = Rules(images=True)
    router = Router(device, model, Clock(), rules, chance=random.Random(seed))
    images = (PICTURE,) if cell.kind == "caption" else ()
    found = Found(cell, turns, 0, 0, 0, 0, 0, _share(cell, model, device, budget), 0)
    await router.prime([Message("user", f"0 {TEXT}")])
    for number in range(turns):
        router.wearer_speaks()
        await asyncio.sleep(every_s)
        began, first, text = router._clock.now(), None, ""
        async with aclosing(
            router.stream([Message("user", f"{number} {TEXT}", images)], 64, task=cell.kind)
        ) as answer:
            async for part in answer:
                first = router._clock.now() - began if first is None else first
                text += part
        taken = router.journal.taken[-1]
        found.in_time += first is not None and first <= budget.first_token_s * 1.1
        found.whole += text == ANSWER
        found.both += taken.both
        if number >= turns // 3:
            found.settled += 1
            found.cloud += taken.route == "cloud" and taken.cloud_s is not None
    await asyncio.sleep(5)
    found.live = model.live + device.live
    await router.close()
    return found


def _share(cell: Cell, model: Model, device: ModelDevice, budget: Budget) -> float:
    """What nobody in the field can know: how often the server would be in time."""
    size = 300 + len(TEXT) + (len(PICTURE) if cell.kind == "caption" else 0)
    latest = budget.first_token_s - (device.first_s + 2 * device.spread_s) - MARGIN_S
    samples = [model.first_text_s(size) for _ in range(400)]
    return sum(s <= latest for s in samples) / len(samples)


def _fault(name: str, every_s: float) -> Callable[[float], str]:
    """What is wrong at a session second. Faults come after some good minutes, and end."""
    wrong = name.replace("stable", "")

    def fault(now: float) -> str:
        if name == "flapping":
            return "black hole" if now % 13 > 9 else ""
        if name == "killed":  # in the middle of an answer, every fifth turn
            return "killed" if 0.35 < now % (5 * every_s) < 1.5 and now > 30 else ""
        return wrong if 100 < now < 200 else ""

    return fault


def summary(found: Sequence[Found]) -> dict[str, Any]:
    """The numbers that are promised."""
    turns = sum(f.turns for f in found)
    steady = [f for f in found if f.cell.fault == "stable"]
    return {
        "cells": len(found),
        "turns": turns,
        "in_time": sum(f.in_time for f in found) / turns,
        "whole": sum(f.whole for f in found) / turns,
        "both_at_work": sum(f.both for f in found) / turns,
        "steady_cells": len(steady),
        "right_side": sum(f.right for f in steady) / max(len(steady), 1),
        "steady_cells_by_cloud": sum(f.cloud * 2 > f.settled for f in steady),
        "live_afterwards": sum(f.live for f in found),
        "worst_cell_both_at_work": max(f.both / f.turns for f in found),
        "wrong": [
            asdict(f.cell) | {"share": f.share, "cloud": f.cloud / f.settled} for f in steady if not f.right
        ],
    }
