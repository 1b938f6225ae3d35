"""`os1 bench fleet`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date
from pathlib import Path

import click

from os1_edge.bench.fleet import Habits, Load, drive, knee, next_step, of_the_morning
from os1_edge.bench.fleet_ray import front_door
from os1_edge.bench.machine import state
from os1_edge.bench.result import Result, load_result
from os1_edge.bench.scale import Assumed, Measured, bottlenecks, filled, table
from os1_edge.bench.stages.loop import runner
from os1_edge.bench.stages.offload import TOKEN, server
from os1_edge.bench.suite import Stop
from os1_edge.replay.measure import machine
from os1_edge.tomlfile import BadFile

TOKENS = 1000
"""Wearers that the scripted server tells apart: they are given to it on its command line."""
PACE = (0.05, 0.01)
"""Of the scripted engine: seconds to the first word, and between words."""
TRIES = 2
"""Of a load in which the client was late itself: something else may have been at work for a moment."""
MODELS = ("qwen2.5-1.5b", "qwen2.5-0.5b")
"""Whose pace the machines are counted by: the server's own, else the device's."""
Pace = tuple[Result, str, dict[str, float]]
"""The result that it is from, the model, and its tokens a second by figure."""


@click.command("fleet")
@click.option(
    "--wearers", type=click.IntRange(1, 100_000), default=12_800, show_default=True, help="At most."
)
@click.option("--seconds", type=click.FloatRange(1, 3600), default=20.0, show_default=True, help="A load.")
@click.option("--server", "address", help="host:port in plain text; without it one with a scripted engine.")
@click.option("--token", default=TOKEN, help="The wearers' token, with --server.")
@click.option(
    "--slots", type=click.IntRange(1), default=256, show_default=True, help="Of the scripted engine."
)
@click.option("--ray", is_flag=True, help="A front door before a Ray cluster of this machine, instead.")
@click.option(
    "--scale", type=click.Path(path_type=Path), help="Fill this docs/scale.md: both servers are driven."
)
@click.option("--bench", type=click.Path(path_type=Path), help="With --scale: a bench.json of the machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def fleet(
    wearers: int, seconds: float, address: str | None, token: str, slots: int, ray: bool,
    scale: Path | None, bench: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Drive a server with wearers who talk, ever more of them up to --wearers, until it no longer keeps up.

    Prints what was served, how soon the first word came, and the knee: the most wearers that it kept up with,
    found to 15 %. Ctrl-C ends it after the load that is being tried; a second one at once.
    """
    if (scale is None) != (bench is None):
        raise click.UsageError("--scale and --bench go together")
    if address is not None and (ray or scale is not None):
        raise click.UsageError("--server is another's; --ray and --scale start their own")
    given = None if scale is None or bench is None else (scale, pace_of(bench))
    habits, before = of_the_morning(), state().load
    told: dict[str, list[Load]] = {}
    if address is not None:
        told["the server"] = _climbed(address, habits, wearers, seconds, [token])
    else:
        if given is not None or not ray:
            tokens = [f"{TOKEN}-{number}" for number in range(min(wearers, TOKENS))]
            with server(*PACE, slots, tokens) as own:
                told["one process"] = _climbed(own.address, habits, wearers, seconds, tokens, own.pid)
        if given is not None or ray:
            with front_door(*PACE, slots) as door:
                told["before Ray"] = _climbed(door.address, habits, wearers, seconds, [TOKEN], door.pid)
    for loads in told.values():
        click.echo(_as_json(loads) if as_json else "\n".join(_told(loads, before)))
    if given is not None:
        fill(*given, habits, told["one process"], told["before Ray"], before)


def _climbed(
    address: str, habits: Habits, most: int, seconds: float, tokens: list[str], pid: int | None = None
) -> list[Load]:
    loads: list[Load] = []
    stop = Stop()
    # A second Ctrl-C ends the load that is being tried; those before it are told all the same.
    with (
        suppress(KeyboardInterrupt),
        stop.listening(lambda: click.echo("stopping after this load; once more: now", err=True)),
    ):
        while not stop() and (count := next_step(loads, most)) is not None:
            for _ in range(TRIES):
                click.echo(f"{count} wearers, {seconds:.0f} s", err=True)
                load = runner().run(drive(address, habits, count, seconds, tokens, pid))
                if load.kept_up or not load.by_client or stop():
                    break
            loads.append(load)
    return loads


def _as_json(loads: Sequence[Load]) -> str:
    best = knee(loads)
    rows = [_row(load) for load in sorted(loads, key=lambda load: load.wearers)]
    return json.dumps({"loads": rows, "knee": best and best.wearers})


