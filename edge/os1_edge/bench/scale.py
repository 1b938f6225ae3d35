"""How many machines so many wearers need. Pure: measured inputs and named assumptions in, machines out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WEARERS = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is not measured here."""

    talking: float = 0.05
    """Share of the wearers who are in a conversation at the busiest hour."""
    to_the_server: float = 0.6
    """Share of their turns that the router sends: the rest is answered by rule or by the device."""
    busy: float = 0.6
    """Share of a machine's most that it is planned for: waiting grows without bound towards 1 (M/M/c)."""
    spare: int = 1
    """Machines more, for one that fails or is being replaced, in each hundred or part of it."""
    prompt_tokens: int = 450
    """New to the model in each turn: what is the same in all (persona, examples) is held."""
    answer_tokens: int = 30


@dataclass(frozen=True, slots=True)
class Measured:
    """What one machine does."""

    turns_a_second: float
    """Of one wearer who talks (the bundled morning)."""
    served_a_second: float
    """Questions that a server process carries with an engine that costs nothing."""
    prefill: float
    generation: float
    """Tokens a second of the model, all its slots together."""


@dataclass(frozen=True, slots=True)
class Need:
    """For one number of wearers."""

    wearers: int
    turns_a_second: float
    for_the_model: int
    for_the_serving: int

    @property
    def machines(self) -> int:
        """Both run on the same machines: the one that needs more decides."""
        return max(self.for_the_model, self.for_the_serving)


def need(wearers: int, measured: Measured, assumed: Assumed) -> Need:
    """Machines at the busiest hour."""
    turns = wearers * assumed.talking * assumed.to_the_server * measured.turns_a_second
    seconds_a_turn = assumed.prompt_tokens / measured.prefill + assumed.answer_tokens / measured.generation

    def machines(load: float) -> int:
        bare = max(1, math.ceil(load / assumed.busy))
        return bare + assumed.spare * math.ceil(bare / 100)

    return Need(wearers, turns, machines(turns * seconds_a_turn), machines(turns / measured.served_a_second))


def table(measured: Measured, assumed: Assumed, wearers: Sequence[int] = WEARERS) -> str:
    """For docs/scale.md."""
    lines = [
        "| wearers | turns a second at the busiest hour | machines, for the model | for the serving alone |",
        "| --- | --- | --- | --- |",
    ]
    for count in wearers:
        found = need(count, measured, assumed)
        lines.append(
            f"| {count:,} | {found.turns_a_second:,.1f} | {found.for_the_model:,} "
            f"| {found.for_the_serving:,} |"
        )
    return "\n".join(lines)


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
