"""`os1 bench`: measures the parts on this machine. Each command prints what its module measured."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import os1_models

PATH = click.Path(path_type=Path, exists=True, dir_okay=False)


ELSEWHERE = {
    "asr": ("os1_edge.bench.asr", "main"),
    "compare": ("os1_edge.bench.results_cli", "compare"),
    "echo": ("os1_edge.bench.echo", "main"),
    "fleet": ("os1_edge.bench.fleet_cli", "fleet"),
    "gaze": ("os1_edge.bench.gaze", "gaze"),
    "scene": ("os1_edge.bench.scene", "scene"),
    "memory": ("os1_edge.bench.memory_life", "main"),
    "prompt": ("os1_edge.bench.prompt", "prompt"),
    "resident": ("os1_edge.bench.resident", "main"),
    "route": ("os1_edge.bench.route", "main"),
    "show": ("os1_edge.bench.results_cli", "show"),
    "soak": ("os1_edge.bench.soak", "main"),
    "speech": ("os1_edge.bench.speech", "main"),
    "suggest": ("os1_edge.bench.results_cli", "suggest"),
    "system": ("os1_edge.bench.system_cli", "system"),
    "turn": ("os1_edge.bench.turn", "turn"),
    "turns": ("os1_edge.bench.turns", "turns"),
}
"""Commands that stand in the modules that measure; each is loaded when it is asked for."""


class Benches(click.Group):
    """`bench` with the commands of ``ELSEWHERE``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See ``click.Group``."""
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, name = ELSEWHERE[cmd_name]
        found: click.Command = getattr(import_module(module), name)
        return found


@click.group(cls=Benches, invoke_without_command=True)
@click.option("--quick", is_flag=True, help="Two minutes at most instead of fifteen, and less measured.")
@click.option("--only", multiple=True, help="A room such as hear, or a stage. Many may be given.")
@click.option("--peers", is_flag=True, help="Other programs on the same work too (pip install 'os1[peers]').")
@click.option("--threads", type=click.IntRange(1, 64), help="Cores to keep to; default: up to four.")
@click.option("--rounds", type=click.IntRange(1, 20), default=2, show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("bench-out"), show_default=True
)
@click.option("--list", "listing", is_flag=True, help="Say what there is to measure.")
@click.option("--plain", is_flag=True, help="A line for each stage instead of a bar, and no colour.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON for a program, too.")
@click.pass_context
def bench(
    ctx: click.Context,
    quick: bool,
    only: tuple[str, ...],
    peers: bool,
    threads: int | None,
    rounds: int,
    out: Path,
    listing: bool,
    plain: bool,
    as_json: bool,
) -> None:
    """Measure OS-1 on this machine: every part of it, or by the commands below one part well.

    Writes bench.json and bench.html to --out and prints a table. Ctrl-C ends it with what was measured by
    then. Leave the machine alone meanwhile; it tells when something else was at work.
    """
    if ctx.invoked_subcommand is None:
        from os1_edge.bench.whole import Asked, bench_all

        bench_all(Asked(quick, only, peers, threads, rounds, out, listing, plain, as_json))


@bench.command("recall")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--backend",
    default="sqlite-vec",
    show_default=True,
    help="Where the memories lie: sqlite-vec, or milvus[:URL] (docs/hosted.md; no URL: milvus-lite).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def recall(files: tuple[Path, ...], backend: str, as_json: bool) -> None:
    """How much of the annotated evidence recall finds in LoCoMo conversations.

    FILES are of the form of locomo10.json; categories 1 to 4 count. Recall@k is the percentage of a
    question's evidence turns among the best k. Without a language model; the conversations do not enter
    your memory.
    """
    from os1_edge.bench.recall import measure, read_conversations, table
    from os1_edge.bench.recall_hosted import place_of
    from os1_edge.remember.embed import Embedder

    conversations = [c for file in files for c in read_conversations(file)]
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    quiet = as_json or not sys.stderr.isatty()
    with place_of(backend) as prepare:
        (answers,) = measure(
            conversations,
            embedder,
            tell=lambda line: None if quiet else click.echo(line, err=True),
            prepare=prepare,
        )
    found = table(answers)
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    click.echo(f"{found['questions']} questions; evidence found, percent")
    categories = list(next(iter(found["recall"].values())))
    click.echo(f"{'':>10}" + "".join(f"{category:>13}" for category in categories))
    for depth, shares in found["recall"].items():
        row = "".join(f"{'-' if share is None else share:>13}" for share in shares.values())
        click.echo(f"recall@{depth:<3}" + row)
