"""`os1 bench system`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import click

from os1_edge import __version__
from os1_edge.bench import machine
from os1_edge.bench.result import LinkRun, Ratio, Result, Skipped
from os1_edge.bench.stage import Unavailable
from os1_edge.bench.suite import Stop
from os1_edge.config import Config, load_config

MODEL = "qwen2.5-1.5b"
NAMES = ("offline", "wifi", "lte", "3g", "train", "elevator")


class Given(NamedTuple):
    """What each link is lived with."""

    folder: Path
    config: Config
    key: bytes
    model: str
    shape: str


LOADING_S = 15
"""About what a link takes beyond the session: models are loaded on both sides."""


@click.command("system")
@click.argument("session", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option("--link", "links", type=click.Choice(NAMES), multiple=True, help="Default: every one.")
@click.option("--model", default=MODEL, show_default=True, help="The server's.")
@click.option(
    "--shape",
    type=click.Choice(("auto", "packets", "proxy")),
    default="auto",
    show_default=True,
    help="What makes the way bad: lost packets (root on Linux), or a proxy.",
)
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Settings (TOML).")
@click.option("--plain", is_flag=True, help="The plain sequence of the same models too, as a ratio.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("bench-out"), show_default=True
)
def system(
    session: Path | None,
    links: tuple[str, ...],
    model: str,
    shape: str,
    config_file: Path | None,
    plain: bool,
    out: Path,
) -> None:
    """Live a session in real time over each kind of link: voice to voice, who answered, what it cost.

    Each link takes as long as SESSION, by default the bundled morning's three minutes. Writes system.json
    and system.html to --out. Ctrl-C ends it after the link that is being lived, a second one at once.
    """
    from os1_edge.bench.stages.clips import morning
    from os1_edge.remember.key import wearers_key

    folder = session or morning().folder
    config, key = load_config(config_file), wearers_key()
    before, began, stop = machine.state(), perf_counter(), Stop()
    runs: list[LinkRun] = []
    skipped: list[Skipped] = []
    peers: tuple[Ratio, ...] = ()
    # A second Ctrl-C ends the link that is being lived; those before it are kept all the same.
    with (
        suppress(KeyboardInterrupt),
        stop.listening(lambda: click.echo("stopping after this link; once more: now", err=True)),
    ):
        for name, told in _announced(links or NAMES, folder):
            if not stop():
                click.echo(told, err=True)
            _one(name, stop, runs, skipped, Given(folder, config, key, model, shape))
        peers = _plain(runs, folder, config, key) if plain and not stop() else ()
    found = machine.described(before, machine.state(), [])
    words = [f"--link {name}" for name in links] + [f"--model {model}"] * (model != MODEL)
    words += [f"--shape {shape}"] * (shape != "auto") + ["--plain"] * plain
    words += [f"--config {shlex.quote(str(config_file))}"] if config_file else []
    words = ["os1 bench system", *([shlex.quote(str(session))] if session else []), *words]
    result = Result(
        made=datetime.now().astimezone().replace(microsecond=0), os1_version=__version__,
        command=" ".join(words), mode="full", threads=config.converse.threads, rounds=1,
        seconds=round(perf_counter() - began, 1), interrupted=stop(), machine=found, series=(),
        skipped=tuple(skipped), links=tuple(runs), peers=peers, warnings=tuple(machine.warnings(found)),
    )  # fmt: skip
    _write(result, out)


def _announced(links: Sequence[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Each link, and a line on it with the time left."""
    from os1_edge.bench.system import LINKS
    from os1_edge.device.replay import session_seconds
    from os1_edge.device.session import load_session

    each_s, told = session_seconds(load_session(folder)) + LOADING_S, {link.name: link.told for link in LINKS}
    for number, name in enumerate(links):
        left = round((len(links) - number) * each_s / 60)
        yield name, f"{number + 1} of {len(links)}  {name} ({told[name]})  about {left} min left"


def _write(result: Result, out: Path) -> None:
    from os1_edge.bench.page import page
    from os1_edge.bench.table import show, shown

    out.mkdir(parents=True, exist_ok=True)
    result.write(out / "system.json")
    (out / "system.html").write_text(page(result), "utf-8")
    show(shown(result))
    click.echo(f"written: {out / 'system.json'}, {out / 'system.html'}")


def _plain(runs: list[LinkRun], folder: Path, config: Config, key: bytes) -> tuple[Ratio, ...]:
    """The plain sequence beside the first link that was lived. Turns are paired where both heard as many."""
    from os1_edge.bench.peers import ratio
    from os1_edge.bench.plain import plain_turns
    from os1_edge.bench.turn import plain_seconds
    from os1_edge.device.session import load_session

    if not runs or not runs[0].voice_to_voice_s:
        return ()
    click.echo("the plain sequence", err=True)
    session, ours = load_session(folder), runs[0].voice_to_voice_s
    theirs = plain_seconds(plain_turns(session, config, key), session)
    if len(theirs) != len(ours):  # then only the whole can be compared
        ours, theirs = (median(ours),), [median(theirs)]
    name = f"voice to voice, {runs[0].link}"
    return (ratio(name, "the plain sequence of the same models", "s", ours, theirs),)


def _one(
    name: str,
    stop: Stop,
    runs: list[LinkRun],
    skipped: list[Skipped],
    given: Given,
) -> None:
    import os1_models
    from os1_edge.bench.system import LINKS, lived, shaped_by

    link = next(link for link in LINKS if link.name == name)
    if stop():
        skipped.append(Skipped(name=name, why="interrupted before it"))
        return
    try:
        how = shaped_by(given.shape) if link.steps else "proxy"
        runs.append(lived(link, given.folder, given.config, given.key, given.model, how))
    except (Unavailable, os1_models.ModelMissing) as e:
        skipped.append(Skipped(name=name, why=str(e)))
    except Exception as e:
        # A link that breaks is told of; those that were lived before it are not lost for it.
        skipped.append(Skipped(name=name, why=f"failed: {type(e).__name__}: {e}"))
