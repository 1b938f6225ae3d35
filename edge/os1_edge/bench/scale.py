"""How many machines so many wearers need, and which of them are short first. Pure: measured inputs and named
assumptions in, machines out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WEARERS = (1_000, 10_000, 100_000, 1_000_000)
STEPS = (1_000, 100_000, 1_000_000)
"""Those whose bottleneck is told."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is not measured here."""

    talking: float = 0.05
    """Share of the wearers who are in a conversation at the busiest hour."""
    to_the_server: float = 0.6
    """Share of their turns that the router sends: the rest is answered by rule or by the device."""
    seeing: float = 0.15
    """Share of those that carry a picture: they go to a vision model, on GPUs."""
    hearing: float = 0.1
    """Share of those whose sound the server recognises and speaks: of devices that cannot themselves."""
    busy: float = 0.6
    """Share of a machine's most that it is planned for: waiting grows without bound towards 1 (M/M/c)."""
    spare: int = 1
    """Machines more, for one that fails or is being replaced, in each hundred or part of it."""
    prompt_tokens: int = 450
    """New to the model in each turn: what is the same in all (persona, examples) is held."""
    picture_tokens: int = 400
    """More of them for a picture (640 by 480 in Qwen2.5-VL)."""
    answer_tokens: int = 30
    gpu_prefill: float = 8_000
    gpu_generation: float = 1_000
    """Tokens a second of one GPU with a model of 7 billion, all its slots together."""
    speech_a_second: float = 1.0
    """Turns that one machine like this recognises and speaks (whisper-base, piper-joe: three seconds of sound
    take about one)."""
    picture_kb: float = 60
    nic_mbit: float = 1_000
    """Of a machine with front doors."""
    replicas_a_cluster: int = 4_096
    """Ray measures its Serve controller with so many."""
    wearers_a_cell: int = 100_000
    """How many may notice it when a cluster's head is lost."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one machine does."""

    turns_a_second: float
    """Of one wearer who talks (the bundled morning)."""
    served_a_second: float
    """Questions that a server process carries with an engine of its own that costs nothing."""
    front_a_second: float
    """Questions that a front door before Ray carries, likewise, its replicas on the same machine."""
    kb_a_question: float
    """Messages of a question without a picture, both ways."""
    prefill: float
    generation: float
    """Tokens a second of the model, all its slots together."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of one kind of machine, and what one of them can, in the same unit a second."""

    kind: str
    asked: float
    most: float

    @property
    def use(self) -> float:
        """Of one of them: above 1 it takes more."""
        return self.asked / self.most


@dataclass(frozen=True, slots=True)
class Plan:
    """For one number of wearers."""

    wearers: int
    turns_a_second: float
    machines: dict[str, int]
    """Of each kind, in all cells."""
    cells: int
    """Clusters that share nothing."""
    demands: tuple[Demand, ...]
    """Of all wearers together, the fullest first."""


def turns(wearers: float, measured: Measured, assumed: Assumed) -> float:
    """That reach servers each second of the busiest hour."""
    return wearers * assumed.talking * assumed.to_the_server * measured.turns_a_second


def demands(wearers: float, measured: Measured, assumed: Assumed, gpus: bool) -> tuple[Demand, ...]:
    """On each kind of machine. ``gpus``: text is answered on GPUs too, not by machines like that measured."""
    a, m = assumed, measured
    all_turns = turns(wearers, m, a)
    seen, heard = a.seeing * all_turns, a.hearing * all_turns
    prefill, generation = (a.gpu_prefill, a.gpu_generation) if gpus else (m.prefill, m.generation)
    text_s = a.prompt_tokens / prefill + a.answer_tokens / generation
    seeing_s = (a.prompt_tokens + a.picture_tokens) / a.gpu_prefill + a.answer_tokens / a.gpu_generation
    kb = all_turns * m.kb_a_question + seen * a.picture_kb
    return (
        Demand("text", all_turns - seen, 1 / text_s),
        Demand("vision", seen, 1 / seeing_s),
        Demand("speech", heard, a.speech_a_second),
        Demand("front door", all_turns + 2 * heard, m.front_a_second),
        Demand("network", kb, a.nic_mbit * 1000 / 8),
    )


