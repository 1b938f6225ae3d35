"""The command line: a thin skin over the library. Each role's package adds its commands as entry points."""

from __future__ import annotations

import errno
import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from os1_edge import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from os1_edge.replay.report import Report

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

PATH = click.Path(path_type=Path)


class _Commands(click.Group):
    """Commands of this package and of the installed roles; a failure is one clear line and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *(e.name for e in _entry_points())})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        own = super().get_command(ctx, name)
        if own is not None or not (found := [e for e in _entry_points() if e.name == name]):
            return own
        try:
            command = found[0].load()
        except ModuleNotFoundError as e:
            _fail(f"os1 {name} needs {e.name}, which is not installed; run: pip install 'os1[edge,cloud]'")
        return command if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as e:
            if e.name and e.name.startswith("os1_"):
                raise
            _fail(f"{e.name} is not installed; run: pip install 'os1[edge]'")
        except OSError as e:
            if e.errno == errno.EPIPE:
                raise
            _fail(f"{e.filename}: {e.strerror}" if e.filename else e.strerror or str(e))
        except MemoryError:
            _fail("there is not enough memory; end other programs, or choose a smaller model")
        except Exception as e:
            if not _is_ours(e):
                raise
            _fail(str(e))


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # brings half of the email package

    return entry_points(group="os1.commands")


def _is_ours(error: Exception) -> bool:
    """Whether the error was written for people: one of this project's own exception classes."""
    return type(error).__module__.startswith(("os1_edge.", "os1_models.", "os1_cloud."))


def _plain(text: str) -> str:
    """``text`` without control characters: what was said or stands in a file must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _fail(message: str) -> NoReturn:
    click.echo(f"os1: {_plain(message)}", err=True)
    sys.exit(1)


def _each(files: tuple[Path, ...], work: Callable[[Path], None]) -> None:
    """Does ``work`` for every file; a bad one is told of and the others are still done."""
    from os1_edge.device.sound import BadSound

    bad = 0
    for path in files:
        try:
            work(path)
        except BadSound as e:
            bad += 1
            click.echo(f"os1: {_plain(str(e))}", err=True)
    if bad:
        sys.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="os1")
@click.option("-v", "--verbose", count=True, help="Say more on standard error; twice for everything.")
def main(verbose: int) -> None:
    """OS-1, a companion that lives in smart glasses: it hears, sees, remembers on the device, and talks.

    Start with `os1 doctor`, then `os1 models pull`, then `os1 demo`.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # Only our own loggers say more: a library's may print what is being said (Piper's does).
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    for name in ("os1_edge", "os1_cloud", "os1_models"):
        logging.getLogger(name).setLevel(level)


def _speed(command: Any) -> Any:
    return click.option(
        "--realtime/--fast",
        default=False,
        help="On the wall clock, which measures voice-to-voice latency; or as fast as the machine can, "
        "with the same answers (default).",
    )(command)


def _config(command: Any) -> Any:
    return click.option(
        "--config", "config_file", type=PATH, help="Settings (TOML); default: the wearer's own, if any."
    )(command)


