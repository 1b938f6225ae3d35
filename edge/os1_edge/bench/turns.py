"""End of turn: false cut-offs and delay, beside a rule of 0.5 s of silence, on the same recordings.

    python -m os1_edge.bench.turns --shared-data DIR [--json]
    python -m os1_edge.bench.turns FILE… [--json]

Each clip becomes a recording of one turn with pauses of 0.3-1.0 s inside its sentences (``joins``). A turn
that ends before the speech does is a false cut-off: in such a pause, or, counted apart, in one of the
speaker's own, which mostly lie between sentences. The delay is from the end of the speech to the decision on
it. Three decide over the same voice activity:

- *rule*: 0.5 s of silence;
- *ours*: pauses judged by Smart Turn, the bounds of a wearer not known yet;
- *learned*: the same, with what was learned from the speaker's recordings before.

A verdict counts from ``--verdict-ms`` after the pause was told, so that the count does not hang on how busy
the machine is; the time it took is printed beside it. Speakers are dealt into two halves, so that one sees
how much of a difference is the speakers'.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import click
import numpy as np

import os1_models
from os1_edge.bench.joins import Joined, joined
from os1_edge.device.sound import blocks
from os1_edge.events import RATE, AudioFrame, Samples, SpeechPaused, TurnEnded
from os1_edge.framing import frames
from os1_edge.hear.endpoint import SmartTurn
from os1_edge.hear.pauses import Pauses
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.hear.vad import SileroVad

VERDICT_MS = 100
"""Twice what the model and its features take on one x86 thread that has a core to itself."""

SILENCE_S = 0.5
"""The rule to beat."""

Verdicts = Callable[[SpeechPaused], float]


@dataclass(frozen=True, slots=True)
class Clip:
    """One recording of one speaker."""

    name: str
    speaker: str
    path: Path


@dataclass(slots=True)
class Tally:
    """What one way of deciding did."""

    cut_in_pauses: int = 0
    """False cut-offs in the pauses made."""
    cut_elsewhere: int = 0
    """False cut-offs in the speaker's own pauses."""
    delays_s: list[float] = field(default_factory=list)
    """One a recording."""

    @property
    def cuts(self) -> int:
        """All false cut-offs."""
        return self.cut_in_pauses + self.cut_elsewhere

    def add(self, recording: Joined, turns: Sequence[TurnEnded]) -> None:
        """Counts the turns of one recording."""
        for turn in turns:
            if turn.decided >= recording.end:
                self.delays_s.append((turn.decided - recording.end) / RATE)
                break
            if any(start <= turn.decided <= end for start, end in recording.pauses):
                self.cut_in_pauses += 1
            else:
                self.cut_elsewhere += 1

    def to_dict(self) -> dict[str, float]:
        """Counts and quantiles; seconds."""
        return {
            "cut_offs": self.cuts,
            "in_pauses": self.cut_in_pauses,
            "elsewhere": self.cut_elsewhere,
            "median_delay_s": round(median(self.delays_s), 3),
            "p95_delay_s": round(float(np.quantile(self.delays_s, 0.95)), 3),
        }


@dataclass(slots=True)
class Costs:
    """CPU seconds of one thread."""

    vad_s: float = 0.0
    sound_s: float = 0.0
    verdicts_s: list[float] = field(default_factory=list)


def decide(
    heard: Sequence[tuple[AudioFrame, float]], detector: TurnDetector, verdict: Verdicts | None, after: int
) -> list[TurnEnded]:
    """The turns that ``detector`` makes of frames and their speech probabilities. Each verdict is given
    ``after`` samples past the pause's decision, at the next frame."""
    turns: list[TurnEnded] = []
    waiting: SpeechPaused | None = None
    for frame, probability in heard:
        if waiting is not None and verdict is not None and frame.start >= waiting.decided + after:
            detector.judge(waiting.turn_id, waiting.revision, verdict(waiting))
            waiting = None
        event = detector.step(frame, probability)
        if isinstance(event, SpeechPaused):
            waiting = event
        elif isinstance(event, TurnEnded):
            turns.append(event)
    if (last := detector.close()) is not None:
        turns.append(last)
    return turns


def measure(
    clips: Sequence[Clip], vad: SileroVad, model: SmartTurn, takes: int, after: int
) -> tuple[dict[str, dict[str, Tally]], dict[str, int], Costs]:
    """({half: {way of deciding: tally}}, counts, costs) over ``takes`` recordings of each clip."""
    tallies = {h: {w: Tally() for w in ("rule", "ours", "learned")} for h in ("first", "second")}
    counts = {"recordings": 0, "pauses": 0}
    costs = Costs()
    for number, speaker in enumerate(sorted({c.speaker for c in clips})):
        learned = Pauses()
        half = tallies["first" if number % 2 == 0 else "second"]
        for recording in _recordings([c for c in clips if c.speaker == speaker], takes):
            counts["recordings"] += 1
            counts["pauses"] += len(recording.pauses)
            heard = _heard(recording.audio, vad, costs)
            verdict = _judged(model, costs)
            rule = TurnDetector(TurnRules(silence=round(SILENCE_S * RATE)))
            half["rule"].add(recording, decide(heard, rule, None, after))
            half["ours"].add(recording, decide(heard, TurnDetector(), verdict, after))
            half["learned"].add(recording, decide(heard, TurnDetector(pauses=learned), verdict, after))
    return tallies, counts, costs


