"""``os1 config``: the settings file made, shown and checked."""

from __future__ import annotations

import ast
import inspect
import json
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
from pydantic import BaseModel

from os1_edge.config import Config, Profile, default_config_file, load_config

PATH = click.Path(path_type=Path)
PROFILES: tuple[Profile, ...] = ("laptop", "phone", "wear4100")


@click.group()
def config() -> None:
    """The settings: one TOML file, in which everything has a default."""


@config.command()
@click.option("--file", type=PATH, help="Where to write it; default: the wearer's own.")
@click.option("--profile", type=click.Choice(PROFILES), help="The kind of device.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def init(file: Path | None, profile: Profile | None, force: bool) -> None:
    """Write a settings file with every setting, its meaning and its default."""
    path = file or default_config_file()
    if path.exists() and not force:
        raise click.ClickException(f"{path} is there already; --force writes over it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(commented(profile), "utf-8")
    click.echo(str(path))


@config.command()
@click.option("--file", type=PATH, help="Default: the wearer's own.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def show(file: Path | None, as_json: bool) -> None:
    """Print the settings that hold: the file's, its profile's, and the defaults."""
    found = load_config(file)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    click.echo("\n".join(_lines(found, type(found), comments=False)).strip())


@config.command()
@click.option("--file", type=PATH, help="Default: the wearer's own.")
def check(file: Path | None) -> None:
    """Say whether the settings file is right; exit code 1 and the line where it is not."""
    path = file or default_config_file()
    load_config(file)
    click.echo(f"{path} is right" if path.exists() else f"there is no {path}: the defaults hold")


def commented(profile: Profile | None = None) -> str:
    """A settings file in which every setting stands as a comment, with what it means."""
    head = ["# Settings of OS-1. Take the # from in front of a setting to change it; else its default holds."]
    defaults = Config(profile=profile)
    return "\n".join([*head, *_lines(defaults, Config, comments=True)]).strip() + "\n"


def _lines(values: BaseModel, model: type[BaseModel], *, comments: bool, table: str = "") -> list[str]:
    plain: list[str] = []
    tables: list[str] = []
    said = meanings(model) if comments else {}
    for name in model.model_fields:
        value = getattr(values, name)
        if isinstance(value, BaseModel):
            inner = f"{table}.{name}" if table else name
            doc = (type(value).__doc__ or "").strip().splitlines()[0]
            tables += ["", *([f"# {doc}"] if comments else []), f"[{inner}]"]
            tables += _lines(value, type(value), comments=comments, table=inner)
            continue
        plain += _setting(name, said.get(name, ""), value, comments=comments)
    return plain + tables


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What each setting of a section means: the string below it in the source. Read here and not by pydantic,
    which would read it at each start of every command."""
    (section,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(section, ast.ClassDef)
    found = {}
    for setting, below in pairwise(section.body):
        match setting, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def _setting(name: str, meaning: str, value: Any, *, comments: bool) -> list[str]:
    said = [f"# {line}" for line in meaning.splitlines()]
    if value is None:
        return [*said, f"#{name} ="] if comments else []
    # JSON's strings, numbers, booleans and lists are TOML's.
    written = json.dumps(value if not isinstance(value, Path) else str(value), ensure_ascii=False)
    changed = not comments or name == "profile"
    return [*said, f"{'' if changed else '#'}{name} = {written}"]