def _row(load: Load) -> dict[str, object]:
    return {
        "wearers": load.wearers,
        "asked_a_second": round(load.asked / load.seconds, 1),
        "answered_a_second": round(load.codes["OK"] / load.seconds, 1),
        "first_s": {f"p{q}": round(load.first(q), 3) for q in (50, 95, 99)},
        "failed": round(load.failed, 4),
        "codes": dict(sorted(load.codes.items())),
        "kept_up": load.kept_up,
        "client_late": load.by_client,
        "server_cores": _cores(load.server_cpu_s, load),
        "client_cores": _cores(load.client_cpu_s, load),
        "machine_cores": _cores(load.machine_cpu_s, load),
        "kb_a_question": round(load.kb / load.asked, 2) if load.asked else None,
    }


def _cores(cpu_s: float | None, load: Load) -> float | None:
    return None if cpu_s is None else round(cpu_s / load.seconds, 2)


def _told(loads: Sequence[Load], load_before: float) -> list[str]:
    """The loads as a table, and the knee."""
    head = f"{'wearers':>8}{'asked/s':>10}{'p50 s':>9}{'p95 s':>9}{'p99 s':>9}{'failed':>9}{'server':>9}"
    lines = [f"{head}{'client':>9}{'all':>9}  cores busy"]
    for load in sorted(loads, key=lambda load: load.wearers):
        first = "".join(f"{load.first(q):9.3f}" for q in (50, 95, 99))
        busy = "".join(
            f"{'-' if cores is None else f'{cores:.2f}':>9}"
            for cores in (
                _cores(some, load) for some in (load.server_cpu_s, load.client_cpu_s, load.machine_cpu_s)
            )
        )
        note = "   the client was late itself" if load.by_client else ""
        lines.append(
            f"{load.wearers:8}{load.asked / load.seconds:10.1f}{first}{load.failed:9.1%}{busy}{note}"
        )
    where = f"client and server on {machine()['cores']} cores, load {load_before:.1f} before"
    return [*lines, f"{knee_in_words(loads)} ({where})"]


def knee_in_words(loads: Sequence[Load]) -> str:
    """What was found, and what it is no proof of."""
    best = knee(loads)
    if not loads:
        return "no load was tried to its end"
    if best is None:
        return "kept up with none of these"
    rate = best.asked / best.seconds
    told = f"kept up with {best.wearers:,} wearers who talk all the time, {rate:.0f} questions a second"
    over = min((load for load in loads if not load.kept_up), key=lambda load: load.wearers, default=None)
    if over is None:
        return f"{told}; more were not tried"
    blamed = ", where the client was late itself: the server may carry more" if over.by_client else ""
    return f"{told}, not with {over.wearers:,}{blamed}"


def pace_of(bench: Path) -> Pace:
    """The model that the machines are counted by, and its tokens a second.

    Raises:
        BadFile: the file has none.
    """
    result = load_result(bench)
    for name in MODELS:
        rows = [s for s in result.series if s.of.get("model") == name and "threads" not in s.of]
        found = {str(s.of.get("figure")): s.median for s in rows}
        if {"prefill", "generation"} <= found.keys():
            return result, name, found
    raise BadFile(bench, "has no language model in it; run os1 bench --only converse")


def fill(
    scale: Path,
    pace: Pace,
    habits: Habits,
    alone: Sequence[Load],
    fronted: Sequence[Load],
    load_before: float,
) -> None:
    """Writes what was measured into the places of ``scale``: with a server that has an engine of its own
    (``alone``), and with a front door before Ray (``fronted``).

    Raises:
        BadFile: the page has no such places, or no load was kept up with.
    """
    result, model, found = pace
    best, door = knee(alone), knee(fronted)
    if best is None or not best.asked or door is None or not door.asked:
        raise BadFile(
            scale, "is left as it is: the server kept up with no load, so that nothing was measured"
        )
    measured = Measured(
        turns_a_second=round(habits.turns_a_second, 4),
        served_a_second=round(best.asked / best.seconds, 1),
        front_a_second=round(door.asked / door.seconds, 1),
        kb_a_question=round(door.kb / door.asked, 2),
        prefill=round(found["prefill"], 1),
        generation=round(found["generation"], 1),
    )
    assumed = Assumed()
    inputs = [f"Measured {date.today()} on {machine()['cpu']}, {machine()['cores']} cores, with {model}:", ""]
    inputs += [f"- `{f.name}` {getattr(measured, f.name):g}" for f in fields(Measured)]
    inputs += ["", "Assumed:", "", *(f"- `{f.name}` {getattr(assumed, f.name):g}" for f in fields(Assumed))]
    inputs += ["", *(f"With care: {warning}." for warning in result.warnings)]
    page = scale.read_text("utf-8")
    try:
        page = filled(page, "inputs", "\n".join(inputs))
        for name, loads in (("knee", alone), ("front", fronted)):
            *rows, found_out = _told(loads, load_before)
            page = filled(page, name, "\n".join(["```", *rows, "```", "", f"It {found_out}."]))
        page = filled(page, "machines", table(measured, assumed))
        page = filled(page, "bottlenecks", bottlenecks(measured, assumed))
    except ValueError as e:
        raise BadFile(scale, str(e)) from None
    scale.write_text(page, "utf-8")
    click.echo(f"filled: {scale}")
