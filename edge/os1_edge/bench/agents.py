"""What the agents' language jobs are worth, beside the rules that stand in for them.

    python -m os1_edge.bench.agents DIALOGUES.toml CASES.toml… [--model NAME…] [--every N] [--wrong]

Dialogues with labels (``Dialogue``): does the plan's objective fit, does the decider's next action, does it
see how it goes for the wearer. Over them and over cases that need the memory: does what the proposer looks
up bring the memory to light that was told for it, beside looking up the wearer's own words; does the
report name it, and how often does the model's own text say no more than the notes (a sentence that does is
dropped before anybody hears it). Temperature 0; the memory and the embedder are the real ones.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Literal

import click
from pydantic import BaseModel, ConfigDict, Field

import os1_models
from os1_edge.bench.grounding import KEY, Case, Suite, Told, load_suite, tell
from os1_edge.config import Config
from os1_edge.converse import evidence
from os1_edge.converse.jobs import A, LanguageJob, ask
from os1_edge.converse.retrieval import PROPOSE, REPORT, RetrievalAgent, joined, reported
from os1_edge.converse.strategy import DECIDE, PLAN, Outcome, Strategy, advanced, decided
from os1_edge.offload.engine import LanguageEngine
from os1_edge.offload.local import LocalLlama
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.profile import propose
from os1_edge.remember.recall import Hit, RecallRules
from os1_edge.remember.store import Store
from os1_edge.tomlfile import read_toml

PLACE = "somewhere, unknown"
WEARER = "Wearer: "


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Dialogue(_Row):
    """A short dialogue and what a good agent makes of it; empty labels are not judged."""

    name: str
    told: tuple[Told, ...] = ()
    lines: Annotated[tuple[str, ...], Field(min_length=1)]
    """"Wearer: …" or "Companion: …"; the last is the wearer's."""
    objective: str = ""
    action: str = ""
    action_not: str = ""
    outcome: Outcome | Literal[""] = ""
    evidence: tuple[str, ...] = ()
    """Expressions of which a report has to hold each."""

    @property
    def heard(self) -> list[str]:
        """The wearer's lines."""
        return [line.removeprefix(WEARER) for line in self.lines if line.startswith(WEARER)]


class Dialogues(_Row):
    """A file of them."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    dialogue: tuple[Dialogue, ...]


@dataclass(slots=True)
class Score:
    """Of one set of agents: by what is judged, how many answers were right, and of how many."""

    right: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    asked: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def judge(self, what: str, right: bool, told: str) -> None:
        """One answer, which ``told`` describes."""
        self.of[what] += 1
        self.right[what] += right
        if not right:
            self.wrong.append(f"{what}: {told}")

    def row(self, by: str, *, wrong: bool) -> dict[str, object]:
        """As it is printed."""
        shares = {what: f"{self.right[what]}/{n}" for what, n in self.of.items()}
        took = {f"{job}_s": round(self.seconds[job] / n, 2) for job, n in self.asked.items()}
        return {"by": by, **shares, **took, **({"wrong": self.wrong} if wrong else {})}


@dataclass(slots=True)
class Scores:
    """Whom all is measured for."""

    engine: LanguageEngine
    words: Score = field(default_factory=Score)
    """The wearer's own words looked up, nothing else."""
    rules: Score = field(default_factory=Score)
    model: Score = field(default_factory=Score)

    async def ask(self, job: LanguageJob[A], **slots: str) -> A | None:
        """See ``converse.jobs.ask``; timed, and here every job has the time it takes."""
        began = perf_counter()
        answer = await ask(self.engine, replace(job, seconds=600.0), None, **slots)
        self.model.asked[job.prompt] += 1
        self.model.seconds[job.prompt] += perf_counter() - began
        return answer


def strategy_by_rule(heard: Sequence[str]) -> Strategy:
    """The rules' strategy for the reply to the last of the wearer's lines."""
    strategy = None
    for line in heard:
        strategy = advanced(strategy, line)
    assert strategy is not None
    return strategy


def judge_strategy(score: Score, one: Dialogue, objective: str, strategy: Strategy) -> None:
    """``objective`` is the planner's, ``strategy`` the decider's."""
    if one.objective:
        score.judge("plan", _holds(one.objective, objective), f"{one.name}: {objective}")
    if one.action:
        fits = _holds(one.action, strategy.action) and not (
            one.action_not and _holds(one.action_not, strategy.action)
        )
        score.judge("decide", fits, f"{one.name}: {strategy.action}")
    if one.outcome:
        score.judge("outcome", strategy.outcome == one.outcome, f"{one.name}: {strategy.outcome}")


@dataclass(slots=True)
class Sought:
    """What is looked up for a turn, by whom, and what came of it."""

    case: Case
    suite: Suite
    conversation: str
    action: str
    queries: list[str] = field(default_factory=list)
    """The proposer's."""
    notes: list[str] = field(default_factory=list)
    """What the reporter is given."""


async def strategise(dialogues: Sequence[Dialogue], scores: Scores) -> None:
    """Planner and decider. The model's decider goes by the rules' plan, as it does inline (``ahead``). One
    kind of job after the other: what their prompts share is read once."""
    going = [strategy_by_rule(one.heard) for one in dialogues]
    for one, strategy in zip(dialogues, going, strict=True):
        judge_strategy(scores.rules, one, strategy.objective, strategy)
    told = ["\n".join(one.lines) for one in dialogues]
    plans = [await scores.ask(PLAN, conversation=lines, place=PLACE) for lines in told]
    for one, lines, strategy, plan in zip(dialogues, told, going, plans, strict=True):
        answer = await scores.ask(
            DECIDE, objective=strategy.objective, steps=strategy.numbered, conversation=lines
        )
        after = decided(strategy, answer) if answer else strategy
        judge_strategy(scores.model, one, plan.objective if plan else "", after)


