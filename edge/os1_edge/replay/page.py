"""The page of a replay: one self-contained ``report.html``, readable without JavaScript or a network.

Everything in a report is data. It enters the markup of ``page.html`` only through :func:`part`, which escapes
what is not :class:`Html`: a memory that says ``<script>`` is shown and never run. The content security policy
names the page's own style and script by their hashes and allows no other.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path, PurePosixPath
from string import Template
from urllib.parse import quote

from pydantic import BaseModel

from os1_edge.replay.measure import percentile, words
from os1_edge.replay.report import Latency, Report, Turn

STAGES = (
    "pause", "asr", "recall", "first token", "first clause", "first audio", "other", "voice to voice",
)  # fmt: skip
"""Parts of the latency of a turn and its whole, as the page names and orders them."""
WAITS = ("endpoint", "final text")
"""Measured beside them, over the same time."""
_THUMBNAIL = re.compile(r"data:image/(?:jpeg|png|webp);base64,[A-Za-z0-9+/]+={0,2}")
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CUT_S = 5.0  # the calendar is cut where it jumps this far; less is rounding of the written times
_FAR_S = 1e7  # numbers beyond (four months of seconds) are broken and count as absent
_DIFF_CELLS = 4_000_000  # marking words costs the product of both lengths; longer pairs stay unmarked
_LEFT = 12  # left margin of the timeline, px
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400, 864000)


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def _asset(name: str) -> str:
    return (files("os1_edge.replay") / name).read_text("utf-8")


@cache
def _parts() -> dict[str, list[tuple[Template, list[str]]]]:
    """The parts of ``page.html``, each a list of lines with the names that they hold."""
    blocks = (block.partition(" -->\n") for block in _asset("page.html").split("<!-- part: ")[1:])
    return {name: [(t, t.get_identifiers()) for t in map(Template, b.splitlines())] for name, _, b in blocks}


def part(name: str, /, **values: object) -> Html:
    """A part of ``page.html`` with its values, escaped; lines that hold a ``None`` are left out."""
    lines = [(t, names) for t, names in _parts()[name] if all(values[n] is not None for n in names)]
    return Html("\n".join(t.substitute({n: _text(values[n]) for n in names}) for t, names in lines))


def _text(value: object) -> str:
    if isinstance(value, Html):
        return value
    text = f"{round(value, 2):.8g}" if isinstance(value, float) else str(value)
    return html.escape(_UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text))


def _join(pieces: Iterable[str], between: str = "") -> Html:
    return Html(between.join(map(_text, pieces)))


def sane(value: float | None) -> float | None:
    """The number, or ``None`` where it is absent, not finite or beyond any session."""
    return value if value is not None and math.isfinite(value) and abs(value) < _FAR_S else None


def _at(value: float | None) -> float:
    return max(sane(value) or 0.0, 0.0)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f}" if seconds >= 0.01 else f"{seconds * 1000:.1f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(_at(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _span(seconds: float) -> str:
    """A length of time in words, two units at most: ``2 h 14 min``."""
    n = round(abs(seconds))
    units = ((n // 86400, "d"), (n // 3600 % 24, "h"), (n // 60 % 60, "min"), (n % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in [u for u in units if u[0]][:2]) or "0 s"


def _time(moment: datetime, report: Report, form: str = "%H:%M:%S") -> Html:
    """The time of day, with the date where it is not that of the session."""
    date = "" if moment.date() == report.session.start.date() else f"{moment.day} {moment:%b} "
    return part("time", iso=moment.isoformat(timespec="seconds"), text=date + moment.strftime(form))


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale from 0 to ``top`` with a line at each ``step``."""

    top: float
    step: float

    def share(self, value: float) -> str:
        """How far along the scale, ``12.5%``."""
        return f"{100 * min(max(value / self.top, 0), 1):.4g}%"


def scale_for(top: float) -> Scale:
    """The scale that holds ``top`` in steps of 1, 2 or 5, six at most."""
    fifth = max(top, 1e-3) / 5
    unit = 10.0 ** math.floor(math.log10(fifth))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= fifth * 0.999)
    return Scale(step * max(math.ceil(top / step - 1e-6), 1), step)