def _recordings(clips: Sequence[Clip], takes: int) -> Iterator[Joined]:
    for clip in clips:
        sound = np.concatenate([*blocks(clip.path), np.zeros(0, np.float32)])
        for take in range(takes):
            if (made := joined(sound, zlib.crc32(f"{clip.name}:{take}".encode()))) is not None:
                yield made


def _heard(audio: Samples, vad: SileroVad, costs: Costs) -> list[tuple[AudioFrame, float]]:
    vad.reset()
    began = thread_time()
    heard = [(frame, vad.probability(frame.samples)) for frame in frames([audio])]
    costs.vad_s += thread_time() - began
    costs.sound_s += len(audio) / RATE
    return heard


def _judged(model: SmartTurn, costs: Costs) -> Verdicts:
    """The model's verdicts on one recording; asked twice about the same sound, it answers from memory."""
    known: dict[tuple[int, int], float] = {}

    def verdict(paused: SpeechPaused) -> float:
        key = (paused.audio_start, paused.decided)
        if key not in known:
            began = thread_time()
            known[key] = model.complete(paused.audio)
            costs.verdicts_s.append(thread_time() - began)
        return known[key]

    return verdict


def together(a: Tally, b: Tally) -> Tally:
    """Both."""
    return Tally(
        a.cut_in_pauses + b.cut_in_pauses, a.cut_elsewhere + b.cut_elsewhere, a.delays_s + b.delays_s
    )


def report(
    tallies: dict[str, dict[str, Tally]], counts: dict[str, int], costs: Costs, verdict_ms: float
) -> dict[str, Any]:
    """What the command prints."""
    both = {way: together(tallies["first"][way], tallies["second"][way]) for way in tallies["first"]}
    halves = {
        half: {way: tally.to_dict() for way, tally in ways.items()}
        for half, ways in {**tallies, "both": both}.items()
        if all(tally.delays_s for tally in ways.values())
    }
    return {
        **counts,
        "verdict_ms": verdict_ms,
        "halves": halves,
        "cut_offs_to_rule": {
            way: {
                "in_pauses": round(both[way].cut_in_pauses / max(1, both["rule"].cut_in_pauses), 3),
                "all": round(both[way].cuts / max(1, both["rule"].cuts), 3),
            }
            for way in ("ours", "learned")
        },
        "vad_core_share": round(costs.vad_s / costs.sound_s, 4),
        "verdict_cpu_ms": round(1000 * median(costs.verdicts_s), 1) if costs.verdicts_s else None,
    }


def shared_clips(data: Path) -> list[Clip]:
    """The speech clips of the shared data."""
    manifest = data / "audio" / "manifest.jsonl"
    if not manifest.is_file():
        raise click.ClickException(f"{manifest}: no such file; give the folder that holds audio/")
    rows = [json.loads(line) for line in manifest.read_text("utf-8").splitlines()]
    return [
        Clip(row["id"], row.get("speaker") or row["id"], manifest.parent / row["path"])
        for row in rows
        if row["kind"] == "speech"
    ]


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--shared-data", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--takes", type=click.IntRange(1, 20), default=1, show_default=True, help="Recordings a clip.")
@click.option("--verdict-ms", type=click.FloatRange(0, 2000), default=VERDICT_MS, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def turns(
    files: tuple[Path, ...], shared_data: Path | None, takes: int, verdict_ms: float, as_json: bool
) -> None:
    """Count false cut-offs and the delay at the end of a turn, beside a rule of 0.5 s of silence."""
    clips = [Clip(str(path), str(path), path) for path in files]
    clips += shared_clips(shared_data) if shared_data is not None else []
    if not clips:
        raise click.UsageError("give sound files of one speaker each, or --shared-data")
    vad, model = SileroVad(os1_models.path("silero-vad")), SmartTurn(os1_models.path("smart-turn-v3.2"))
    found = report(*measure(clips, vad, model, takes, math.ceil(verdict_ms * RATE / 1000)), verdict_ms)
    if not found["recordings"]:
        raise click.ClickException("none of the clips is speech long enough, with a gap between words")
    click.echo(json.dumps(found) if as_json else _table(found))


def _table(found: dict[str, Any]) -> str:
    lines = [f"{found['recordings']} recordings, {found['pauses']} pauses of 0.3-1.0 s inside sentences"]
    for half, ways in found["halves"].items():
        for way, row in ways.items():
            lines.append(
                f"{half:7} {way:8} {row['cut_offs']:4} cut off ({row['in_pauses']} in these pauses)"
                f"   delay {row['median_delay_s']:.2f} s, p95 {row['p95_delay_s']:.2f} s"
            )
    share, cpu = found["vad_core_share"], found["verdict_cpu_ms"]
    lines.append(f"voice activity {share:.1%} of a core; a verdict {cpu} ms of one, counted as ")
    lines[-1] += f"{found['verdict_ms']:.0f} ms"
    return "\n".join(lines)


if __name__ == "__main__":
    turns()
