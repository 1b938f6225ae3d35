"""``os1 chat``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from os1_edge.tomlfile import BadFile

if TYPE_CHECKING:
    from os1_edge.app import TurnTrace
    from os1_edge.chat.lines import Line
    from os1_edge.chat.talk import Chat
    from os1_edge.config import Config
    from os1_edge.faculties import Faculties

PATH = click.Path(path_type=Path)
ABLATIONS = ("none", "without profile", "without profile and history", "without context")

QUIT, SCENE = "/quit", "/scene"

YEARS = range(1970, 2100)
"""Of ``--now``: beyond them, weeks cannot be counted back and forth any more."""


@click.command()
@click.option("--script", type=PATH, help="Say the lines of this file, then end; # begins a comment.")
@click.option("--scene", type=PATH, help="A picture that the companion has before its eyes.")
@click.option("--trace", is_flag=True, help="Print plan, queries, report, memories, prompt sizes, timings.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line an exchange.")
@click.option("--memory", type=PATH, help="Memory file to talk on; default: an empty one, gone afterwards.")
@click.option("--persona", help="companion, listener, lively, plain, or a file of one's own.")
@click.option("--ablation", type=click.Choice(ABLATIONS), help="What replies may not rest on.")
@click.option("--now", help="Talk as if it were this local time (2026-03-02T08:30); default: now.")
@click.option(
    "--config", "config_file", type=PATH, help="Settings (TOML); default: the wearer's own, if any."
)
def chat(
    script: Path | None,
    scene: Path | None,
    trace: bool,
    as_json: bool,
    memory: Path | None,
    persona: str | None,
    ablation: str | None,
    now: str | None,
    config_file: Path | None,
) -> None:
    """Talk with the companion at this terminal: the same loop, with typed words for speech.

    Each line is a turn; commands work as when spoken ("repeat that", "forget that", "mute"). /scene IMAGE
    shows it a picture, /quit, Ctrl-D or Ctrl-C ends the chat. Lines may be piped in.
    """
    from os1_edge.config import load_config

    config = _settings(load_config(config_file), persona, ablation)
    start = _start(now)
    with ExitStack() as stack:
        typed = _typed(script, stack)
        show = Show(trace, as_json, typed == 0 and os.isatty(0) and not as_json)
        with suppress(KeyboardInterrupt):
            file, key = _memory(memory, stack)
            faculties = _load(config, file, key)
            stack.callback(faculties.close)
            _run(config, faculties, typed, scene, start, show)
        if show.asks:
            click.echo()
    show.end()


def _settings(config: Config, persona: str | None, ablation: str | None) -> Config:
    """The settings with what the options change.

    Raises:
        BadFile: there is no such persona.
    """
    from os1_edge.converse.persona import load

    changes = {name: value for name, value in (("persona", persona), ("ablation", ablation)) if value}
    config = config.model_copy(update={"converse": config.converse.model_copy(update=changes)})
    load(config.converse.persona)  # before the models, which take seconds
    return config


def _start(now: str | None) -> datetime | None:
    try:
        start = datetime.fromisoformat(now) if now else None
    except ValueError:
        start = datetime.min
    if start is not None and (start.year not in YEARS or start.tzinfo is not None):
        wanted = f"give a local time such as 2026-03-02T08:30, from {YEARS[0]} to {YEARS[-1]}, without a zone"
        raise click.BadParameter(wanted, param_hint="--now")
    return start


def _typed(script: Path | None, stack: ExitStack) -> int:
    """The descriptor that lines are read from.

    Raises:
        BadFile: standard input is closed.
        OSError: the script cannot be read.
    """
    if script is not None:
        return stack.enter_context(script.open("rb", buffering=0)).fileno()
    if sys.stdin is None:  # whatever is opened next would take its number
        raise BadFile(Path("standard input"), "it is closed; type or pipe lines in, or give --script FILE")
    return 0


def _memory(memory: Path | None, stack: ExitStack) -> tuple[Path, bytes]:
    from os1_edge.remember.rekey import find_key

    if memory is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="os1-chat-"))
        return Path(folder) / "memory.db", os.urandom(32)
    return memory, find_key(memory)


def _load(config: Config, file: Path, key: bytes) -> Faculties:
    from os1_edge.chat.faculties import load
    from os1_edge.faculties import server

    return load(config, file, key, server(config))


@dataclass(slots=True)
class Show:
    """Prints exchanges."""

    trace: bool
    as_json: bool
    asks: bool
    """Somebody sits at the terminal."""
    left_out: int = 0
    """Lines of which something was not taken."""
    failed: int = 0
    """Exchanges that were not answered, or not kept."""

    def prompt(self) -> None:
        """It is the wearer's turn."""
        if self.asks:
            click.echo("you   ", nl=False)

    def line(self, line: str) -> None:
        """A line that nobody typed here."""
        if not self.asks and not self.as_json:
            from os1_edge.chat.show import plain

            click.echo(f"you   {plain(line)}")

    def note(self, text: str) -> None:
        """Something beside the talk."""
        from os1_edge.chat.show import plain

        click.echo(f"      ({plain(text)})", err=self.as_json)

    def leave_out(self, number: int, why: str) -> None:
        """Something of a line was not taken; the first is told of, the others are counted."""
        self.left_out += 1
        if self.asks or self.left_out == 1:
            self.note(f"line {number} {why}")

    def end(self) -> None:
        """Nothing more is said; what went wrong with a script decides the exit code."""
        if self.asks or not (self.failed or self.left_out):
            return
        told = (
            f"{self.failed} not answered or not kept" if self.failed else "",
            f"{self.left_out} not taken whole" if self.left_out else "",
        )
        click.echo(f"os1: of the lines, {' and '.join(filter(None, told))}", err=True)
        sys.exit(1)

    def turn(self, chat: Chat, trace: TurnTrace) -> None:
        """An exchange, or what was said unasked."""
        from os1_edge.chat.show import record, reply_line, trace_lines

        calls = list(chat.calls)
        chat.calls.clear()
        self.failed += trace.failed is not None
        if self.as_json:
            click.echo(json.dumps(record(trace, calls if self.trace else None), ensure_ascii=False))
            return
        click.echo(reply_line(trace) if trace.heard or not self.asks else f"\n{reply_line(trace)}")
        for line in trace_lines(trace, calls) if self.trace else ():
            click.echo(line)


