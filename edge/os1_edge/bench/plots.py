"""The drawings of ``bench.html``: SVG as text, from numbers. Names enter the markup only through ``text``."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from statistics import median

from os1_edge.bench.result import LinkRun, Series, series
from os1_edge.bench.table import figure
from os1_edge.replay.page import Scale, scale_for

WIDTH, ROW = 720, 26
"""Of a plot of bars, px."""
LABEL = 250
LINK = 80
"""Left of a link's bars, for its name."""
TOLD = 170
"""Right of the bars, for what is told beside them."""
WRITTEN = 14
"""A part narrower than so many px holds no number."""
COLOURS = 6
CELL, CELL_H = 220, 120
"""Of one distribution."""
LEAST = 5
"""Samples from which on a distribution is drawn."""


def text(value: object) -> str:
    """``value`` as text in markup."""
    return html.escape(str(value))


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


def memory_plot(measured: Iterable[Series]) -> str:
    """A bar a model."""
    found = [s for s in measured if str(s.of.get("figure", "")).startswith("memory")]
    if not found:
        return ""
    ordered = sorted(found, key=lambda s: -s.median)
    scale = scale_for(ordered[0].median)
    rows = [
        _bar(n, s.name, 0.0, s.median, scale, f"{figure(s.median)} MB", "b") for n, s in enumerate(ordered)
    ]
    return _plot(rows, scale, "MB", "Memory of each model")


def routes_plot(links: Sequence[LinkRun]) -> str:
    """Shares of the routes, a row a link; how long one waits, and what was right, beside it."""
    names = list(dict.fromkeys(route for run in links for route in run.routes))
    rows = []
    for number, run in enumerate(links):
        total = max(1, sum(run.routes.values()))
        shares = [(route, count / total, str(count)) for route, count in run.routes.items()]
        told = f"{wait(run)}, {run.checks_passed} of {run.checks} right"
        rows.append(_stacked(number, run.link, shares, names, told))
    drawn = _svg(WIDTH, ROW * len(links), "Who answered over each link", "".join(rows))
    return drawn + _keys(names)


def parts_plot(links: Sequence[LinkRun]) -> str:
    """Where a turn's time went over each link: medians of its parts, one after the other."""
    longest = max((sum(run.parts_s.values()) for run in links), default=0.0)
    if longest <= 0:
        return ""
    names = list(dict.fromkeys(part for run in links for part in run.parts_s))
    rows = []
    for number, run in enumerate(links):
        shares = [(part, seconds / longest, "") for part, seconds in run.parts_s.items()]
        rows.append(_stacked(number, run.link, shares, names, f"{sum(run.parts_s.values()):.2f} s"))
    drawn = _svg(WIDTH, ROW * len(links), "Where a turn's time went over each link", "".join(rows))
    return drawn + _keys(names)


def wait(run: LinkRun) -> str:
    """The median from the end of what is said to the first sound of the reply."""
    return f"{median(run.voice_to_voice_s):.2f} s" if run.voice_to_voice_s else "not in real time"


def _stacked(
    row: int, name: str, shares: Sequence[tuple[str, float, str]], names: Sequence[str], told: str
) -> str:
    """A row of parts (which, share of the whole width, what is written in it)."""
    at, y, room = float(LINK), row * ROW, WIDTH - LINK - TOLD
    out = [f'<text x="{LINK - 8}" y="{y + 17}" class="end">{text(name)}</text>']
    for which, share, written in shares:
        width = room * share
        out.append(
            f'<rect x="{at:.1f}" y="{y + 4}" width="{max(width - 1, 0):.1f}" height="18" '
            f'class="r{names.index(which) % COLOURS}"><title>{text(which)}: {share:.0%}</title></rect>'
        )
        if written and width >= WRITTEN:
            out.append(f'<text x="{at + width / 2:.1f}" y="{y + 17}" class="in">{text(written)}</text>')
        at += width
    out.append(f'<text x="{at + 6:.1f}" y="{y + 17}">{text(told)}</text>')
    return "".join(out)