def stages(latency: Latency) -> dict[str, float]:
    """Seconds per known entry of ``STAGES``, in that order; ``other`` is what voice to voice holds beyond."""
    found = _measured(latency, STAGES)
    total = found.pop("voice to voice", 0.0)
    rest = total - sum(found.values())
    found |= {"other": rest} if found and rest > 0 else {}
    return found | ({"voice to voice": total} if total else {})


def _measured(latency: Latency, names: tuple[str, ...]) -> dict[str, float]:
    known = ((n, sane(getattr(latency, n.replace(" ", "_") + "_s", None))) for n in names)
    return {name: value for name, value in known if value is not None and value >= 0}


def _per_stage(report: Report) -> dict[str, list[float]]:
    found = [stages(t.latency) | _measured(t.latency, WAITS) for t in report.turns]
    names = (*STAGES, *WAITS)
    return {name: [f[name] for f in found if name in f] for name in names if any(name in f for f in found)}


def _scale(report: Report) -> Scale:
    found = [stages(t.latency) for t in report.turns]
    totals = [f.pop("voice to voice", 0.0) for f in found]
    return scale_for(max([*totals, *(sum(f.values()) for f in found)], default=0.0))


def _unmeasured(report: Report) -> str:
    return "not measured" + (" in a fast replay" if report.session.mode == "fast" else "")


def _latency(turn: Turn, number: int, report: Report, scale: Scale) -> Html:
    """The stacked bar of one turn, on the scale common to the page, and its numbers."""
    found = stages(turn.latency)
    total, bars, end = found.pop("voice to voice", None), [], 0.0
    for name, seconds in found.items():
        bars.append(part("bar", name=name, x=scale.share(end), w=scale.share(seconds)))
        end += seconds
    said = _unmeasured(report) if total is None else f"{_ms(total)} ms"
    said += ", its stages overlap" if total is not None and end > total + 0.0005 else ""
    told = ", ".join([f"{name} {_ms(s)} ms" for name, s in found.items()] + [f"voice to voice {said}"])
    mark, top = None if total is None else scale.share(total), f"{scale.top:g}"
    drawn = part("latency", n=number, told=told, bars=_join(bars), total=mark, end=top)
    keys = _join(part("key", name=name, ms=_ms(s)) for name, s in found.items())
    return _join([drawn if bars or mark else "", part("keys", keys=keys, said=said)])