def _run(
    config: Config,
    faculties: Faculties,
    typed: int,
    scene: Path | None,
    start: datetime | None,
    show: Show,
) -> None:
    from os1_edge import clock
    from os1_edge.chat import lines
    from os1_edge.chat.talk import chat, picture

    async def talk() -> None:
        calendar = clock.Calendar(start) if start is not None else None
        async with chat(config, faculties, lambda trace: show.turn(talking, trace), calendar) as talking:
            if scene is not None:
                talking.show(*picture(str(scene)))
            await _each(talking, lines.of_input(typed), show)

    clock.run(talk(), virtual=False)


async def _each(talking: Chat, typed: AsyncIterator[Line], show: Show) -> None:
    show.prompt()
    number = 0
    async for line in typed:
        number += 1
        if line.problem:
            show.leave_out(number, line.problem)
        word, _, rest = line.text.partition(" ")
        if not line.text or line.text.startswith("#"):
            pass
        elif word == QUIT:
            return
        elif word.startswith("/") and word[1:].isalpha():
            if told := _commanded(talking, word, rest):
                show.note(told)
        elif talking.muted:
            show.note(_unmuted(talking, line.text))
        else:
            show.line(line.text)
            await talking.say(line.text)
        show.prompt()


def _commanded(talking: Chat, word: str, rest: str) -> str:
    """Does what the line ``word`` ``rest`` asks of the chat itself; what is to be said of it."""
    from os1_edge.chat.talk import picture
    from os1_edge.see.image import UnreadableImage

    if word != SCENE:
        return f"there is no {word}; there are {SCENE} IMAGE and {QUIT}"
    if not rest:
        return f"name a picture: {SCENE} desk.jpg"
    try:
        talking.show(*picture(rest))
    except (UnreadableImage, OSError) as e:
        return str(e)
    return ""


def _unmuted(talking: Chat, line: str) -> str:
    from os1_edge.chat.talk import UNMUTE

    if line.lower().strip(".! ") != UNMUTE:
        return f"it is muted and hears nothing; type {UNMUTE}"
    talking.unmute()
    return "it listens again"