def sought(dialogues: Sequence[Dialogue], suites: Sequence[Suite]) -> list[Sought]:
    """The turns whose replies need the memory."""
    out = []
    for one in dialogues:
        if one.evidence:
            case = Case(name=one.name, needs=(), told=one.told, heard=one.heard[-1], must=one.evidence)
            out.append(Sought(case, suites[0], "\n".join(one.lines), strategy_by_rule(one.heard).action))
    for suite in suites:
        out += [
            Sought(case, suite, WEARER + case.heard, strategy_by_rule([case.heard]).action)
            for case in suite.case
            if case.told and "context" not in case.needs
        ]
    return out


async def retrieve(turns: Sequence[Sought], embedder: Embedder, scores: Scores) -> None:
    """Proposer and reporter, by each; what the wearer said is looked up in any case, as it is in a turn."""
    for turn in turns:
        answer = await scores.ask(PROPOSE, conversation=turn.conversation, place=PLACE, action=turn.action)
        turn.queries = [*answer.history, *answer.profile] if answer else []
    for turn in turns:
        async with told_to(turn.case, turn.suite, embedder) as memory:
            await _look_up(turn, memory, scores)
    for turn in turns:
        if notes := "\n".join(f"- {note}" for note in turn.notes):
            told = await scores.ask(REPORT, notes=notes, conversation=turn.conversation)
            raw = " ".join(told.report.split()) if told else ""
            kept = reported(raw, notes)
            scores.model.judge("report invents nothing", kept == raw, f"{turn.case.name}: {raw}")
            _judge_report(scores.model, turn.case, kept)


async def _look_up(turn: Sought, memory: Memory, scores: Scores) -> None:
    case, now = turn.case, turn.suite.now
    wanted = {told.text.casefold() for told in case.told}
    wanted |= {line.text.casefold() for told in case.told for line in propose(told.text)}

    def found(*hits: Hit) -> bool:
        return any(hit.text.casefold() in wanted for hit in hits)

    agent = RetrievalAgent(scores.engine, memory)
    own = await agent.look_up([case.heard], now, ())
    scores.words.judge("evidence", found(*own), case.name)
    by_rule = evidence.queries(case.heard, now)
    hits = (*own, *await agent.look_up(by_rule, now, ()))
    scores.rules.judge("evidence", found(*hits), f"{case.name}: {by_rule}")
    _judge_report(scores.rules, case, joined(hits))
    more = await agent.look_up(turn.queries or by_rule, now, ())
    scores.model.judge("evidence", found(*own, *more), f"{case.name}: {turn.queries}")
    scores.model.judge("evidence by the queries alone", found(*more), f"{case.name}: {turn.queries}")
    turn.notes = [hit.text for hit in more or own]


def _judge_report(score: Score, case: Case, text: str) -> None:
    lacks = [pattern for pattern in case.must if not _holds(pattern, text)]
    score.judge("report", not lacks, f"{case.name}: {text}")


@asynccontextmanager
async def told_to(case: Case, suite: Suite, embedder: Embedder) -> AsyncIterator[Memory]:
    """A memory to which ``case`` was told."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", KEY, embedder=embedder.name)
        remember = Config().remember
        rules = RecallRules(remember.limit, remember.min_similarity, derived=False)
        memory = Memory(store, embedder, rules)
        try:
            await tell(memory, case, suite)
            yield memory
        finally:
            memory.close()


async def measured(
    dialogues: Sequence[Dialogue], suites: Sequence[Suite], embedder: Embedder, scores: Scores
) -> None:
    """Fills the scores."""
    await strategise(dialogues, scores)
    await retrieve(sought(dialogues, suites), embedder, scores)


def _holds(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.I) is not None


@click.command()
@click.argument("dialogues", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument(
    "cases", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--model", "models", multiple=True, default=("qwen2.5-0.5b",), show_default=True)
@click.option("--threads", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option(
    "--every", default=1, show_default=True, type=click.IntRange(1), help="Of the cases, each N-th."
)
@click.option("--wrong", is_flag=True, help="Print what is not right, too.")
def agents(
    dialogues: Path, cases: tuple[Path, ...], models: tuple[str, ...], threads: int, every: int, wrong: bool
) -> None:
    """Score the agents' jobs: one line of JSON for the rules and one a model."""
    labelled = read_toml(dialogues, Dialogues)[0].dialogue
    suites = [load_suite(path) for path in cases]
    background = next((suite.background for suite in suites if suite.background), ())
    suites = [
        suite.model_copy(update={"background": background, "case": suite.case[::every]}) for suite in suites
    ]
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    for number, model in enumerate(models):
        engine = LocalLlama(os1_models.path(model), threads)
        try:
            scores = Scores(engine)
            asyncio.run(measured(labelled, suites, embedder, scores))
        finally:
            engine.close()
        if number == 0:
            click.echo(json.dumps(scores.words.row("the wearer's own words", wrong=wrong)))
            click.echo(json.dumps(scores.rules.row("rules", wrong=wrong)))
        click.echo(json.dumps(scores.model.row(model, wrong=wrong)))


if __name__ == "__main__":
    agents()
