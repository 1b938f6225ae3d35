"""A result, or two beside each other, as tables for a person."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from os1_edge.bench.compare import Comparison, Verdict, own_noise
from os1_edge.bench.result import LinkRun, Machine, Ratio, Result, Series

COLOURS = {"better": "green", "worse": "red", "same": "dim", "too few": "yellow"}


def figure(value: float) -> str:
    """Three digits that count: 0.123, 12.3, 1,230."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def shown(result: Result) -> RenderableType:
    """The whole result."""
    parts: list[RenderableType] = [Text(machine_line(result.machine))]
    if result.series:
        parts.append(_series(result.series))
    if result.peers:
        parts.append(_peers(result.peers))
    if result.links:
        parts.append(_links(result.links))
    if result.skipped:
        parts.append(Text("Not measured:", style="bold"))
        parts += [Text(f"  {skipped.name}: {skipped.why}") for skipped in result.skipped]
    parts += [Text(f"With care: {warning}", style="yellow") for warning in result.warnings]
    return Group(*parts)


def machine_line(machine: Machine) -> str:
    """In a line."""
    told = [machine.cpu, f"{machine.cores} cores", f"{machine.memory_mb:,} MB", machine.system]
    told.append(f"load {machine.load_before:.1f} before")
    if machine.governor:
        told.append(f"governor {machine.governor}")
    if machine.hottest_c is not None:
        told.append(f"{machine.hottest_c:.0f} degrees")
    return ", ".join(told)


def _series(series: Iterable[Series]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in ("median", "p95", "spread", "n", "A/A"):
        table.add_column(name, justify="right")
    table.add_column("")
    for group, rows in groupby(series, key=lambda s: s.group):
        table.add_row(Text(group, style="bold"))
        for row in rows:
            noise = f"{own_noise(row):.0%}" if len(row.blocks) > 1 else "-"
            table.add_row(
                f"  {row.name}",
                figure(row.median),
                figure(row.p95),
                figure(row.iqr),
                str(row.n),
                noise,
                row.unit,
            )
    return table


def _peers(peers: Iterable[Ratio]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("beside")
    for name in ("ours", "theirs", "theirs / ours", "95 %"):
        table.add_column(name, justify="right")
    for row in peers:
        quality = ", ".join(f"{k} {v:g}" for k, v in row.quality.items())
        table.add_row(
            f"{row.name}: {row.peer}",
            f"{figure(row.ours)} {row.unit}",
            f"{figure(row.theirs)} {row.unit}",
            f"{row.ratio:.2f}",
            f"{row.low:.2f}-{row.high:.2f}  {quality}",
        )
    return table


def _links(links: Iterable[LinkRun]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("link")
    for name in ("voice to voice p50", "p95", "routes", "checks", "CPU s/min", "joules"):
        table.add_column(name, justify="right")
    for run in links:
        spoken = sorted(run.voice_to_voice_s)
        middle = f"{spoken[len(spoken) // 2]:.2f} s" if spoken else "-"
        tail = f"{spoken[min(len(spoken) - 1, int(0.95 * len(spoken)))]:.2f} s" if spoken else "-"
        routes = ", ".join(f"{route} {count}" for route, count in run.routes.items())
        joules = f"{run.joules:.0f} ({run.energy_by})" if run.joules is not None else "-"
        checks = f"{run.checks_passed} of {run.checks}"
        table.add_row(run.link, middle, tail, routes, checks, f"{run.cpu_s_a_minute:.1f}", joules)
    return table


def compared(comparison: Comparison) -> RenderableType:
    """Each series of both, what is real first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "A", "B", "B / A", "95 %", "", "why"):
        table.add_column(name, justify="right" if name in ("A", "B", "B / A") else "left")
    order = {"worse": 0, "better": 1, "too few": 2, "same": 3}
    for verdict in sorted(comparison.verdicts, key=lambda v: (order[v.kind], v.name)):
        table.add_row(*_row(verdict))
    parts: list[RenderableType] = [Text(f"With care: {c}", style="yellow") for c in comparison.cautions]
    parts.append(table)
    parts += [Text(f"only in A: {name}") for name in comparison.only_a]
    parts += [Text(f"only in B: {name}") for name in comparison.only_b]
    return Group(*parts)


def _row(v: Verdict) -> list[RenderableType]:
    return [
        v.name,
        f"{figure(v.a)} {v.unit}",
        f"{figure(v.b)} {v.unit}",
        f"{v.ratio:.2f}",
        f"{v.low:.2f}-{v.high:.2f}",
        Text(v.kind, style=COLOURS[v.kind]),
        v.why,
    ]


def show(what: RenderableType) -> None:
    """Prints it; as wide as it is where nobody looks at a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    console.print(what)


def markdown(result: Result, only: Iterable[str] = ()) -> str:
    """The results as a table for a page like the README: dated, with the command and the machine."""
    wanted = set(only)
    lines = [
        f"`{result.command}`, {result.made:%Y-%m-%d}, on {machine_line(result.machine)}, Python "
        f"{result.machine.python}; {result.rounds} rounds, {result.threads} threads, medians.",
        "",
        "| | median | spread | n |",
        "| --- | --- | --- | --- |",
    ]
    for row in result.series:
        if not wanted or row.name in wanted:
            unit = f" {row.unit}"
            lines.append(f"| {row.name} | {figure(row.median)}{unit} | {figure(row.iqr)}{unit} | {row.n} |")
    if result.peers:
        lines += ["", "| beside, in the same run | theirs / ours | 95 % |", "| --- | --- | --- |"]
        for peer in result.peers:
            span = f"{peer.low:.2f}–{peer.high:.2f}"
            lines.append(f"| {peer.name}: {peer.peer} | {peer.ratio:.2f} | {span} |")
    if result.warnings:
        lines += ["", "With care: " + "; ".join(result.warnings) + "."]
    return "\n".join(lines) + "\n"
