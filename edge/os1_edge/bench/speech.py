"""How soon a reply is heard, and what speaking costs.

    python -m os1_edge.bench.speech --json

Beside it, on the same reply in the same run, turn about: Piper as its own package loads and calls it, the
whole reply at once. The language model is left out: the reply is there, so the times are the voice's alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import click
import numpy as np

import os1_models
from os1_edge.speak.clauses import ClauseSplitter, clauses_of
from os1_edge.speak.spoken import spoken
from os1_edge.speak.tts import NotAVoice, Piper

CLAUSE = "Your keys are right here."
"""Five words."""

REPLY = (
    "You have a dentist appointment with Dr. Lee at 14:30, so leave at two. It costs about $45.50, and the"
    " bus No. 12 stops right in front of the house. Shall I remind you on Jan. 5, 2026?"
)


@dataclass(frozen=True)
class Measured:
    """Medians. ``stock_`` is Piper by its own package."""

    rounds: int
    clause_ms: float
    """A five-word clause, wall time."""
    stock_clause_ms: float
    clause_cpu_ms: float
    """The same in processor time, which a busy machine changes less."""
    stock_clause_cpu_ms: float
    first_audio_ms: float
    """Until the first clause of ``REPLY`` can sound."""
    stock_first_audio_ms: float
    """Until the whole reply can sound."""
    first_audio_ratio: float
    rtf: float
    """Processor seconds for a second of speech."""
    splitter_us: float
    """Of ``ClauseSplitter.add``, for a token."""
    spoken_us: float
    """Of ``spoken``, for a clause."""
    load_s: float


def measure(model: Path, rounds: int, threads: int = 2) -> Measured:
    """Speaks ``rounds`` times with each."""
    from piper import PiperVoice

    began = perf_counter()
    ours = Piper(model, threads=threads)
    load_s = perf_counter() - began
    stock = PiperVoice.load(model)
    first = next(clauses_of(REPLY))

    def whole() -> float:
        chunks = [chunk.audio_float_array for chunk in stock.synthesize(REPLY)]
        return len(np.concatenate(chunks)) / ours.rate

    clause: list[tuple[float, float]] = []
    stock_clause: list[tuple[float, float]] = []
    early: list[tuple[float, float]] = []
    late: list[tuple[float, float]] = []
    shares: list[float] = []
    whole()
    for _ in range(rounds):
        clause.append(_timed(lambda: ours.speak(CLAUSE)))
        stock_clause.append(_timed(lambda: list(stock.synthesize(CLAUSE))))
        early.append(_timed(lambda: ours.speak(first)))
        late.append(_timed(whole))
        began = process_time()
        seconds = sum(len(samples) for samples in ours.stream(REPLY)) / ours.rate
        shares.append((process_time() - began) / seconds)
    return Measured(
        rounds=rounds,
        clause_ms=_wall(clause),
        stock_clause_ms=_wall(stock_clause),
        clause_cpu_ms=_cpu(clause),
        stock_clause_cpu_ms=_cpu(stock_clause),
        first_audio_ms=_wall(early),
        stock_first_audio_ms=_wall(late),
        first_audio_ratio=round(_wall(late) / _wall(early), 2),
        rtf=round(median(shares), 3),
        splitter_us=_splitter_us(),
        spoken_us=_spoken_us(),
        load_s=round(load_s, 2),
    )


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = perf_counter(), process_time()
    call()
    return perf_counter() - wall, process_time() - cpu


def _wall(times: list[tuple[float, float]]) -> float:
    return round(1000 * median(t[0] for t in times), 1)


def _cpu(times: list[tuple[float, float]]) -> float:
    return round(1000 * median(t[1] for t in times), 1)


def _splitter_us() -> float:
    tokens = REPLY.replace(" ", "| ").split("|")
    times = []
    for _ in range(50):
        splitter = ClauseSplitter()
        began = perf_counter()
        for token in tokens:
            splitter.add(token)
        times.append((perf_counter() - began) / len(tokens))
    return round(1e6 * median(times), 1)


def _spoken_us() -> float:
    clauses = list(clauses_of(REPLY))
    times = [_timed(lambda: [spoken(c) for c in clauses])[0] / len(clauses) for _ in range(50)]
    return round(1e6 * median(times), 1)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.option("--rounds", type=click.IntRange(1, 1000), default=15, show_default=True)
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True)
@click.option("--voice", default="piper-joe", show_default=True)
def main(as_json: bool, rounds: int, threads: int, voice: str) -> None:
    """The voice: time to the first sound, cost of a second of speech, beside Piper's own package."""
    try:
        found = measure(os1_models.path(voice), rounds, threads)
    except (NotAVoice, os1_models.ModelError) as e:
        raise click.ClickException(str(e)) from None
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    for name, value in asdict(found).items():
        click.echo(f"{name:22} {value}")


if __name__ == "__main__":
    main()