def _keys(names: Sequence[str]) -> str:
    keys = "".join(
        f'<span class="key"><i class="r{number % COLOURS}"></i>{text(name)}</span>'
        for number, name in enumerate(names)
    )
    return f"<p>{keys}</p>"


def distributions(measured: Iterable[Series], links: Iterable[LinkRun] = ()) -> str:
    """A cumulative distribution for each link's waits and each series of times with samples enough."""
    waits = [
        series(f"voice to voice, {run.link}", "system", "s", [run.voice_to_voice_s])
        for run in links
        if run.voice_to_voice_s
    ]
    drawn = [s for s in (*waits, *measured) if s.unit in ("ms", "us", "s") and s.n >= LEAST and s.iqr > 0]
    if not drawn:
        return ""
    return f'<div class="cells">{"".join(map(_distribution, drawn))}</div>'


def _distribution(one: Series) -> str:
    low, high = min(one.samples), max(one.samples)
    span = (high - low) or 1.0
    left, right, top, bottom = 8, CELL - 8, 16, CELL_H - 22

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / span

    lines = []
    for number, block in enumerate(one.blocks):
        points, ordered = [f"{x(min(block)):.1f},{bottom}"], sorted(block)
        for rank, value in enumerate(ordered, 1):
            before = bottom - (bottom - top) * (rank - 1) / len(ordered)
            points.append(f"{x(value):.1f},{before:.1f}")
            points.append(f"{x(value):.1f},{bottom - (bottom - top) * rank / len(ordered):.1f}")
        lines.append(f'<polyline points="{" ".join(points)}" class="line l{number % 2}"/>')
    middle, half = x(one.median), (top + bottom) / 2
    side = ' class="end"' if middle > CELL / 2 else ""  # the median's figure stands on the side with room
    texts = (
        f'<text x="{left}" y="{CELL_H - 6}">{text(figure(low))}</text>'
        f'<text x="{right}" y="{CELL_H - 6}" class="end">{text(figure(high))} {text(one.unit)}</text>'
        f'<text x="{middle:.1f}" y="11"{side}>{text(figure(one.median))}</text>'
    )
    axis = "".join(f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" class="axis"/>' for y in (half, bottom))
    axis += f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{top}" y2="{bottom}" class="middle"/>'
    label = f"Distribution of {one.name}, median {figure(one.median)} {one.unit}"
    drawn = _svg(CELL, CELL_H, label, axis + "".join(lines) + texts)
    return f"<figure>{drawn}<figcaption>{text(one.name)}</figcaption></figure>"


def _bar(row: int, name: str, at: float, size: float, scale: Scale, told: str, kind: str) -> str:
    y, room = row * ROW, WIDTH - LABEL - 90
    x, width = LABEL + room * at / scale.top, max(room * size / scale.top, 1.0)
    return (
        f'<text x="{LABEL - 8}" y="{y + 17}" class="end">{text(name)}</text>'
        f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="18" rx="2" class="{kind}"/>'
        f'<text x="{x + width + 6:.1f}" y="{y + 17}">{text(told)}</text>'
    )


def _plot(rows: Sequence[str], scale: Scale, unit: str, label: str) -> str:
    height, room = ROW * len(rows), WIDTH - LABEL - 90
    grid = []
    for number in range(round(scale.top / scale.step) + 1):
        x = LABEL + room * number * scale.step / scale.top
        told = f"{figure(number * scale.step)} {unit}" if number else "0"
        grid.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" class="grid"/>')
        grid.append(f'<text x="{x:.1f}" y="{height + 16}" class="mid">{text(told)}</text>')
    return _svg(WIDTH, height + 22, label, "".join(grid) + "".join(rows))


def _svg(width: int, height: int, label: str, inner: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<div class="plot"><svg {size} role="img" aria-label="{text(label)}">{inner}</svg></div>'
