"""``bench.html``: one page that holds everything it shows; readable without a network and without JavaScript.

Names and numbers are data: they enter the markup only through ``_text``, which escapes them. The content
security policy allows the page's own style, by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from itertools import groupby

from os1_edge.bench.compare import own_noise
from os1_edge.bench.plots import distributions, memory_plot, parts_plot, routes_plot, text, waterfall_plot
from os1_edge.bench.result import Result, Series
from os1_edge.bench.table import figure, machine_line, plural


def page(result: Result) -> str:
    """The page of ``result``."""
    style = (files("os1_edge.bench") / "page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    parts = [
        _head(result),
        *_section("Where a turn's time goes", waterfall_plot(waterfall(result)), WATERFALL),
        *_section("Who answered over each link", routes_plot(result.links) if result.links else "", LINKS),
        *_section("Where a turn's time went over each link", parts_plot(result.links), PARTS),
        *_section("Memory", memory_plot(result.series), MEMORY),
        *_section("Distributions", distributions(result.series, result.links), DISTRIBUTIONS),
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
LINKS = (
    "The session lived over each kind of link: turns by who answered; then the median wait from your last "
    "word to the first sound, and how many of the replies that can be checked were right."
)
PARTS = "Medians of the parts, one after the other; those that overlap in a turn are counted in full."
MEMORY = "The most that a process of its own held for each, over Python with its libraries."
DISTRIBUTIONS = (
    "Share of the samples that took no longer, from none at the bottom to all at the top; the dotted line is "
    "the median. A line a round; where the two lie apart, that is this machine's noise."
)


def _section(title: str, plot: str, told: str) -> list[str]:
    if not plot:
        return []
    return [f"<section><h2>{text(title)}</h2><p>{text(told)}</p>{plot}</section>"]


def _head(result: Result) -> str:
    told = [f"{result.made:%Y-%m-%d %H:%M}", f"OS-1 {result.os1_version}", machine_line(result.machine)]
    told += [plural(result.rounds, "round"), plural(result.threads, "thread"), f"{result.seconds:.0f} s"]
    cautions = [f"With care: {warning}." for warning in result.warnings]
    if result.interrupted:
        cautions.insert(0, "It was interrupted: what was measured by then is here.")
    lines = "".join(f'<p class="care">{text(line)}</p>' for line in cautions)
    command = f"<p><code>{text(result.command)}</code></p>"
    return f"<header><h1>OS-1 bench</h1><p>{text(' · '.join(told))}</p>{command}{lines}</header>"


def waterfall(result: Result) -> list[tuple[str, float]]:
    """(part, milliseconds) of a turn in order, by the stages."""
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


def _numbers(result: Result) -> str:
    rows = []
    for group, some in groupby(result.series, key=lambda s: s.group):
        rows.append(f'<tr><th colspan="6" scope="rowgroup">{text(group)}</th></tr>')
        for s in some:
            noise = f"{own_noise(s):.0%}" if len(s.blocks) > 1 else "–"
            cells = (f"{figure(s.median)} {s.unit}", figure(s.p95), figure(s.iqr), s.n, noise)
            rows.append(f"<tr><td>{text(s.name)}</td>{_cells(cells)}</tr>")
    return _table("All numbers", ("", "median", "p95", "spread", "n", "between rounds"), rows)


def _peers(result: Result) -> str:
    rows = []
    for p in result.peers:
        told = ", ".join(f"{name} {value:g}" for name, value in p.quality.items())
        span = f"{p.low:.2f}–{p.high:.2f}"
        cells = (f"{figure(p.ours)} {p.unit}", f"{figure(p.theirs)} {p.unit}", f"{p.ratio:.2f}", span, told)
        rows.append(f"<tr><td>{text(p.name)}: {text(p.peer)}</td>{_cells(cells)}</tr>")
    head = ("beside, in the same run", "ours", "theirs", "theirs / ours", "95 %", "")
    return _table("Others on the same work", head, rows)


def _left_out(result: Result) -> str:
    rows = [f"<tr><td>{text(s.name)}</td><td>{text(s.why)}</td></tr>" for s in result.skipped]
    return _table("Not measured", ("", "why"), rows)


def _cells(values: Iterable[object]) -> str:
    return "".join(f'<td class="n">{text(value)}</td>' for value in values)


def _table(title: str, head: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return ""
    top = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    body = "".join(rows)
    return (
        f'<section><h2>{text(title)}</h2><div class="plot"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )
