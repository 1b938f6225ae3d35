"""`os1 bench fleet`."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import date
from pathlib import Path

import click

from os1_edge.bench.fleet import Habits, Load, drive, knee, of_the_morning, steps
from os1_edge.bench.machine import state
from os1_edge.bench.result import load_result
from os1_edge.bench.scale import Assumed, Measured, filled, table
from os1_edge.bench.stages.loop import runner
from os1_edge.bench.stages.offload import TOKEN, server
from os1_edge.replay.measure import machine
from os1_edge.tomlfile import BadFile

TOKENS = 1000
"""Wearers that the scripted server tells apart; its quota is a wearer's."""


@click.command("fleet")
@click.option("--wearers", type=click.IntRange(1, 100_000), default=400, show_default=True)
@click.option("--seconds", type=click.FloatRange(1, 3600), default=20.0, show_default=True, help="A step.")
@click.option("--server", "address", help="host:port in plain text; without it one with a scripted engine.")
@click.option("--token", default=TOKEN, help="The wearers' token, with --server.")
@click.option(
    "--slots", type=click.IntRange(1), default=256, show_default=True, help="Of the scripted engine."
)
@click.option("--scale", type=click.Path(path_type=Path), help="Fill the tables of this docs/scale.md.")
@click.option("--bench", type=click.Path(path_type=Path), help="With --scale: a bench.json of the machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def fleet(
    wearers: int, seconds: float, address: str | None, token: str, slots: int, scale: Path | None,
    bench: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Drive a server with so many wearers who talk, in four steps up to --wearers.

    Prints what was served, how soon the first word came, and the knee: the most wearers that it kept up with.
    """
    if (scale is None) != (bench is None):
        raise click.UsageError("--scale and --bench go together")
    habits = of_the_morning()
    loads: list[Load] = []
    if address is not None:
        loads = _stepped(address, habits, wearers, seconds, [token])
    else:
        tokens = [f"{TOKEN}-{number}" for number in range(min(wearers, TOKENS))]
        with server(0.05, 0.01, slots, tokens) as (own, _echo):
            loads = _stepped(own, habits, wearers, seconds, tokens)
    best = knee(loads)
    if as_json:
        click.echo(json.dumps({"loads": [_row(load) for load in loads], "knee": best and best.wearers}))
    else:
        _told(loads, best)
    if scale is not None and bench is not None:
        _fill(scale, bench, habits, best)


def _stepped(address: str, habits: Habits, wearers: int, seconds: float, tokens: list[str]) -> list[Load]:
    loads = []
    for count in steps(wearers):
        click.echo(f"{count} wearers, {seconds:.0f} s", err=True)
        loads.append(runner().run(drive(address, habits, count, seconds, tokens)))
    return loads


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
    }


def _told(loads: list[Load], best: Load | None) -> None:
    click.echo(f"{'wearers':>8}{'asked/s':>10}{'p50 s':>9}{'p95 s':>9}{'p99 s':>9}{'failed':>9}")
    for load in loads:
        first = "".join(f"{load.first(q):9.3f}" for q in (50, 95, 99))
        note = "   the client was late itself" if load.by_client else ""
        click.echo(f"{load.wearers:8}{load.asked / load.seconds:10.1f}{first}{load.failed:9.1%}{note}")
    told = f"kept up with {best.wearers} wearers" if best else "kept up with none of these"
    more = "; more were not tried" if best is loads[-1] else ""
    click.echo(f"{told}{more} (load {state().load:.1f} on {machine()['cores']} cores, client and server)")


def _fill(scale: Path, bench: Path, habits: Habits, best: Load | None) -> None:
    if best is None:
        raise BadFile(
            scale, "is left as it is: the server kept up with no load, so that nothing was measured"
        )
    result = load_result(bench)
    model = {s.of.get("figure"): s.median for s in result.series if s.of.get("model") == "qwen2.5-0.5b"}
    if not {"prefill", "generation"} <= model.keys():
        raise BadFile(bench, "has no language model in it; run os1 bench --only converse")
    measured = Measured(
        round(habits.turns_a_second, 4),
        round(best.asked / best.seconds, 1),
        model["prefill"],
        model["generation"],
    )
    assumed = Assumed()
    inputs = [f"Measured {date.today()} on {machine()['cpu']}, {machine()['cores']} cores:", ""]
    inputs += [f"- `{f.name}` {getattr(measured, f.name):g}" for f in fields(Measured)]
    inputs += ["", "Assumed:", "", *(f"- `{f.name}` {getattr(assumed, f.name):g}" for f in fields(Assumed))]
    inputs += ["", *(f"With care: {warning}." for warning in result.warnings)]
    page = scale.read_text("utf-8")
    try:
        page = filled(page, "inputs", "\n".join(inputs))
        page = filled(page, "machines", table(measured, assumed))
    except ValueError as e:
        raise BadFile(scale, str(e)) from None
    scale.write_text(page, "utf-8")
    click.echo(f"filled: {scale}")
