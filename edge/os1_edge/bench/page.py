"""``bench.html``: one page that holds everything it shows; readable without a network and without JavaScript.

Names and numbers are data: they enter the markup only through ``_text``, which escapes them. The content
security policy allows the page's own style, by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from itertools import groupby

from os1_edge.bench.compare import own_noise
from os1_edge.bench.result import LinkRun, Result, Series
from os1_edge.bench.table import figure, machine_line
from os1_edge.replay.page import Scale, scale_for

WIDTH, ROW = 720, 26
"""Of a plot of bars, px."""
LABEL = 250
CELL, CELL_H = 220, 120
"""Of one distribution."""
LEAST = 5
"""Samples from which on a distribution is drawn."""


def page(result: Result) -> str:
    """The page of ``result``."""
    style = (files("os1_edge.bench") / "page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    parts = [
        _head(result),
        *_section("Where a turn's time goes", waterfall_plot(waterfall(result)), WATERFALL),
        *_section("Over the links", link_plot(result.links), LINKS),
        *_section("Memory", memory_plot(result.series), MEMORY),
        *_section("Distributions", distributions(result.series), DISTRIBUTIONS),
        _numbers(result),
        _peers(result),
        _left_out(result),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>OS-1 bench, {result.made:%Y-%m-%d}</title>\n<style>{style}</style>\n</head>\n"
        "<body>\n<main>\n" + "\n".join(part for part in parts if part) + "\n</main>\n</body>\n</html>\n"
    )


WATERFALL = (
    "One turn on this device: the medians of its parts, one after the other. Without the wait that makes "
    "sure that you are done, and without what is worked on ahead while you speak."
)
LINKS = "The bundled session over each kind of link: who answered, and how long you would have waited."
MEMORY = "The most that a process of its own held for each, over Python with its libraries."
DISTRIBUTIONS = (
    "Share of the samples that took no longer. A line a round; where the two lie apart, that is this "
    "machine's noise."
)


def _text(value: object) -> str:
    return html.escape(str(value))


def _section(title: str, plot: str, told: str) -> list[str]:
    if not plot:
        return []
    return [f"<section><h2>{_text(title)}</h2><p>{_text(told)}</p>{plot}</section>"]


def _head(result: Result) -> str:
    told = [f"{result.made:%Y-%m-%d %H:%M}", f"OS-1 {result.os1_version}", machine_line(result.machine)]
    told.append(f"{result.rounds} rounds with {result.threads} threads in {result.seconds:.0f} s")
    cautions = [f"With care: {warning}." for warning in result.warnings]
    if result.interrupted:
        cautions.insert(0, "It was interrupted: what was measured by then is here.")
    lines = "".join(f'<p class="care">{_text(line)}</p>' for line in cautions)
    command = f"<p><code>{_text(result.command)}</code></p>"
    return f"<header><h1>OS-1 bench</h1><p>{_text(' · '.join(told))}</p>{command}{lines}</header>"


def waterfall(result: Result) -> list[tuple[str, float]]:
    """(part, milliseconds) of a turn in order; of the first link's session where it was lived, else of the
    stages."""
    if result.links and result.links[0].parts_s:
        return [(name, 1000 * seconds) for name, seconds in result.links[0].parts_s.items()]
    by_name = {s.name: s for s in result.series}

    def of(**wanted: str | float) -> Series | None:
        return next((s for s in result.series if all(s.of.get(k) == v for k, v in wanted.items())), None)

    written = of(figure="generation")
    steps: list[tuple[str, Series | None, Callable[[float], float]]] = [
        ("pause judged", by_name.get("end of turn, a pause judged"), float),
        ("speech recognised (2.7 s)", of(figure="final", seconds=2.7), float),
        ("sentence embedded", by_name.get("embed, a sentence"), float),
        ("recall (10k memories)", of(rows=10_000), float),
        ("first token, prefix read", of(figure="first token warm"), float),
        ("six tokens written", written, lambda rate: 6000 / max(rate, 0.01)),
        ("first clause spoken", of(figure="first clause"), float),
    ]
    return [(name, as_ms(series.median)) for name, series, as_ms in steps if series is not None]


def waterfall_plot(steps: Sequence[tuple[str, float]]) -> str:
    """Bars that begin where the one before ends."""
    if not steps:
        return ""
    whole = sum(ms for _, ms in steps)
    scale, rows, at = scale_for(whole), [], 0.0
    for number, (name, ms) in enumerate(steps):
        rows.append(_bar(number, name, at, ms, scale, f"{figure(ms)} ms", "a"))
        at += ms
    rows.append(_bar(len(steps), "together", 0.0, whole, scale, f"{figure(whole)} ms", "whole"))
    return _plot(rows, scale, "ms", f"Waterfall of a turn, {figure(whole)} milliseconds together")


def memory_plot(series: Iterable[Series]) -> str:
    """A bar a model."""
    found = [s for s in series if str(s.of.get("figure", "")).startswith("memory")]
    if not found:
        return ""
    ordered = sorted(found, key=lambda s: -s.median)
    scale = scale_for(ordered[0].median)
    rows = [
        _bar(n, s.name, 0.0, s.median, scale, f"{figure(s.median)} MB", "b") for n, s in enumerate(ordered)
    ]
    return _plot(rows, scale, "MB", "Memory of each model")


def link_plot(links: Sequence[LinkRun]) -> str:
    """Shares of the routes and the median wait, a row a link."""
    if not links:
        return ""
    names = list(dict.fromkeys(route for run in links for route in run.routes))
    rows = []
    for number, run in enumerate(links):
        at, y = 0.0, number * ROW
        total = max(1, sum(run.routes.values()))
        parts = [f'<text x="{LABEL - 8}" y="{y + 17}" class="end">{_text(run.link)}</text>']
        for route, count in run.routes.items():
            width = (WIDTH - LABEL - 150) * count / total
            x = LABEL + at
            kind = f"r{names.index(route) % 4}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{max(width - 1, 0):.1f}" height="18" class="{kind}">'
                f"<title>{_text(route)}: {count} of {total} turns</title></rect>"
            )
            at += width
        spoken = sorted(run.voice_to_voice_s)
        told = f"{spoken[len(spoken) // 2]:.2f} s" if spoken else "not in real time"
        parts.append(f'<text x="{WIDTH - 140}" y="{y + 17}">{_text(told)}</text>')
        rows.append("".join(parts))
    height = ROW * len(links)
    keys = "".join(
        f'<span class="key"><i class="r{number % 4}"></i>{_text(name)}</span>'
        for number, name in enumerate(names)
    )
    return _svg(WIDTH, height, "Who answered over each link", "".join(rows)) + f"<p>{keys}</p>"


def distributions(series: Iterable[Series]) -> str:
    """A cumulative distribution for each series of times that has samples enough."""
    drawn = [s for s in series if s.unit in ("ms", "us", "s") and s.n >= LEAST and s.iqr > 0]
    if not drawn:
        return ""
    return f'<div class="cells">{"".join(map(_distribution, drawn))}</div>'


def _distribution(series: Series) -> str:
    low, high = min(series.samples), max(series.samples)
    span = (high - low) or 1.0
    left, right, top, bottom = 8, CELL - 8, 10, CELL_H - 22

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / span

    lines = []
    for number, block in enumerate(series.blocks):
        points, ordered = [f"{x(min(block)):.1f},{bottom}"], sorted(block)
        for rank, value in enumerate(ordered, 1):
            before = bottom - (bottom - top) * (rank - 1) / len(ordered)
            points.append(f"{x(value):.1f},{before:.1f}")
            points.append(f"{x(value):.1f},{bottom - (bottom - top) * rank / len(ordered):.1f}")
        lines.append(f'<polyline points="{" ".join(points)}" class="line l{number % 2}"/>')
    middle = x(series.median)
    ends = (
        f'<text x="{left}" y="{CELL_H - 6}">{_text(figure(low))}</text>'
        f'<text x="{right}" y="{CELL_H - 6}" class="end">{_text(figure(high))} {_text(series.unit)}</text>'
    )
    axis = (
        f'<line x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}" class="axis"/>'
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{top}" y2="{bottom}" class="middle"/>'
    )
    label = f"Distribution of {series.name}, median {figure(series.median)} {series.unit}"
    drawn = _svg(CELL, CELL_H, label, axis + "".join(lines) + ends)
    return f"<figure>{drawn}<figcaption>{_text(series.name)}</figcaption></figure>"


def _bar(row: int, name: str, at: float, size: float, scale: Scale, told: str, kind: str) -> str:
    y, room = row * ROW, WIDTH - LABEL - 90
    x, width = LABEL + room * at / scale.top, max(room * size / scale.top, 1.0)
    return (
        f'<text x="{LABEL - 8}" y="{y + 17}" class="end">{_text(name)}</text>'
        f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="18" rx="2" class="{kind}"/>'
        f'<text x="{x + width + 6:.1f}" y="{y + 17}">{_text(told)}</text>'
    )


def _plot(rows: Sequence[str], scale: Scale, unit: str, label: str) -> str:
    height, room = ROW * len(rows), WIDTH - LABEL - 90
    grid = []
    for number in range(round(scale.top / scale.step) + 1):
        x = LABEL + room * number * scale.step / scale.top
        told = f"{figure(number * scale.step)} {unit}" if number else "0"
        grid.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" class="grid"/>')
        grid.append(f'<text x="{x:.1f}" y="{height + 16}" class="mid">{_text(told)}</text>')
    return _svg(WIDTH, height + 22, label, "".join(grid) + "".join(rows))


def _svg(width: int, height: int, label: str, inner: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<div class="plot"><svg {size} role="img" aria-label="{_text(label)}">{inner}</svg></div>'


def _numbers(result: Result) -> str:
    rows = []
    for group, some in groupby(result.series, key=lambda s: s.group):
        rows.append(f'<tr><th colspan="6" scope="rowgroup">{_text(group)}</th></tr>')
        for s in some:
            noise = f"{own_noise(s):.0%}" if len(s.blocks) > 1 else "–"
            cells = (f"{figure(s.median)} {s.unit}", figure(s.p95), figure(s.iqr), s.n, noise)
            rows.append(f"<tr><td>{_text(s.name)}</td>{_cells(cells)}</tr>")
    return _table("All numbers", ("", "median", "p95", "spread", "n", "between rounds"), rows)


def _peers(result: Result) -> str:
    rows = []
    for p in result.peers:
        told = ", ".join(f"{name} {value:g}" for name, value in p.quality.items())
        span = f"{p.low:.2f}–{p.high:.2f}"
        cells = (f"{figure(p.ours)} {p.unit}", f"{figure(p.theirs)} {p.unit}", f"{p.ratio:.2f}", span, told)
        rows.append(f"<tr><td>{_text(p.name)}: {_text(p.peer)}</td>{_cells(cells)}</tr>")
    head = ("beside, in the same run", "ours", "theirs", "theirs / ours", "95 %", "")
    return _table("Others on the same work", head, rows)


def _left_out(result: Result) -> str:
    rows = [f"<tr><td>{_text(s.name)}</td><td>{_text(s.why)}</td></tr>" for s in result.skipped]
    return _table("Not measured", ("", "why"), rows)


def _cells(values: Iterable[object]) -> str:
    return "".join(f'<td class="n">{_text(value)}</td>' for value in values)


def _table(title: str, head: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return ""
    top = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join(rows)
    return (
        f'<section><h2>{_text(title)}</h2><div class="plot"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )
