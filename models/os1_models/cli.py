"""`os1 models`: list, pull, verify, path. A skin over the library; each command prints what that returns."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

import os1_models
from os1_models.errors import ModelError, UnknownModel
from os1_models.store import Store, models_dir

if TYPE_CHECKING:
    from os1_models.manifest import Model, Source
    from os1_models.receipt import Receipt

P = ParamSpec("P")
R = TypeVar("R")
FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
SETS = ("edge", "cloud", "extra", "vlm", "all")


def _plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the family of model errors into one message on stderr, without a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except ModelError as error:
            click.echo(f"os1: {error}", err=True)
            sys.exit(WRONG_USE if isinstance(error, UnknownModel) else FAILED)
        except KeyboardInterrupt:
            click.echo("os1: interrupted; the next pull goes on from here", err=True)
            sys.exit(INTERRUPTED)

    return run


def hash_state(model: Model, receipt: Receipt | None) -> str:
    """How sure the bytes are: of the installed model, else of what a pull would bring."""
    if receipt is not None:
        return "checked" if receipt.hash_state == "checked" else "pinned at first pull"
    hashed = [source.hashed for source in model.sources]
    if all(hashed):
        never_fetched = [_kind(source) for source in model.sources if source.borrowed_hash]
        return "; ".join(
            ["in manifest", *(f"{kind} source demands the same bytes" for kind in never_fetched)]
        )
    if not any(hashed):
        return "none yet: hub entry not fetched"
    if hashed[0]:
        return "in manifest; none yet for the hub entry behind it"
    return "none yet: hub entry not fetched; next source in manifest"


def _kind(source: Source) -> str:
    scheme = source.artefacts[0].scheme
    return "hub" if scheme == "hf" else scheme


def source_hash_state(source: Source) -> str:
    """How sure the hashes of one source are."""
    if source.borrowed_hash:
        return "of another source's same file; not fetched here"
    return "in manifest" if source.hashed else "none yet"


def describe(model: Model, store: Store) -> dict[str, Any]:
    """One model's line in the list, as JSON values."""
    receipt = store.installed(model.name)
    known = [source.size for source in model.sources if source.size is not None]
    return {
        "name": model.name,
        "job": model.job,
        "description": model.description,
        "licence": model.licence,
        "licence_note": model.licence_note,
        "sets": list(model.sets),
        "size": receipt.size if receipt else (known[0] if known else None),
        "state": store.state(model.name),
        "source": receipt.source if receipt else None,
        "hash": hash_state(model, receipt),
        "sources": [
            {
                "origins": list(source.origins),
                "note": source.note,
                "hash": source_hash_state(source),
                "download_size": source.download_size,
                "files": [file.model_dump(include={"name", "size", "sha256"}) for file in source.files],
            }
            for source in model.sources
        ],
    }


def megabytes(size: int | None) -> str:
    """A size for people; one that nobody has measured is a dash."""
    return "-" if size is None else f"{size / 1e6:.1f} MB"


@click.group()
def models() -> None:
    """The models: what there is, get it, check it, find it."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, with every source and hash.")
@_plainly
def list_command(as_json: bool) -> None:
    """Show every model, its licence, and whether it is here."""
    store = Store(models_dir())
    rows = [describe(model, store) for model in os1_models.load_manifest().models]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    heads = ("name", "job", "licence", "size", "state", "source", "hash")
    shown = [{**row, "size": megabytes(row["size"])} for row in rows]
    cells = [heads, *(tuple(str(row[head] or "-") for head in heads) for row in shown)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@models.command("pull")
@click.argument("names", nargs=-1)
@click.option("--set", "set_name", type=click.Choice(SETS), help="A whole set instead of names [edge].")
@click.option("--force", is_flag=True, help="Fetch again what is already here.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipts as JSON.")
@_plainly
def pull_command(names: tuple[str, ...], set_name: str | None, force: bool, as_json: bool) -> None:
    """Get models, NAMES or a set: fetch, check, convert, install."""
    from os1_models.console import progress_sink

    if names and set_name:
        raise click.UsageError("give names or --set, not both")
    wanted = names or os1_models.load_manifest().in_set(set_name or "edge")
    with progress_sink() as sink:
        receipts = os1_models.pull(wanted, progress=sink, force=force)
    if as_json:
        click.echo(json.dumps([receipt.document() for receipt in receipts], indent=2))
        return
    for receipt in receipts:
        click.echo(f"{receipt.model}  {megabytes(receipt.size)}  {receipt.hash_state}  {receipt.source}")


@models.command("verify")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print what was verified and every problem as JSON.")
@_plainly
def verify_command(names: tuple[str, ...], as_json: bool) -> None:
    """Hash models again, NAMES or all that are here, against receipts and manifest."""
    from os1_models.console import progress_sink

    store = Store(models_dir())
    here = [model.name for model in os1_models.load_manifest().models if store.state(model.name) != "missing"]
    wanted = list(names) or here
    with progress_sink() as sink:
        problems = os1_models.verify(wanted, progress=sink)
    if as_json:
        found = [{"model": problem.model, "file": problem.file, "what": problem.what} for problem in problems]
        click.echo(json.dumps({"verified": wanted, "problems": found}, indent=2))
    elif not problems:
        click.echo(f"{len(wanted)} models verified, all well")
    if problems:
        for problem in problems:
            click.echo(f"os1: {problem}", err=True)
        sys.exit(FAILED)


@models.command("path")
@click.argument("name")
@click.argument("file", required=False)
@_plainly
def path_command(name: str, file: str | None) -> None:
    """Print where the main file of NAME, or FILE of it, lies."""
    click.echo(os1_models.path(name, file))
