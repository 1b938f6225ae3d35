"""`os1 bench compare`, `suggest` and `show`: what is done with a bench.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from os1_edge.bench.compare import compare as compared
from os1_edge.bench.result import joined, load_result
from os1_edge.bench.suggest import quantisations, toml
from os1_edge.bench.suggest import suggest as suggested
from os1_edge.tomlfile import BadFile

FILE = click.Path(path_type=Path)


def share(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """A share such as "10%" or "0.1"."""
    if text is None:
        return None
    try:
        found = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        raise click.BadParameter(f'"{text}" is no share; write 10% or 0.1') from None
    if not 0 <= found < 100:
        raise click.BadParameter("a share is 0 or more; 10% is 0.1")
    return found


@click.command("compare")
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--fail-over", callback=share, help="Exit with 1 where B is really worse by more, such as 10%.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def compare(a: Path, b: Path, fail_over: float | None, as_json: bool) -> None:
    """What changed from A to B, two devices or two commits, each a bench.json.

    A difference inside the noise of the machines is not called one. Exit code 1 with --fail-over where
    something is really worse by more; 0 else.
    """
    from os1_edge.bench.table import compared as table
    from os1_edge.bench.table import show

    found = compared(load_result(a), load_result(b))
    if not found.verdicts:
        raise BadFile(b, f"has nothing that {a} has too")
    if as_json:
        click.echo(json.dumps(found.to_dict()))
    else:
        show(table(found))
    if fail_over is None:
        return
    if found.only_a:
        click.echo(f"not measured in {b}, so not looked at: {_some(found.only_a)}", err=True)
    blind = found.blind(fail_over)
    if blind:
        names = [v.name for v in blind]
        click.echo(f"too noisy to see a change of {fail_over:.0%}: {_some(names)}", err=True)
    failing = found.failing(fail_over)
    for verdict in failing:
        click.echo(f"worse by {verdict.change_for_worse:.0%}: {verdict.name}", err=True)
    if failing:
        sys.exit(1)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")


@click.command("suggest")
@click.argument("file", type=FILE)
@click.option("--out", type=FILE, help="Write it here; else it is printed.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def suggest(file: Path, out: Path | None, force: bool) -> None:
    """Settings that fit the device that FILE, a bench.json, was measured on.

    A settings file (TOML) that `os1 config check` accepts, each setting with its reason.
    """
    result = load_result(file)
    settings = suggested(result)
    told = result.machine
    head = [
        f"Suggested by os1 bench suggest from a measurement of {result.made:%Y-%m-%d}:",
        f"{told.cpu}, {told.cores} cores, {told.memory_mb} MB. What is not here keeps its default.",
        *quantisations(result),
        *(f"With care: {warning}." for warning in result.warnings),
    ]
    text = toml(settings, head)
    if out is None:
        click.echo(text, nl=False)
        return
    if out.exists() and not force:
        raise click.ClickException(f"{out} is there already; --force writes over it")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, "utf-8")
    click.echo(str(out))


@click.command("show")
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--html", type=FILE, help="Write the page here instead.")
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print the tables of a README, the main figures."
)
@click.option("--only", multiple=True, help="With --markdown: just this series. Many may be given.")
@click.option("--every", is_flag=True, help="With --markdown: every series.")
def show(
    files: tuple[Path, ...], html: Path | None, as_markdown: bool, only: tuple[str, ...], every: bool
) -> None:
    """FILES, a bench.json or several of one machine, as a table: bench.json and system.json give one page."""
    from os1_edge.bench import table

    try:
        result = joined([load_result(file) for file in files])
    except ValueError as e:
        raise click.UsageError(str(e)) from None
    if unknown := set(only) - {s.name for s in result.series}:
        raise click.BadParameter(f'no series is called "{sorted(unknown)[0]}"', param_hint="--only")
    if html is not None:
        from os1_edge.bench.page import page

        html.write_text(page(result), "utf-8")
        click.echo(str(html))
    elif as_markdown:
        click.echo(table.markdown(result, only or (None if every else table.MAIN)), nl=False)
    else:
        table.show(table.shown(result))
