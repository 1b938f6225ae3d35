"""Speech recognition beside whisper.cpp's defaults, on the same clips in one run.

    python -m os1_edge.bench.asr --shared-data DIR [--json]

Each clip is transcribed by whisper.cpp as pywhispercpp sets it up (*stock*), then by *ours* and, if asked
for, by another engine. The ratio is the median over clips of stock's time by ours. Other work on the machine
is in the wall times of both; the processor times hold less of it. Word error rates are over Whisper's
normalised English.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np

import os1_models
from os1_edge.device.sound import read
from os1_edge.events import RATE, Samples
from os1_edge.hear.asr import Whisper
from os1_edge.hear.files import WHOLE, transcript
from os1_edge.hear.recogniser import Recogniser, make_recogniser
from os1_edge.hear.vad import SileroVad
from os1_edge.native import let_threads_sleep
from os1_edge.replay.measure import word_errors

SHORT_S = 5.0
"""A short utterance: what is said to a companion."""

Transcribe = Callable[[Samples], str]


@dataclass(frozen=True, slots=True)
class Took:
    """One clip by one engine."""

    clip: str
    seconds: float
    engine: str
    wall_s: float
    cpu_s: float
    errors: int
    words: int


def stock(model: Path, threads: int) -> Transcribe:
    """whisper.cpp through pywhispercpp, with the defaults of both but for threads and printing."""
    let_threads_sleep()
    from pywhispercpp.model import Model

    whisper = Model(
        str(model),
        n_threads=threads,
        print_progress=False,
        print_realtime=False,
        print_timestamps=False,
        redirect_whispercpp_logs_to=None,
    )
    return lambda audio: " ".join(segment.text for segment in whisper.transcribe(audio))


def whole(recogniser: Recogniser, vad: SileroVad) -> Transcribe:
    """As a turn is transcribed; what is longer than a turn, as ``os1 transcribe`` does it."""

    def work(audio: Samples) -> str:
        if len(audio) <= WHOLE:
            return recogniser.text(audio)
        return " ".join(s.text for s in transcript([audio], recogniser, vad)[1])

    return work


def clips(folder: Path) -> list[dict[str, Any]]:
    """The rows of the shared speech set."""
    lines = (folder / "audio" / "manifest.jsonl").read_text("utf-8").splitlines()
    return [row for line in lines if (row := json.loads(line))["kind"] == "speech"]


def measure(
    rows: Sequence[dict[str, Any]],
    folder: Path,
    engines: dict[str, Transcribe],
    normalised: Callable[[str], str],
) -> Iterator[Took]:
    """Every clip by every engine, one after the other."""
    for row in rows:
        audio = np.ascontiguousarray(read(folder / "audio" / row["path"]))
        for name, transcribe in engines.items():
            wall, cpu = perf_counter(), process_time()
            text = transcribe(audio)
            wall, cpu = perf_counter() - wall, process_time() - cpu
            errors, words = word_errors(normalised(row["transcript"]), normalised(text))
            yield Took(row["id"], len(audio) / RATE, name, wall, cpu, errors, words)


def report(took: Sequence[Took]) -> dict[str, Any]:
    """What the command prints: seconds, ratios to stock, word error rates as shares."""
    out: dict[str, Any] = {}
    for kind, keep in (("short", lambda t: t.seconds <= SHORT_S), ("all", lambda _: True)):
        rows = [t for t in took if keep(t)]
        of_stock = {t.clip: t for t in rows if t.engine == "stock"}
        out[kind] = {"clips": len(of_stock)}
        for name in dict.fromkeys(t.engine for t in rows):
            own = [t for t in rows if t.engine == name]
            out[kind][name] = {
                "wer": round(sum(t.errors for t in own) / max(1, sum(t.words for t in own)), 4),
                "median_s": round(median(t.wall_s for t in own), 3),
                "p95_s": round(float(np.quantile([t.wall_s for t in own], 0.95)), 3),
                "median_cpu_s": round(median(t.cpu_s for t in own), 3),
                "p95_cpu_s": round(float(np.quantile([t.cpu_s for t in own], 0.95)), 3),
                "rtf": round(sum(t.wall_s for t in own) / sum(t.seconds for t in own), 4),
                "faster": round(median(of_stock[t.clip].wall_s / t.wall_s for t in own), 2),
                "faster_by_cpu": round(median(of_stock[t.clip].cpu_s / t.cpu_s for t in own), 2),
            }
    return out


def _print(made: dict[str, Any]) -> None:
    for kind, engines in made.items():
        click.echo(f"{kind}: {engines['clips']} clips")
        for name, of in engines.items():
            if name == "clips":
                continue
            click.echo(
                f"  {name:8} WER {100 * of['wer']:5.2f} %  {of['median_s']:.3f} s median, "
                f"{of['p95_s']:.3f} s p95 ({of['median_cpu_s']:.3f} and "
                f"{of['p95_cpu_s']:.3f} s of CPU), rtf {of['rtf']:.3f}; "
                f"{of['faster']:.1f} times as fast as stock ({of['faster_by_cpu']:.1f} by CPU)"
            )


@click.command()
@click.option("--shared-data", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--model", default="whisper-tiny.en", show_default=True)
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True)
@click.option("--also", type=click.Choice(["sherpa"]), help="Measure this engine too.")
@click.option(
    "--longest", type=float, default=60.0, show_default=True, help="Seconds; longer clips stay out."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def main(
    shared_data: Path, model: str, threads: int, also: str | None, longest: float, as_json: bool
) -> None:
    """Time and word errors of speech recognition, ours and whisper.cpp's defaults."""
    try:
        from whisper_normalizer.english import EnglishTextNormalizer
    except ModuleNotFoundError:
        raise click.ClickException(
            "whisper-normalizer is not installed; run: pip install 'os1[dev]'"
        ) from None
    vad = SileroVad(os1_models.path("silero-vad"))
    path = os1_models.path(model)
    engines = {"stock": stock(path, threads), "ours": whole(Whisper(path, threads=threads), vad)}
    if also:
        second = make_recogniser(also, os1_models.path("moonshine-base"), threads=threads)
        engines[also] = whole(second, vad)
    rows = [row for row in clips(shared_data) if row["seconds"] <= longest]
    for transcribe in engines.values():  # the first pass of a process reads weights and makes buffers
        transcribe(np.zeros(2 * RATE, np.float32) + 0.01)
    made = report(list(measure(rows, shared_data, engines, EnglishTextNormalizer())))
    if as_json:
        click.echo(json.dumps(made))
    else:
        _print(made)


if __name__ == "__main__":
    main()
