"""`os1 bench`: the suite run, shown and written down."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from os1_edge import __version__
from os1_edge.bench import machine
from os1_edge.bench.result import Ratio, Result, Skipped
from os1_edge.bench.stage import Setting, Stage, Unavailable
from os1_edge.bench.suite import Done, Step, Stop, Tell, run

MOST_THREADS = 4
"""The models gain little from more, and heat."""

ROUNDS = 2
"""Apart by everything else: their difference is this machine's noise."""


Peers = Callable[[Setting, Callable[[], bool]], tuple[list[Ratio], list[Skipped]]]


def all_stages() -> list[Stage]:
    """Every stage there is, in the order of a turn."""
    from os1_edge.bench.stages import converse, hear, offload, process, remember, see, speak

    rooms = (hear, see, remember, converse, speak, offload, process)
    return [stage for room in rooms for stage in room.stages()]


def chosen(stages: Sequence[Stage], quick: bool, only: Sequence[str]) -> list[Stage]:
    """The stages of a run. ``only`` names rooms, or (parts of) stages; it reaches beyond the quick ones.

    Raises:
        Unavailable: it names none.
    """
    if not only:
        return [stage for stage in stages if stage.quick or not quick]
    wanted = {word: [stage for stage in stages if _named(stage, word)] for word in only}
    for word in only:  # who names a stage or a room whole does not mean others that hold the word
        wanted[word] = [s for s in wanted[word] if word in (s.name, s.group)] or wanted[word]
    if unknown := [word for word in only if not wanted[word]]:
        names = ", ".join(dict.fromkeys(stage.group for stage in stages))
        raise Unavailable(f'nothing is called "{unknown[0]}"; rooms are {names}; see os1 bench --list')
    return [stage for stage in stages if any(stage in some for some in wanted.values())]


def _named(stage: Stage, word: str) -> bool:
    return word == stage.group or word.lower() in stage.name.lower()


def measure(
    stages: Sequence[Stage],
    setting: Setting,
    command: str,
    rounds: int = ROUNDS,
    peers: Peers | None = None,
    tell: Tell = lambda step: None,
    said: Callable[[str], None] = lambda text: None,
) -> Result:
    """Runs ``stages``, then ``peers``; Ctrl-C ends it with what there is."""
    pinned, before, began = machine.pin(setting.threads), machine.state(), perf_counter()
    stop = Stop()
    ratios: list[Ratio] = []
    absent: list[Skipped] = []
    with stop.listening(lambda: said("stopping after this one; what was measured is kept")):
        done: Done = run(stages, setting, rounds, stop, tell)
        if peers is not None and not done.interrupted:
            ratios, absent = peers(setting, stop)
    found = machine.described(before, machine.state(), pinned)
    return Result(
        made=datetime.now().astimezone().replace(microsecond=0),
        os1_version=__version__,
        command=command,
        mode="quick" if setting.quick else "full",
        threads=setting.threads,
        rounds=rounds,
        seconds=round(perf_counter() - began, 1),
        interrupted=done.interrupted or stop(),
        machine=found,
        series=tuple(done.series(stages)),
        skipped=(*done.left_out(), *absent),
        peers=tuple(ratios),
        warnings=tuple(machine.warnings(found)),
    )


@contextmanager
def progress(quiet: bool, plain: bool = False) -> Iterator[Tell]:
    """A bar with the time left, on standard error; a line for each stage where that is no terminal."""
    console = Console(file=sys.stderr)
    if quiet:
        yield lambda step: None
        return
    if plain or not console.is_terminal:
        yield lambda step: click.echo(in_words(step), err=True) if step.stage else None
        return
    columns = (TextColumn("{task.description:40.40}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=console, transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def tell(step: Step) -> None:
            bar.update(task, total=step.of, completed=step.done, description=step.stage, left=time_left(step))

        yield tell


def time_left(step: Step) -> str:
    """Such as "4:05 left"."""
    minutes, seconds = divmod(round(step.left_s), 60)
    return f"{minutes}:{seconds:02d} left"


def in_words(step: Step) -> str:
    """The step as a line."""
    return f"{step.done + 1} of {step.of}  {step.stage}  {time_left(step)}"


def write(result: Result, out: Path) -> list[Path]:
    """``bench.json`` and ``bench.html`` in ``out``."""
    from os1_edge.bench.page import page

    out.mkdir(parents=True, exist_ok=True)
    table, html = out / "bench.json", out / "bench.html"
    result.write(table)
    html.write_text(page(result), "utf-8")
    return [table, html]


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of ``os1 bench``."""

    quick: bool
    only: tuple[str, ...]
    peers: bool
    threads: int | None
    rounds: int
    out: Path
    listing: bool
    plain: bool
    as_json: bool

    @property
    def command(self) -> str:
        """How one asks for the same again."""
        words = ["os1 bench", *(["--quick"] if self.quick else []), *(["--peers"] if self.peers else [])]
        words += [f"--only {shlex.quote(word)}" for word in self.only]
        words += [f"--threads {self.threads}"] if self.threads else []
        return " ".join([*words, *([f"--rounds {self.rounds}"] if self.rounds != ROUNDS else [])])


def bench_all(asked: Asked) -> None:
    """Measures, prints and writes."""
    from os1_edge.bench.table import show, shown

    stages = chosen(all_stages(), asked.quick, asked.only)
    if asked.listing:
        listed(stages)
        return
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = Setting(min(asked.threads or min(MOST_THREADS, allowed), allowed), asked.quick)
    with progress(asked.as_json, asked.plain) as tell:
        result = measure(
            stages,
            setting,
            asked.command,
            asked.rounds,
            _peers(asked.peers),
            tell=tell,
            said=lambda text: click.echo(text, err=True),
        )
    written = write(result, asked.out)
    if asked.as_json:
        click.echo(written[0].read_text("utf-8"), nl=False)
        return
    show(shown(result), asked.plain)
    click.echo("written: " + ", ".join(map(str, written)))


def _peers(wanted: bool) -> Peers | None:
    if not wanted:
        return None
    from os1_edge.bench.peers import peers

    return peers


def listed(stages: Sequence[Stage]) -> None:
    """Prints what there is to measure."""
    for stage in stages:
        quick = "quick" if stage.quick else ""
        click.echo(f"{stage.group:10}{stage.name:44}{quick:8}about {stage.expected_s:.0f} s a round")
