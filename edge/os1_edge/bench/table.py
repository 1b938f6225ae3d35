"""A result, or two beside each other, as tables for a person."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from statistics import median

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from os1_edge.bench.compare import Comparison, Verdict, own_noise
from os1_edge.bench.result import LinkRun, Machine, Ratio, Result, Series

COLOURS = {"better": "green", "worse": "red", "same": "dim", "too few": "yellow"}

MAIN = (
    "vad, a chunk of 32 ms", "end of turn, a pause judged", "asr whisper-tiny.en, 2.7 s",
    "asr whisper-tiny.en, bundled set, words wrong",
    "asr whisper-tiny.en, bundled set, words wrong in noise", "asr whisper-base, 2.7 s",
    "asr whisper-base, bundled set, words wrong in noise", "pupil, a frame", "gaze, a frame",
    "jpeg, at most 30 kB", "objects, a frame", "words, a crop of 224 px",
    "faces taken out, a frame", "embed, a sentence", "recall of 10k memories",
    "recall of 100k memories", "qwen2.5-0.5b, prompt read", "qwen2.5-0.5b, written",
    "qwen2.5-0.5b, first token, prefix read", "qwen2.5-0.5b, first token, nothing read",
    "smollm2-135m, first token, prefix read", "voice, first clause", "voice, rtf",
    "router, a whole decision", "grpc, first text", "grpc, 60 kB sent",
    "listening to a quiet room, of a core", "cold start, all models", "memory, all models",
)  # fmt: skip
"""The series that a README has room for."""


def figure(value: float) -> str:
    """Three digits that count: 0.123, 12.3, 1,230."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def plural(count: int, what: str) -> str:
    """``2 rounds``."""
    return f"{count} {what}{'s' * (count != 1)}"


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
        table.add_row(*link_cells(run))
    return table


def link_cells(run: LinkRun) -> list[str]:
    """Link, voice to voice (median, 95th percentile), routes, checks, processor time, energy."""
    spoken = sorted(run.voice_to_voice_s)
    middle = f"{median(spoken):.2f} s" if spoken else "-"
    tail = f"{spoken[min(len(spoken) - 1, int(0.95 * len(spoken)))]:.2f} s" if spoken else "-"
    routes = ", ".join(f"{route} {count}" for route, count in run.routes.items())
    joules = f"{run.joules:.0f} ({run.energy_by})" if run.joules is not None else "-"
    checks = f"{run.checks_passed} of {run.checks}"
    link = f"{run.link} ({run.shaped_by})" if run.shaped_by else run.link
    return [link, middle, tail, routes, checks, f"{run.cpu_s_a_minute:.1f}", joules]


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


def show(what: RenderableType, plain: bool = False) -> None:
    """Prints it; as wide as it is, and without colour, where nobody looks at a terminal or ``plain``."""
    console = Console(highlight=False)
    if plain or not console.is_terminal:
        console = Console(highlight=False, width=160, no_color=True, force_terminal=False)
    console.print(what)


def markdown(result: Result, only: Iterable[str] | None = None) -> str:
    """The results as tables for a page like the README: dated, with the command and the machine. ``only``: of
    these series; None: of all."""
    wanted = None if only is None else set(only)
    rows = [row for row in result.series if wanted is None or row.name in wanted]
    lines = [
        f"`{result.command}`, {result.made:%Y-%m-%d}, on {machine_line(result.machine)}, Python "
        f"{result.machine.python}. Medians, and the middle half of the samples lies within the spread.",
    ]
    if rows:
        lines += ["", "| | median | spread | n |", "| --- | --- | --- | --- |"]
    for row in rows:
        unit = f" {row.unit}"
        lines.append(f"| {row.name} | {figure(row.median)}{unit} | {figure(row.iqr)}{unit} | {row.n} |")
    if result.links:
        head = (
            "link",
            "voice to voice p50",
            "p95",
            "turns by route",
            "replies right",
            "CPU s a minute",
            "joules",
        )
        lines += ["", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
        lines += [f"| {' | '.join(link_cells(run))} |" for run in result.links]
    if result.peers:
        lines += ["", "| beside, in the same run | theirs / ours | 95 % |", "| --- | --- | --- |"]
        for peer in result.peers:
            span = f"{peer.low:.2f}–{peer.high:.2f}"
            lines.append(f"| {peer.name}: {peer.peer} | {peer.ratio:.2f} | {span} |")
    if result.warnings:
        lines += ["", "With care: " + "; ".join(result.warnings) + "."]
    return "\n".join(lines) + "\n"
