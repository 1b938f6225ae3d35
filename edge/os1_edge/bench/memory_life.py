"""Years of a life through the real memory file: does a day in year ten cost what a day in year one did?

    python -m os1_edge.bench.memory_life --years 10 [--json FILE] [--fsync]

Each simulated day has 40 contexts and 60 turns; the night shift then works through all of it by plain rules.
The embedder is a stand-in (words hashed into 384 dimensions): embedding costs the same on any day. Without
``--fsync`` the file is not synced to the disk, as that measures the disk, not the memory.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np

from os1_edge.events import RealtimeContext
from os1_edge.remember.consolidate import Consolidator
from os1_edge.remember.memory import Memory
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector

BEGIN = datetime(2026, 1, 1)
CONTEXTS, TURNS = 40, 60

_DAY = (
    (7, "kitchen", "eating"),
    (9, "office", "working"),
    (12, "cafe", "having a drink"),
    (13, "office", "working"),
    (17, "street", "walking"),
    (18, "gym", "exercising"),
    (20, "kitchen", "cooking"),
    (21, "home", "reading"),
)
_PEOPLE = ("Anna", "Ben", "Clara", "David", "Eva", "Finn", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Leo")
_THINGS = (
    "the quarterly report", "the garden fence", "a blue bicycle", "the kitchen sink", "a birthday cake",
    "the old piano", "a train ticket", "the river path", "a new raincoat", "the spare key", "a chess set",
    "the library card", "a bag of flour", "the winter tyres", "a letter from the bank", "the camera",
    "a paper on birds", "the neighbour's cat",
)  # fmt: skip
_FOODS = ("tea", "coffee", "jazz", "rain", "olives", "chess", "mountains", "cinnamon", "trains", "opera")
_SAID = (
    "I put {thing} on level {number}.",
    "{person} gave me {thing} yesterday.",
    "I have to finish {thing} before Friday.",
    "Where did I leave {thing}?",
    "I talked with {person} about {thing} for {number} minutes.",
    "Remind me to call {person} about {thing}.",
    "I am worried about {thing}.",
    "{person} was so happy about {thing}!",
    "Good morning.",
    "Thank you.",
)
_FACTS = ("I like {food}.", "I do not like {food}.", "I drink tea every morning.", "I live in {town}.")
_TOWNS = ("Oslo", "Bergen", "Tromso")


class Hashed:
    """Bags of words in 384 dimensions."""

    def one(self, text: str) -> Vector:
        """See ``Embedder.one``."""
        return _hashed(text)

    def embed(self, texts: Sequence[str]) -> Vector:
        """See ``Embedder.embed``."""
        return np.array([_hashed(text) for text in texts], np.float32).reshape(-1, DIMENSIONS)


@lru_cache(maxsize=4096)  # as many texts as a week brings
def _hashed(text: str) -> Vector:
    vector = np.full(DIMENSIONS, 1e-3, np.float32)
    for word in text.lower().strip(".?!").replace(",", "").split():
        rng = np.random.default_rng(zlib.crc32(word.encode()))
        vector[rng.integers(0, DIMENSIONS, 24)] += rng.normal(size=24).astype(np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Year:
    """What the days of one year cost. Milliseconds, medians and 95th percentiles; a day in CPU time, so that
    other work of the machine does not count, a call in wall time, recall in both."""

    year: int
    memories: int
    file_mb: float
    keep_day_ms: float
    night_day_ms: float
    night_p95_ms: float
    keep_turn_p95_ms: float
    recall_p50_ms: float
    recall_p95_ms: float
    recall_work_p50_ms: float
    recall_work_p95_ms: float
    profile: int


def _said(rng: random.Random) -> str:
    if rng.random() < 0.03:
        fact = rng.choice(_FACTS)
        return fact.format(food=rng.choice(_FOODS), town=rng.choice(_TOWNS))
    return rng.choice(_SAID).format(
        person=rng.choice(_PEOPLE), thing=rng.choice(_THINGS), number=rng.randrange(2, 60)
    )


async def _day(memory: Memory, rng: random.Random, day: datetime) -> list[float]:
    """Lives one day; the seconds that each turn took to keep."""
    took = []
    for stay, (hour, place, activity) in enumerate(_DAY):
        start = day + timedelta(hours=hour)
        for i in range(CONTEXTS // len(_DAY)):
            time = start + timedelta(minutes=6 * i)
            view = f"A view of the {place} with {rng.choice(_THINGS)}."
            await memory.keep_context(RealtimeContext(time.timestamp(), view, "", place, activity), time)
        share = TURNS * (stay + 1) // len(_DAY) - TURNS * stay // len(_DAY)
        for i in range(share):
            began = perf_counter()
            turn, time = f"{day:%Y%m%d}-{stay}-{i}", start + timedelta(minutes=3 * i)
            await memory.keep_turn(turn, 0, time, _said(rng), "All right.", place)
            took.append(perf_counter() - began)
    return took


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1]


async def _year(memory: Memory, rng: random.Random, number: int, days: int) -> Year:
    shift = Consolidator(memory)
    keep, night, turns = [], [], []
    for day in range(days):
        date = BEGIN + timedelta(days=365 * number + day)
        began = process_time()
        turns += await _day(memory, rng, date)
        kept = process_time()
        await shift.finish(date + timedelta(hours=26))
        keep.append(kept - began)
        night.append(process_time() - kept)
    recall, work = [], []
    for _ in range(60):
        began, worked = perf_counter(), process_time()
        await memory.recall(f"What about {rng.choice(_THINGS)} and {rng.choice(_PEOPLE)}?", date, ())
        recall.append(perf_counter() - began)
        work.append(process_time() - worked)
    memories = int(memory.store.rows("SELECT count(*) FROM items")[0][0])
    return Year(
        year=number + 1,
        memories=memories,
        file_mb=round(memory.store.path.stat().st_size / 1e6, 1),
        keep_day_ms=_ms(median(keep)),
        night_day_ms=_ms(median(night)),
        night_p95_ms=_ms(_p95(night)),
        keep_turn_p95_ms=_ms(_p95(turns)),
        recall_p50_ms=_ms(median(recall)),
        recall_p95_ms=_ms(_p95(recall)),
        recall_work_p50_ms=_ms(median(work)),
        recall_work_p95_ms=_ms(_p95(work)),
        profile=len(memory.store.profile()),
    )


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 1)


async def lived(file: Path, years: int, days: int, fsync: bool, tell: Any = print) -> list[Year]:
    """Lives ``years`` of ``days`` each in a new memory at ``file``."""
    memory = Memory(Store(file, bytes(32)), Hashed())  # type: ignore[arg-type]
    if not fsync:
        memory.store.rows("PRAGMA synchronous = OFF")
    rng = random.Random(7)
    out = []
    try:
        for number in range(years):
            out.append(await _year(memory, rng, number, days))
            tell(f"year {number + 1}: {json.dumps(asdict(out[-1]))}")
    finally:
        memory.close()
    return out


@click.command()
@click.option("--years", default=10, show_default=True)
@click.option("--days", default=365, show_default=True, help="Days of a year.")
@click.option(
    "--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the numbers."
)
@click.option("--fsync", is_flag=True, help="Sync each transaction to the disk.")
def main(years: int, days: int, out: Path | None, fsync: bool) -> None:
    """Simulated years through the memory: file size, p95, and what a day's night shift costs."""
    with TemporaryDirectory() as folder:
        found = asyncio.run(lived(Path(folder) / "memory.db", years, days, fsync))
    first, last = found[0], found[-1]
    click.echo(
        f"a day's night shift: {first.night_day_ms} ms in year 1, {last.night_day_ms} ms in year {last.year} "
        f"({last.night_day_ms / first.night_day_ms:.2f} x); keeping a day: {first.keep_day_ms} -> "
        f"{last.keep_day_ms} ms; file {last.file_mb} MB, {last.memories} memories; "
        f"recall p95 {last.recall_p95_ms} ms, its work {first.recall_work_p95_ms} -> "
        f"{last.recall_work_p95_ms} ms"
    )
    if out is not None:
        out.write_text(json.dumps([asdict(year) for year in found], indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
