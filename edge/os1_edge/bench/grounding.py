"""Whether replies rest on what is known and seen: scripted cases through the real memory, recall and reply.

    python -m os1_edge.bench.grounding CASES.toml… [--model NAME…] [--ablation NAME…] [--wrong]

A case is told to an empty memory on the days before, goes through the night shift by plain rules, and is then
asked; expressions decide what the reply must and must not name (``Case``). With an ablation (paper 4.1.1),
only the cases that need what it leaves out are of interest: their share is told apart. Temperature 0.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, get_args

import click
from pydantic import BaseModel, ConfigDict, Field

import os1_models
from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.converse.ablation import LEAVES_OUT, Ablation
from os1_edge.converse.reply import Replier
from os1_edge.converse.saying import Outcome, sayable, split
from os1_edge.offload.engine import LanguageEngine
from os1_edge.offload.local import LocalLlama
from os1_edge.offload.router import Router
from os1_edge.remember.consolidate import Consolidator
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import RecallRules
from os1_edge.remember.store import Store
from os1_edge.speak.clauses import ClauseSplitter

NOTED = "I will remember that."
"""What OS-1 is taken to have replied on the days before."""

KEY = bytes(32)
"""Of memory files that are deleted a second later."""

Part = Literal["profile", "history", "context"]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Told(_Row):
    """Something that the wearer said on an earlier day."""

    days_ago: Annotated[int, Field(ge=1, le=400)]
    text: str
    place: str = ""


class Case(_Row):
    """One reply and what decides whether it is right."""

    name: str
    needs: tuple[Part, ...]
    """Without these nobody could know."""
    told: tuple[Told, ...] = ()
    scene: str = ""
    heard: str
    must: tuple[str, ...]
    """Expressions that the reply has to hold, all of them."""
    must_not: tuple[str, ...] = ()

    def judge(self, reply: str) -> str:
        """What is wrong with ``reply``; empty: it is right."""
        for pattern in self.must:
            if not re.search(pattern, reply, re.I):
                return f"does not name {pattern}"
        for pattern in self.must_not:
            if re.search(pattern, reply, re.I):
                return f"names {pattern}"
        return ""


class Suite(_Row):
    """A file of cases."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    now: datetime
    background: tuple[Told, ...] = ()
    """Told to every wearer."""
    case: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and what was replied."""

    case: Case
    reply: str
    route: str
    fault: str
    """Empty: right."""


def load_suite(path: Path) -> Suite:
    """Reads a file of cases.

    Raises:
        ValueError: it is not of that form.
    """
    return Suite.model_validate(tomllib.loads(path.read_text("utf-8")))


async def answered(
    case: Case,
    suite: Suite,
    engine: LanguageEngine,
    embedder: Embedder,
    config: Config,
) -> Judged:
    """Tells the case to a new memory, asks, and judges the reply."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", KEY, embedder=embedder.name)
        remember = config.remember
        rules = RecallRules(remember.limit, remember.min_similarity, derived=False)
        memory = Memory(store, embedder, rules)
        try:
            await tell(memory, case, suite)
            replier = Replier(config, Router(engine, None, Clock()), memory)
            asked = await replier.prepare(case.heard, suite.now, case.scene)
            outcome = Outcome()
            written = split(replier.stream(asked), ClauseSplitter())
            clauses = sayable(asked, written, replier.editor(asked), outcome)
            reply = " ".join([clause async for clause in clauses])
        finally:
            memory.close()
    return Judged(case, reply, outcome.route or "model", case.judge(reply))


async def tell(memory: Memory, case: Case, suite: Suite) -> None:
    """What was said on the days before goes into ``memory``, and through its night."""
    lines = sorted([*suite.background, *case.told], key=lambda told: -told.days_ago)
    for number, told in enumerate(lines):
        at = suite.now - timedelta(days=told.days_ago, minutes=len(lines) - number)
        await memory.keep_turn(f"t{number}", 0, at, told.text, NOTED, told.place)
    await Consolidator(memory).finish(suite.now)


async def judged(
    cases: Sequence[Case], suite: Suite, engine: LanguageEngine, embedder: Embedder, ablation: Ablation
) -> list[Judged]:
    """All ``cases``, one after the other."""
    config = Config.model_validate({"converse": {"ablation": ablation}})
    return [await answered(case, suite, engine, embedder, config) for case in cases]


def needing(cases: Sequence[Case], ablation: Ablation) -> list[Case]:
    """Those that need something that ``ablation`` leaves out; for none, all."""
    out = LEAVES_OUT[ablation]
    return [case for case in cases if not out or out & set(case.needs)]


def share(found: Sequence[Judged]) -> float:
    """Percentage that is right."""
    return round(100 * sum(not one.fault for one in found) / max(1, len(found)), 1)


def measured(
    suites: Sequence[Suite],
    models: Sequence[str],
    ablations: Sequence[Ablation],
    threads: int,
    *,
    wrong: bool,
) -> Iterator[dict[str, object]]:
    """One row a model and ablation."""
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    background = next((suite.background for suite in suites if suite.background), ())
    for model in models:
        engine = LocalLlama(os1_models.path(model), threads)
        try:
            full: list[Judged] = []
            for ablation in ablations:
                found = []
                for suite in suites:
                    told = suite.model_copy(update={"background": background})
                    cases = needing(suite.case, ablation)
                    found += asyncio.run(judged(cases, told, engine, embedder, ablation))
                if ablation == "none":
                    full = found
                names = {one.case.name for one in found}
                row: dict[str, object] = {
                    "model": model,
                    "ablation": ablation,
                    "cases": len(found),
                    "right_percent": share(found),
                    "with_everything_percent": share([o for o in full if o.case.name in names]),
                }
                if wrong:
                    row["wrong"] = [(o.case.name, o.reply, o.route, o.fault) for o in found if o.fault]
                yield row
        finally:
            engine.close()


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--model", "models", multiple=True, default=("qwen2.5-0.5b",), show_default=True)
@click.option("--ablation", "ablations", multiple=True, type=click.Choice(get_args(Ablation)))
@click.option("--threads", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option("--wrong", is_flag=True, help="Print the replies that are not right, too.")
def grounding(
    files: tuple[Path, ...],
    models: tuple[str, ...],
    ablations: tuple[Ablation, ...],
    threads: int,
    wrong: bool,
) -> None:
    """Score scripted cases: one line of JSON per model and ablation (all of them where none is named)."""
    suites = [load_suite(path) for path in files]
    for row in measured(suites, models, ablations or get_args(Ablation), threads, wrong=wrong):
        click.echo(json.dumps(row))


if __name__ == "__main__":
    grounding()
