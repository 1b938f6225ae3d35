"""``os1 run``."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from os1_edge.live.record import Watched

PATH = click.Path(path_type=Path)


@click.command()
@click.option(
    "--config", "config_file", type=PATH, help="Settings (TOML); default: the wearer's own, if any."
)
@click.option("--memory", type=PATH, help="Memory file; default: the wearer's own.")
@click.option("--captions", is_flag=True, help="Print what is heard and said.")
@click.option("--browser", is_flag=True, help="A browser is the glasses; the page's address is printed.")
@click.option("--port", type=click.IntRange(0, 65535), default=8471, show_default=True, help="Of the page.")
@click.option("--lan", is_flag=True, help="Serve the page to the network as well, over TLS, to a phone.")
@click.option("--furhat", metavar="HOST", help="A Furhat robot is the body; its Realtime API must run.")
def run(
    config_file: Path | None,
    memory: Path | None,
    captions: bool,
    browser: bool,
    port: int,
    lan: bool,
    furhat: str | None,
) -> None:
    """Live with the wearer on this machine's microphone, speaker and camera, until Ctrl-C.

    `os1 doctor` says which devices there are; `os1 config init` writes the settings to choose others.
    """
    if lan and not browser:
        raise click.UsageError("--lan goes with --browser")
    if furhat is not None and browser:
        raise click.UsageError("--furhat and --browser: it has one body")
    from os1_edge.config import load_config
    from os1_edge.faculties import Loading
    from os1_edge.live.ending import refuse_if_worn, run_until_told
    from os1_edge.remember.key import default_memory_file
    from os1_edge.remember.rekey import find_key

    config = load_config(config_file)
    file = memory or default_memory_file()
    refuse_if_worn(file)
    key = find_key(file, _ask if sys.stdin.isatty() else None)
    with Loading(config) as models:  # the imports below take as long
        from os1_edge.live.record import Watched

        watched = Watched(file.with_name("turns.jsonl"))
        if captions:
            _print_captions(watched)
        if browser:
            from os1_edge.web.run import run_in_browser

            glasses = run_in_browser(
                config, file, key, watched, click.echo, port=port, lan=lan, models=models
            )
            run_until_told(glasses)
        elif furhat is not None:
            from os1_edge.live.furhat import run_on_furhat

            run_until_told(run_on_furhat(config, file, key, furhat, watched, click.echo, models))
        else:
            from os1_edge.live.devices import own_devices
            from os1_edge.live.run import live

            run_until_told(live(config, file, key, own_devices(config), watched, click.echo, models))


def _ask(prompt: str) -> str:
    return getpass.getpass(prompt)


def _print_captions(watched: Watched) -> None:
    def show(event: dict[str, object]) -> None:
        match event["kind"]:
            case "turn":
                click.echo(f"you: {event['heard']}\nOS-1: {event['reply']}")
            case "state" if event["state"] == "muted":
                click.echo("(muted)")

    watched.watch(show)


@click.command()
@click.option("--config", "config_file", type=PATH, help="Settings (TOML); default: the wearer's own.")
@click.option("--memory", type=PATH, help="Memory file; default: the wearer's own.")
@click.option("--port", type=click.IntRange(0, 65535), default=8472, show_default=True)
def review(config_file: Path | None, memory: Path | None, port: int) -> None:
    """Review what is remembered in a browser: read, search, correct, forget, take along.

    While the companion runs with --browser, its own page has all of this.
    """
    from os1_edge.config import load_config
    from os1_edge.live.ending import run_until_told
    from os1_edge.remember.key import default_memory_file
    from os1_edge.remember.rekey import find_key
    from os1_edge.web.review import review as serve

    config = load_config(config_file)
    file = memory or default_memory_file()
    if not file.exists():
        raise click.ClickException(f"{file}: there is no memory yet; it begins with: os1 run")
    key = find_key(file, _ask if sys.stdin.isatty() else None)
    run_until_told(serve(config, file, key, click.echo, port=port))
