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
    "echo": ("os1_edge.bench.echo", "main"),
    "gaze": ("os1_edge.bench.gaze", "gaze"),
    "scene": ("os1_edge.bench.scene", "scene"),
    "memory": ("os1_edge.bench.memory_life", "main"),
    "prompt": ("os1_edge.bench.prompt", "prompt"),
    "route": ("os1_edge.bench.route", "main"),
    "speech": ("os1_edge.bench.speech", "main"),
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


@click.group(cls=Benches)
def bench() -> None:
    """Measure the parts of OS-1 on this machine."""


@bench.command("recall")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def recall(files: tuple[Path, ...], as_json: bool) -> None:
    """How much of the annotated evidence recall finds in LoCoMo conversations.

    FILES are of the form of locomo10.json; categories 1 to 4 count. Recall@k is the percentage of a
    question's evidence turns among the best k. Without a language model; the conversations do not enter
    your memory.
    """
    from os1_edge.bench.recall import measure, read_conversations, table
    from os1_edge.remember.embed import Embedder

    conversations = [c for file in files for c in read_conversations(file)]
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    quiet = as_json or not sys.stderr.isatty()
    (answers,) = measure(
        conversations, embedder, tell=lambda line: None if quiet else click.echo(line, err=True)
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