def machines(of: Demand, assumed: Assumed) -> int:
    """So many that none is busier than planned, and the spare ones."""
    bare = max(1, math.ceil(of.use / assumed.busy))
    return bare + assumed.spare * math.ceil(bare / 100)


REPLICAS = ("text", "vision", "speech")
"""Kinds of machine that hold a replica each, which a cluster's controller has to watch."""


def plan(wearers: int, measured: Measured, assumed: Assumed, gpus: bool) -> Plan:
    """Machines at the busiest hour: cells of so many wearers as may be lost at once, or fewer where the
    controller could not watch their replicas."""
    cells = math.ceil(wearers / assumed.wearers_a_cell)
    while True:
        a_cell = {
            each.kind: machines(each, assumed) for each in demands(wearers / cells, measured, assumed, gpus)
        }
        replicas = sum(a_cell[kind] for kind in REPLICAS)
        controllers = math.ceil(replicas / (assumed.busy * assumed.replicas_a_cluster))
        if controllers <= 1:
            break
        cells *= controllers
    every = (
        *demands(wearers, measured, assumed, gpus),
        Demand("controller", float(replicas * cells), float(assumed.replicas_a_cluster)),
    )
    return Plan(
        wearers,
        turns(wearers, measured, assumed),
        {kind: count * cells for kind, count in a_cell.items()},
        cells,
        tuple(sorted(every, key=lambda each: each.use, reverse=True)),
    )


def table(measured: Measured, assumed: Assumed, wearers: Sequence[int] = WEARERS) -> str:
    """Machines, for docs/scale.md."""
    lines = [
        "| wearers | turns a second at the busiest hour | text: machines like this | or GPUs | vision: GPUs "
        "| speech: machines | front doors | cells |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for count in wearers:
        on_cpus, on_gpus = (plan(count, measured, assumed, gpus) for gpus in (False, True))
        doors = max(on_gpus.machines["front door"], on_gpus.machines["network"])
        cells = " or ".join(dict.fromkeys((f"{on_cpus.cells:,}", f"{on_gpus.cells:,}")))
        lines.append(
            f"| {count:,} | {on_gpus.turns_a_second:,.1f} | {on_cpus.machines['text']:,} "
            f"| {on_gpus.machines['text']:,} | {on_gpus.machines['vision']:,} "
            f"| {on_gpus.machines['speech']:,} | {doors:,} | {cells} |"
        )
    return "\n".join(lines)


def bottlenecks(measured: Measured, assumed: Assumed, wearers: Sequence[int] = STEPS) -> str:
    """What is short first, and what next, for docs/scale.md: how often the most of one of each is asked."""
    lines = [
        "| wearers | text on | short first | then | one is enough of |",
        "| --- | --- | --- | --- | --- |",
    ]
    for count in wearers:
        for gpus in (False, True):
            found = plan(count, measured, assumed, gpus).demands
            short = [each for each in found if each.use > assumed.busy]
            rest = found[len(short) :]
            first = told(short[:1]) or f"nothing yet; fullest is {told(rest[:1])}"
            lines.append(
                f"| {count:,} | {'GPUs' if gpus else 'processors'} | {first} | {told(short[1:]) or '–'} "
                f"| {told(rest) or '–'} |"
            )
    return "\n".join(lines)


def told(some: Sequence[Demand]) -> str:
    """Kinds with the use of one of them."""
    return ", ".join(f"{each.kind} {each.use:,.{0 if each.use >= 10 else 2}f}" for each in some)


def filled(page: str, name: str, text: str) -> str:
    """``page`` with what stands between ``<!-- name -->`` and ``<!-- /name -->`` replaced.

    Raises:
        ValueError: the page has no such place.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no place {start} ... {end}")
    return f"{before}{start}\n{text.strip()}\n{end}{after}"