def _latency_table(report: Report) -> Html:
    scale, missing, found, rows = _scale(report), _unmeasured(report), _per_stage(report), []
    for name, values in found.items():
        marks = {k: percentile(values, q) for k, q in (("low", 0), ("p50", 50), ("p95", 95), ("top", 100))}
        places = {f"at_{k}": scale.share(v) for k, v in marks.items()} | {k: _ms(v) for k, v in marks.items()}
        row = {"name": name, "meaning": part(f"about {name}"), "count": len(values)}
        rows.append(part("stage", **row, **places))
    fast = None if "voice to voice" in found else missing
    table = part("stages", rows=_join(rows), end=f"{scale.top:g}", unmeasured=fast)
    return table if rows else part("unmeasured", unmeasured=missing)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one clock: at session second ``at_s`` it shows ``time``, having jumped by ``jump_s``."""

    at_s: float
    time: datetime
    jump_s: float = 0.0


def segments(report: Report) -> list[Segment]:
    """Where the calendar jumps against session time, found from the frames and the turns."""
    points = [(f.at_s, f.time) for f in report.frames] + [(t.start_s, t.time) for t in report.turns]
    found = [Segment(0.0, report.session.start)]
    for at, time in sorted((p for p in points if sane(p[0]) is not None), key=lambda p: p[0]):
        last = found[-1]
        same = (time.tzinfo is None) == (last.time.tzinfo is None)
        time = time if same else time.replace(tzinfo=last.time.tzinfo)
        jump = (time - last.time).total_seconds() - (at - last.at_s)
        if abs(jump) > _CUT_S:
            found.append(Segment(max(at, 0.0), time, jump))
    return found


def _reply_start(turn: Turn) -> float:
    """Where the reply began, or where the speech ended if that was not measured."""
    return _at(turn.end_s if sane(turn.reply_start_s) is None else turn.reply_start_s)


def _mark(turn: Turn, number: int, px: float) -> Html:
    """The speech and the reply of one turn on the timeline: a link to its card."""
    x, reply_x = _LEFT + _at(turn.start_s) * px, _LEFT + _reply_start(turn) * px
    width, reply_w = max(_LEFT + _at(turn.end_s) * px - x, 3.0), max(_at(turn.reply_s) * px, 3.0)
    kind = None if not turn.reply else "hollow" if sane(turn.reply_start_s) is None else "reply"
    values = {"at": _clock(turn.start_s), "heard": turn.heard[:80], "reply_at": f"{_reply_start(turn):.2f}"}
    places = {"x": x, "w": width, "reply_x": reply_x, "reply_w": reply_w}
    places |= {"hit_x": x - 2, "hit_w": max(reply_x + reply_w - x + 4, 24.0)}
    return part("mark", **values, **places, n=number, kind=kind)


def _frames(report: Report, end: float, px: float, cuts: Sequence[float]) -> tuple[Html, int]:
    """The lane of frames and its bottom: pictures where given and free of the last one, ticks, scenes."""
    frames = sorted((f for f in report.frames if sane(f.at_s) is not None), key=lambda f: f.at_s)
    drawn, free = [], 0.0
    for f in frames:
        x = _LEFT + _at(f.at_s) * px
        if free <= x <= end * px - 40 and _THUMBNAIL.fullmatch(f.thumbnail or ""):
            drawn.append(part("thumbnail", data=f.thumbnail, x=x, scene=f.scene[:200]))
            free = x + 66
    y = 142 if drawn else 88
    strokes = (f"M{_LEFT + _at(f.at_s) * px:.1f},{y if f.usable else y + 6}V{y + 12}" for f in frames)
    drawn.append(part("frames", d=" ".join(strokes) or None))
    runs = groupby((f for f in frames if f.usable), key=lambda f: (f.scene, bisect(cuts, f.at_s)))
    firsts = [(_at(f.at_s), f.scene[:200]) for f in (next(run) for _, run in runs)]
    for (at, scene), (after, _) in pairwise([*firsts, (end, "")]):
        if (after - at) * px >= 8:
            drawn.append(part("scene", x=_LEFT + at * px, y=y + 16, w=(after - at) * px - 2, scene=scene))
    return _join(drawn), y + 40


def _cut(cut: Segment, after: float, px: float, bottom: int) -> Html:
    """The clock time at the start of a stretch, and the broken line where the clock jumped."""
    x, room, label = _LEFT + cut.at_s * px, (after - cut.at_s) * px, f"{cut.time:%H:%M}"
    if not cut.jump_s:
        return part("cut", path=None, x=x, label=f"{cut.time:%a} {cut.time.day} {cut.time:%b}, {label}")
    if room > 130:
        label += f", {_span(cut.jump_s)} {'later' if cut.jump_s > 0 else 'earlier'}"
    path = f"M{x:.1f},0V18l-4,3 8,3 -8,3 4,3V{bottom}"
    return part("cut", path=path, x=x + 4, label=label if room > 34 else "")


def _timeline(report: Report) -> Html:
    """The whole drawing on the axis of session seconds."""
    turns, frames, stretches = report.turns, report.frames, segments(report)
    ends = [1.0, _at(report.session.seconds), *(_at(f.at_s) for f in frames)]
    end = max(ends + [max(_at(t.end_s), _reply_start(t) + _at(t.reply_s)) for t in turns])
    px = min(max(1030 / end, 6.0), 40.0, 16000 / end)
    cuts, hollow = [s.at_s for s in stretches[1:]], [t for t in turns if sane(t.reply_start_s) is None]
    lane, bottom = _frames(report, end, px, cuts)
    seconds = range(0, int(end) + 1, next((s for s in _STEPS if s * px >= 56), _STEPS[-1]))
    drawn = [part("tick", x=_LEFT + s * px, y=bottom + 14, label=_clock(s)) for s in seconds] + [lane]
    drawn += [_cut(s, n, px, bottom) for s, n in zip(stretches, [*cuts, end], strict=True)]
    drawn += [_mark(t, n, px) for n, t in enumerate(turns, 1)]
    shape = {"width": 2 * _LEFT + end * px, "height": bottom + 22, "floor": bottom, "left": _LEFT}
    shape |= {"frames_y": bottom - 29, "axis_y": bottom + 14}
    legend: dict[str, object] = {"spoken": "reply, as it was spoken" if len(hollow) < len(turns) else None}
    legend |= {"hollow": _unmeasured(report) if hollow else None, "n_cuts": len(cuts) or None}
    legend |= {"blurred": sum(not f.usable for f in frames) or None, "clear": "frame" if frames else None}
    told = f"{len(turns)} turns and {len(frames)} frames in {_span(end)}; the clock jumps {len(cuts)} times."
    clock = json.dumps([[s.at_s, s.time.replace(tzinfo=None).isoformat()] for s in stretches])
    grid = "".join(f"M{_LEFT + s * px:.1f},20V{bottom}" for s in seconds)
    shown = {"told": told, "cuts": clock, "grid": grid, "px": f"{px:.5g}", "drawn": _join(drawn)}
    return part("timeline", **shape, **legend, **shown)


def _compare(heard: str, reference: str) -> tuple[Html, Html, int]:
    """Both texts with the words that differ marked, and how many do; compared as the word error rate is."""
    texts = heard.split(), reference.split()
    if len(texts[0]) * len(texts[1]) > _DIFF_CELLS:
        return _join([heard]), _join([reference]), -1
    a, b = (["".join(words(token)) or token for token in tokens] for tokens in texts)
    sides: tuple[list[str], list[str]] = ([], [])
    count = 0
    for op, i, i2, j, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for side, tokens in zip(sides, (texts[0][i:i2], texts[1][j:j2]), strict=True):
            text = " ".join(tokens)
            side += [text if op == "equal" else part("miss", words=text)] if text else []
        count += 0 if op == "equal" else max(i2 - i, j2 - j)
    return _join(sides[0], " "), _join(sides[1], " "), count


def _player(turn: Turn, number: int, audio: Mapping[str, bytes]) -> Html | None:
    """The player of the reply: of the sound given, or of the file if that lies beside the page."""
    path = PurePosixPath(turn.reply_file or "")
    if not path.name or path.is_absolute() or ".." in path.parts or _UNSAFE.search(str(path)):
        return None
    sound = audio.get(turn.reply_file or "")
    held = None if sound is None else "data:audio/wav;base64," + base64.b64encode(sound).decode()
    return part("player", n=number, src=held or quote(str(path)), length=sane(turn.reply_s))


def _turn(number: int, report: Report, scales: tuple[Scale, Scale], audio: Mapping[str, bytes]) -> Html:
    """The card of one turn, counted from 1, with the scales of the latency bars and of the scores."""
    turn = report.turns[number - 1]
    heard, reference, count, agreed = _join([turn.heard]), None, 0, None
    if turn.reference is not None:
        heard, reference, count = _compare(turn.heard, turn.reference)
        told = {0: "same words as the reference", -1: "too long to compare"}
        agreed = told.get(count, f"words that differ: {count}")
    shares = [scales[1].share(sane(m.score) or 0.0) for m in turn.recalled]
    memories = [part("memory", **dict(m), share=s) for m, s in zip(turn.recalled, shares, strict=True)]
    values = _cells(turn, report) | {"heard": heard or "(nothing)", "reply": turn.reply or "(no reply)"}
    values |= {"reference": reference if count else None, "compared": agreed}
    values |= {"n": number, "at": _clock(turn.start_s), "recalled": _join(memories) or None}
    values |= {"route": turn.route if turn.failed is None or turn.route_reason else None}
    values |= {"latency": _latency(turn, number, report, scales[0]), "player": _player(turn, number, audio)}
    return part("turn", **values)


def _unheard(report: Report) -> str:
    """What was said and no turn heard; nothing where all was heard."""
    rows = [part("missed", text=text) for text in report.unheard or []]
    return part("unheard", count=len(rows), rows=_join(rows)) if rows else ""


def _cells(row: BaseModel, report: Report) -> dict[str, object]:
    """The fields of a row, dates and times as shown."""
    return {k: _time(v, report) if isinstance(v, datetime) else v for k, v in row}


def _tables(report: Report) -> dict[str, object]:
    """The tables after the turns; an empty one says so, an absent one is ``None``."""
    links = {turn.turn_id: part("anchor", n=n) for n, turn in enumerate(report.turns, 1)}
    known = [(p, links.get(p.source_turn, p.source_turn)) for p in report.profile]
    rows = {
        "contexts": [part("context", **_cells(c, report) | {"at": _clock(c.at_s)}) for c in report.contexts],
        "events": [part("event", **_cells(e, report)) for e in report.events],
        "summaries": [part("summary", **_cells(s, report)) for s in report.summaries or []],
        "profile": [part("known", **_cells(p, report), source=s) for p, s in known],
        "models": [part("model", **dict(m), name=n, short=m.sha256[:12]) for n, m in report.models.items()],
    }
    tables = {name: part(name, rows=_join(found)) if found else part("empty") for name, found in rows.items()}
    return {name: table if getattr(report, name) is not None else None for name, table in tables.items()}


def _header(report: Report) -> dict[str, object]:
    """The values at the top of the page, and the counts beside its links."""
    session, totals = report.session, _per_stage(report).get("voice to voice")
    counts = {"n_summaries": None} | {f"n_{k}": len(v) for k, v in report if isinstance(v, list | dict)}
    start = f"{session.start:%A} {session.start.day} {session.start:%B %Y, %H:%M}"
    rate = report.word_error_rate
    routes = Counter(t.route if t.failed is None else "failed" for t in report.turns)
    return {
        **counts,
        **dict(report.resources),
        "title": session.title,
        "start": part("time", iso=session.start.isoformat(), text=start),
        "length": _span(_at(session.seconds)),
        "mode": "faster than real time" if session.mode == "fast" else "in real time",
        "routes": ", ".join(f"{n} {route}" for route, n in routes.items()),
        "machine": _join(part("fact", name=k.replace("_", " "), value=v) for k, v in report.machine.items()),
        "wer": None if rate is None else f"{rate * 100:.1f}",
        "p50": _ms(percentile(totals, 50)) if totals else None,
        "p95": _ms(percentile(totals, 95)) if totals else None,
        "unmeasured": None if totals else _unmeasured(report),
        "eye": report.eye and report.eye.told,
    }


def render(report: Report, *, audio: Mapping[str, bytes] | None = None) -> str:
    """The page as HTML; ``audio`` maps a ``reply_file`` to a WAV file to hold in the page, not beside it."""
    top = max([1.0, *(m.score for t in report.turns for m in t.recalled if sane(m.score) is not None)])
    scales, header = (_scale(report), Scale(top, top)), _header(report)
    step = f":root{{--step:{scales[0].share(scales[0].step)}}}"
    style, script = Html(_asset("page.css") + step), Html(_asset("page.js"))
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    policy = "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; ".format(*hashes)
    policy += "img-src data:; media-src 'self' data:; base-uri 'none'; form-action 'none'"
    turns = _join(_turn(n + 1, report, scales, audio or {}) for n in range(len(report.turns)))
    values = _tables(report) | {"turns": _join([_unheard(report), turns or part("empty")])}
    values |= {"latency": _latency_table(report), "timeline": _timeline(report)}
    values |= {"policy": Html(policy), "style": style, "script": script, "version": report.os1_version}
    return part("page", **header, **values, resources=part("resources", **header))


def write_page(report: Report, out_dir: Path, audio: Mapping[str, bytes] | None = None) -> Path:
    """Writes ``report.html`` into ``out_dir``; it holds ``audio`` and plays other replies from beside it."""
    path = out_dir / "report.html"
    path.write_text(render(report, audio=audio), "utf-8")
    return path
