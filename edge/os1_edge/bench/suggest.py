"""From what was measured to settings that fit the device. Pure: a result in, settings with reasons out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from os1_edge.bench.result import Result, Series
from os1_edge.config import Config

NEAR = 1.1
"""Of two numbers of threads that differ by less, the smaller: a core left alone is free for the rest."""
FIRST_TOKEN_MS = 1500.0
"""With its prefix read; beyond it a reply comes later than one waits for."""
SPEECH_TOKENS_S = 6.0
"""What must be written a second: speech takes up about 3.5."""
WORDS_MS = 600.0
"""The words in a crop have to be read while a fixation lasts."""
HEARD_MS = 400.0
"""What the final pass may take where the better recogniser is chosen."""
ALONG_RTF = 0.4
"""Above it, hearing along while somebody speaks takes the cores that the answer needs."""
DUTY = 0.02
"""Share of the time in which the scene camera's networks may be at work."""
SPARE_MB = 300
"""Left for everything but the models."""
SMALL_MB = 1500
"""Below so much memory, buffers are kept small."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """One setting."""

    table: str
    key: str
    value: str | int | float | bool
    why: str


def suggest(result: Result) -> list[Suggested]:
    """What was measured well enough to say; nothing about the rest, whose defaults hold."""
    rules: Sequence[Callable[[Result], list[Suggested]]] = (_hear, _see, _speak, _converse, _budgets)
    return [setting for rule in rules for setting in rule(result)]


def quantisations(result: Result) -> list[str]:
    """What other roundings of the recogniser would change, in words: which one is used is no setting, the
    models are pulled in the one that is best on the reference machine. Empty where none was measured."""
    out = []
    for row in _of(result, figure="rtf of set"):
        kind, model = row.of["quantisation"], str(row.of["model"])
        wrong = _one(result, model=model, quantisation=kind, figure="wer in noise")
        pulled = _one(result, model=model, quantisation="as pulled", figure="rtf of set")
        if kind == "as pulled" or wrong is None or pulled is None:
            continue
        told = f"{model} as {kind} takes {row.median / max(pulled.median, 1e-9):.0%} of the time"
        out.append(f"{told}, {wrong.median:.1f} % of words wrong in noise.")
    return out


def toml(settings: Sequence[Suggested], head: Sequence[str]) -> str:
    """A settings file; each setting with its reason.

    Raises:
        ValueError: a setting is none of OS-1's (pydantic tells which).
    """
    lines = [f"# {line}" for line in head]
    tables: dict[str, dict[str, Any]] = {}
    for table, rows in groupby(sorted(settings, key=lambda s: s.table), key=lambda s: s.table):
        lines += ["", f"[{table}]"]
        for row in rows:
            tables.setdefault(table, {})[row.key] = row.value
            lines.append(f"{row.key} = {json.dumps(row.value)}  # {row.why}")
    Config.model_validate(tables)
    return "\n".join(lines) + "\n"


def _of(result: Result, **wanted: str | int | float) -> list[Series]:
    return [s for s in result.series if all(s.of.get(k) == v for k, v in wanted.items())]


def _one(result: Result, **wanted: str | int | float) -> Series | None:
    """With all the threads that were measured with."""
    found = [s for s in _of(result, **wanted) if "threads" not in s.of]
    return found[0] if found else None


def _threads(result: Result, figure: str, group: str, **wanted: str) -> Suggested | None:
    rows = [s for s in _of(result, figure=figure, **wanted) if "threads" in s.of]
    if not rows:
        return None
    best = min(s.median for s in rows)
    row = min((s for s in rows if s.median <= NEAR * best), key=lambda s: int(s.of["threads"]))
    told = ", ".join(f"{s.of['threads']}: {s.median:.0f} ms" for s in rows)
    return Suggested(group, "threads", int(row.of["threads"]), told)


def _hear(result: Result) -> list[Suggested]:
    out = []
    small = _one(result, model="whisper-tiny.en", figure="final", seconds=2.7)
    big = _one(result, model="whisper-base", figure="final", seconds=2.7)
    wrong = {
        m: _one(result, model=m, figure="wer in noise", quantisation="as pulled")
        for m in ("whisper-tiny.en", "whisper-base")
    }
    tiny, base = wrong["whisper-tiny.en"], wrong["whisper-base"]
    if small is not None:
        better = tiny is not None and base is not None and base.median < tiny.median
        chosen = (
            "whisper-base" if better and big is not None and big.median <= HEARD_MS else "whisper-tiny.en"
        )
        why = f"tiny {small.median:.0f} ms" + (f", base {big.median:.0f} ms for 2.7 s" if big else "")
        if tiny is not None and base is not None:
            why += f"; words wrong in noise {tiny.median:.1f} and {base.median:.1f} %"
        out.append(Suggested("hear", "asr_model", chosen, why))
    if (threads := _threads(result, "final", "hear")) is not None:
        out.append(threads)
    if (rtf := _one(result, model="whisper-tiny.en", figure="rtf", seconds=2.7)) is not None:
        out.append(Suggested("hear", "partials", rtf.median <= ALONG_RTF, f"rtf {rtf.median:.2f}"))
    return out


def _see(result: Result) -> list[Suggested]:
    named = {s.name: s for s in result.series}
    out = []
    if (words := named.get("words, a crop of 224 px")) is not None:
        out.append(Suggested("see", "read_text", words.median <= WORDS_MS, f"{words.median:.0f} ms a crop"))
    objects, faces = named.get("objects, a frame"), named.get("faces taken out, a frame")
    if objects is not None and faces is not None:
        spent_s = (objects.median + faces.median) / 1000
        every = min(60.0, max(5.0, math.ceil(spent_s / DUTY)))
        out.append(Suggested("see", "every_s", float(every), f"a frame costs {spent_s:.2f} s"))
        out.append(
            Suggested("see", "in_dialogue_s", float(max(2.5, every / 2)), "twice as often while one talks")
        )
    return out


def _speak(result: Result) -> list[Suggested]:
    out = []
    if (threads := _threads(result, "first clause", "speak")) is not None:
        out.append(threads)
    lean = result.machine.memory_mb < SMALL_MB
    out.append(Suggested("speak", "lean", lean, f"{result.machine.memory_mb} MB of memory"))
    return out


def _converse(result: Result) -> list[Suggested]:
    fitting, why = None, ""
    for model in ("qwen2.5-0.5b", "smollm2-135m"):
        warm = _one(result, model=model, figure="first token warm")
        written = _one(result, model=model, figure="generation")
        if warm is None or written is None:
            continue
        fast = warm.median <= FIRST_TOKEN_MS and written.median >= SPEECH_TOKENS_S
        memory = _one(result, model=model, figure="memory")
        small = memory is None or memory.median + SPARE_MB <= result.machine.memory_mb
        told = f"{model}: first token {warm.median:.0f} ms, {written.median:.0f} tok/s"
        why = f"{why}; {told}" if why else told
        if fast and small:
            fitting = model
            break
        fitting = fitting or "smollm2-135m"
    if fitting is None:
        return []
    out = [Suggested("converse", "model", fitting, why)]
    threads = _threads(result, "first token cold", "converse", model=fitting)
    out.append(threads or Suggested("converse", "threads", result.threads, "what it was measured with"))
    if result.machine.memory_mb < SMALL_MB:
        memory_why = f"{result.machine.memory_mb} MB of memory"
        out += [
            Suggested("converse", "context_tokens", 1024, memory_why),
            Suggested("converse", "history", 3, memory_why),
        ]
    return out


def _budgets(result: Result) -> list[Suggested]:
    """The budgets: what the parts take one after the other, and a quarter more."""
    chosen = next((s.value for s in _converse(result) if s.key == "model"), None)
    if chosen is None:
        return []
    warm = _one(result, model=chosen, figure="first token warm")
    written = _one(result, model=chosen, figure="generation")
    clause = _one(result, figure="first clause")
    if warm is None or written is None or clause is None:
        return []
    first = min(10.0, max(0.3, round(1.25 * warm.median / 1000, 2)))
    whole = 0.5 + (warm.median + clause.median) / 1000 + 6 / max(written.median, 0.1)
    voice = min(10.0, max(0.5, round(1.25 * whole, 1)))
    added = "half a second of silence, first token, six tokens, first clause spoken; and a quarter"
    return [
        Suggested("converse", "voice_to_voice_s", voice, added),
        Suggested("offload", "first_token_s", first, "the device's own first token, and a quarter"),
    ]