def _json(command: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")(command)


@main.command()
@click.argument("session", type=PATH)
@click.option("--out", type=PATH, required=True, help="Folder for the report, the replies and the memory.")
@_speed
@_config
@_json
def replay(session: Path, out: Path, realtime: bool, config_file: Path | None, as_json: bool) -> None:
    """Replay the recorded SESSION folder through the real pipeline.

    Writes report.html, report.json and replies/*.wav to --out. docs/sessions.md tells how to record one.
    """
    _replay(session, out, realtime, config_file, as_json)


@main.command()
@click.option("--out", type=PATH, default=Path("demo-out"), show_default=True, help="Folder for the output.")
@_speed
@_config
@_json
def demo(out: Path, realtime: bool, config_file: Path | None, as_json: bool) -> None:
    """Replay the bundled morning of a wearer: four places, thirteen turns, and what OS-1 makes of them."""
    from importlib.resources import as_file, files

    with as_file(files("os1_edge") / "demo" / "morning") as folder:
        _replay(folder, out, realtime, config_file, as_json)


def _replay(session: Path, out: Path, realtime: bool, config_file: Path | None, as_json: bool) -> None:
    from os1_edge.config import load_config
    from os1_edge.remember.key import wearers_key
    from os1_edge.replay.run import replay as run

    key = wearers_key()
    made = run(
        session,
        out,
        load_config(config_file),
        key,
        realtime=realtime,
        tell=lambda line: click.echo(_plain(line), err=as_json),
    )
    if as_json:
        click.echo((out / "report.json").read_text("utf-8"), nl=False)
    else:
        _print_latency(made)
        click.echo(f"report: {out / 'report.html'}")
    failed = [turn.turn_id for turn in made.turns if turn.failed]
    if failed:
        named = ", ".join(failed[:5])
        _fail(f"{len(failed)} of {len(made.turns)} turns failed ({named}); the report says why")


def _print_latency(made: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    from os1_edge.replay.measure import percentile
    from os1_edge.replay.report import Latency

    table = Table(title="seconds", box=None, title_justify="left")
    for heading in ("stage", "p50", "p95", "max"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    for stage in Latency.model_fields:
        found = [s for t in made.turns if (s := getattr(t.latency, stage)) is not None]
        if found:
            cells = (percentile(found, 50), percentile(found, 95), max(found))
            table.add_row(stage.removesuffix("_s").replace("_", " "), *(f"{c:.2f}" for c in cells))
    Console().print(table)
    wer = made.word_error_rate
    heard = "" if wer is None else f"; word error rate {100 * wer:.1f} %"
    spent = made.resources
    click.echo(f"{len(made.turns)} turns{heard}; {spent.rss_max_mb:.0f} MB; {spent.wall_s:.1f} s")


@main.command()
@click.argument("files", type=PATH, nargs=-1, required=True)
@_json
def vad(files: tuple[Path, ...], as_json: bool) -> None:
    """Say where in sound FILES somebody speaks."""
    import os1_models
    from os1_edge.device.sound import blocks
    from os1_edge.hear.files import speech_spans
    from os1_edge.hear.vad import SileroVad

    detector = SileroVad(os1_models.path("silero-vad"))

    def work(path: Path) -> None:
        seconds, spans = speech_spans(blocks(path), detector)
        if as_json:
            click.echo(json.dumps({"file": str(path), "seconds": seconds, "speech": spans}))
        else:
            click.echo(f"{path}: " + (", ".join(f"{a:.2f}-{b:.2f} s" for a, b in spans) or "no speech"))

    _each(files, work)


@main.command()
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option("--engine", type=click.Choice(["whisper", "sherpa"]), default="whisper", show_default=True)
@click.option(
    "--model", default=None, help="Default: whisper-tiny.en, or moonshine-base with --engine sherpa."
)
@click.option("--language", default="en", show_default=True)
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True)
@_json
def transcribe(
    files: tuple[Path, ...], engine: str, model: str | None, language: str, threads: int, as_json: bool
) -> None:
    """Write down what is said in sound FILES."""
    from dataclasses import asdict
    from time import perf_counter

    import os1_models
    from os1_edge.device.sound import blocks
    from os1_edge.hear.files import transcript
    from os1_edge.hear.recogniser import make_recogniser
    from os1_edge.hear.vad import SileroVad

    model = model or {"whisper": "whisper-tiny.en", "sherpa": "moonshine-base"}[engine]
    recogniser = make_recogniser(engine, os1_models.path(model), language, threads)
    detector = SileroVad(os1_models.path("silero-vad"))

    def work(path: Path) -> None:
        began = perf_counter()
        seconds, segments = transcript(blocks(path), recogniser, detector, lambda s: _far_in(path, s))
        rtf = (perf_counter() - began) / max(seconds, 1e-3)
        text = " ".join(s.text for s in segments)
        if as_json:
            row = {
                "file": str(path),
                "seconds": round(seconds, 3),
                "text": text,
                "segments": [asdict(s) for s in segments],
                "rtf": round(rtf, 4),
            }
            click.echo(json.dumps(row, ensure_ascii=False))
        else:
            click.echo(f"{path}: {text}")

    _each(files, work)


def _far_in(path: Path, seconds: float) -> None:
    """Progress through a long recording, for a person at a terminal."""
    if sys.stderr.isatty():
        click.echo(f"{path}: {seconds / 60:.0f} min heard", err=True)


@main.command()
@click.argument("text")
@click.option("--out", type=PATH, required=True, help="WAV file to write.")
@click.option("--voice", default="piper-joe", show_default=True)
@click.option("--speed", type=click.FloatRange(0.5, 2), default=1.0, show_default=True)
def say(text: str, out: Path, voice: str, speed: float) -> None:
    """Speak TEXT into a WAV file; `-` takes the text from standard input."""
    from io import BytesIO

    import soundfile

    import os1_models
    from os1_edge.speak.tts import NotAVoice, Piper

    if not 0.5 <= speed <= 2:  # NaN passes click's range
        raise click.BadParameter("give a speed from 0.5 to 2", param_hint="--speed")
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")

    try:
        piper = Piper(os1_models.path(voice), speed)
    except NotAVoice as e:
        _fail(str(e))
    wav = BytesIO()
    with soundfile.SoundFile(wav, "w", piper.rate, 1, "PCM_16", format="WAV") as file:
        for samples in piper.stream(text):
            file.write(samples)
        spoken = file.tell()
    if not spoken:
        _fail("there is nothing to say in that text")
    out.write_bytes(wav.getvalue())


@main.command()
@click.option("--live", is_flag=True, help="Try microphone, speaker and cameras as well, for a few seconds.")
@_json
def doctor(live: bool, as_json: bool) -> None:
    """Check what this machine has and say how to get what is missing. Exit code 1 if something is."""
    from os1_edge.doctor import examine

    checks = examine()
    if live:
        import asyncio

        from os1_edge.config import load_config
        from os1_edge.live.checks import examine_live

        checks += asyncio.run(examine_live(load_config(), lambda line: click.echo(line, err=True)))
    if as_json:
        click.echo(json.dumps([{"name": c.name, "ok": c.ok, "found": c.found, "fix": c.fix} for c in checks]))
    else:
        for check in checks:
            mark = "ok     " if check.ok else "MISSING"
            click.echo(
                f"{mark}  {check.name}: {check.found}" + ("" if check.ok else f"\n         {check.fix}")
            )
    sys.exit(0 if all(c.ok for c in checks) else 1)
