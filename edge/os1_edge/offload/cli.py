"""`os1 route`: where answers are made, and why. A skin over the journal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from os1_edge.config import load_config
from os1_edge.offload.explain import sentences
from os1_edge.offload.journal import KEPT, default_file, read


@click.group()
def route() -> None:
    """Where answers are made: on the device, or on the offload server."""


@route.command()
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A journal (a replay writes routes.json beside its report); default: the wearer's own.",
)
@click.option("--config", "config_file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def explain(file: Path | None, config_file: Path | None, as_json: bool) -> None:
    """The link, the estimates and the last decisions, in words."""
    journal = read(file or default_file())
    settings = load_config(config_file).offload
    if as_json:
        taken = [asdict(t) for t in journal.taken]
        rules = settings.model_dump(mode="json", exclude={"token_file", "ca_file", "client_key"})
        click.echo(json.dumps({"settings": rules, "status": journal.status, "taken": taken}))
        return
    for line in sentences(settings, journal):
        click.echo(line)
    if not journal.taken:
        click.echo(f"No answer was made with a server at hand yet; the last {KEPT} are kept.")
