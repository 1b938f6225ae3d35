"""The memory file under strain: killed at any moment, filled with ten years, searched for traces.

    python -m os1_edge.bench.memory_store kill --rounds 200
    python -m os1_edge.bench.memory_store years --years 10
    python -m os1_edge.bench.memory_store purge --years 2

`kill`: a writer is killed (SIGKILL) at a random moment, again and again on one file; after each kill all that
it had said to be kept is looked for, and the file is checked page by page.
`years`: 60 turns and 40 contexts a day with made-up words and vectors; size, processor time of a day (a busy
machine does not change it), and query times.
`purge`: a turn is forgotten for good, for which the file is written anew; how long questions wait meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import click
import numpy as np

from os1_edge.bench.memory_life import Hashed
from os1_edge.events import RealtimeContext
from os1_edge.remember import derived, forget
from os1_edge.remember.memory import Memory
from os1_edge.remember.repair import check
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store
from os1_edge.remember.timeline import Timeline
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo
from os1_edge.remember.vectors import Vector

KEY = bytes(range(32))
BEGIN = datetime(2026, 1, 1, 7)
TURNS_A_DAY, CONTEXTS_A_DAY = 60, 40
ROUNDS_A_FILE = 20
"""Kills before a new file is begun: every kill grows it, and it is read whole after each."""

PLACES = ("office", "kitchen", "gym", "park", "train", "shop", "library", "street")


@dataclass
class Kills:
    """What the kills did."""

    rounds: int = 0
    acknowledged: int = 0
    """Rows that the writer said were kept."""
    lost: int = 0
    """Of these, those that were not there after the kill."""
    back: int = 0
    """Rows that the writer said were forgotten, and that were there."""
    unsound: list[str] = field(default_factory=list)
    """Problems found in the file."""


@click.group()
def main() -> None:
    """The memory file under strain."""


@main.command()
@click.option("--rounds", type=click.IntRange(1), default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
def kill(rounds: int, seed: int) -> None:
    """Kill a writer at random moments; exit code 1 if anything committed was lost."""
    done = Kills()
    for begun in range(0, rounds, ROUNDS_A_FILE):
        with tempfile.TemporaryDirectory() as folder:
            count = min(ROUNDS_A_FILE, rounds - begun)
            batch = kill_rounds(Path(folder) / "memory.db", count, seed + begun)
        done.rounds += batch.rounds
        done.acknowledged += batch.acknowledged
        done.lost += batch.lost
        done.back += batch.back
        done.unsound += batch.unsound
    click.echo(json.dumps(asdict(done)))
    sys.exit(1 if done.lost or done.back or done.unsound else 0)


def kill_rounds(file: Path, rounds: int, seed: int) -> Kills:
    """Kills a writer of ``file`` again and again; what was kept before has to be there after every kill."""
    chance, done = random.Random(seed), Kills()
    kept: dict[str, str] = {}
    gone: set[str] = set()
    for number in range(rounds):
        for said in _killed_writer(file, chance, seed * 100_003 + number):
            what, name, text = said.split("\t")
            if what == "kept":
                kept[name] = text
                done.acknowledged += 1
            else:  # between "going" and "gone" it may be there or not
                kept.pop(name, None)
                gone.update([name] if what == "gone" else [])
        done.rounds += 1
        if not file.exists():
            continue
        done.unsound += check(file, KEY).problems
        store = Store(file, KEY)
        if undo(store) is not None:  # the kill came between a forgetting and its undo
            done.unsound += check(file, KEY).problems
        there = {row[0]: row[1] for row in store.rows("SELECT turn_id, heard FROM turns")}
        found = {row[0] for row in store.rows("SELECT ref_id FROM items WHERE kind = 'turn'")}
        ids = {row[0]: row[1] for row in store.rows("SELECT turn_id, id FROM turns")}
        store.close()
        done.lost += sum(there.get(name) != text or ids[name] not in found for name, text in kept.items())
        done.back += len(gone & there.keys())
    return done


def _killed_writer(file: Path, chance: random.Random, seed: int) -> list[str]:
    """Starts a writer and kills it; what it had said by then."""
    command = [sys.executable, "-m", "os1_edge.bench.memory_store", "write", str(file), str(seed)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    said: list[str] = []
    for _ in range(chance.randrange(60)):
        said.append(writer.stdout.readline())
    time.sleep(chance.random() * 0.05)
    os.kill(writer.pid, signal.SIGKILL)
    said += writer.stdout.readlines()
    writer.wait()
    return [line.rstrip("\n") for line in said if line.endswith("\n")]


@main.command(hidden=True)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("seed", type=int)
def write(file: Path, seed: int) -> None:
    """Write until killed, saying of each row that it is kept, forgotten, or back again, once it is."""
    chance = random.Random(seed)
    vectors = np.random.default_rng(seed)
    store = Store(file, KEY)
    number, mine = 0, []
    while True:
        number += 1
        name, text = f"{seed}-{number}", f"words {chance.random()} " * chance.randint(1, 200)
        now = BEGIN + timedelta(seconds=number)
        with store.transaction():
            row = store.add_turn(name, 0, now, text, "ok", "kitchen", unit(vectors))
            if number % 3 == 0:
                entry = ProfileEntry(0, "habit", f"The wearer says {name}.", 0.8, now, name)
                store.add_profile(entry, unit(vectors), (), [Source("turn", row, now, text)])
            if number % 5 == 0:
                context = store.add_context(RealtimeContext(0.0, text, "", "gym", "running"), now)
                event = StoredEvent(0, now, now, "gym", "running", f"ran {name}", "rule", 1)
                derived.add_event(store, event, [context], unit(vectors))
        print("kept", name, text, sep="\t", flush=True)
        mine.append((name, row, text))
        if number % 17 == 0:
            name, row, _ = mine.pop(chance.randrange(len(mine)))
            print("going", name, "", sep="\t", flush=True)
            forget.carry_out(store, forget.foresee(store, [("turn", row)]))
            print("gone", name, "", sep="\t", flush=True)
        if number % 11 == 0:
            name, row, text = chance.choice(mine)
            print("going", name, "", sep="\t", flush=True)
            window = Window(now, now + timedelta(hours=1))
            forget.carry_out(store, forget.foresee(store, [("turn", row)]), undo=window)
            undo(store)
            print("kept", name, text, sep="\t", flush=True)


def unit(chance: np.random.Generator) -> Vector:
    """A random direction."""
    vector = chance.normal(size=DIMENSIONS).astype(np.float32)
    unit_vector: Vector = vector / np.float32(np.linalg.norm(vector))
    return unit_vector


@main.command()
@click.option("--years", default=10.0, show_default=True)
@click.option("--file", type=click.Path(path_type=Path), help="Keep it here; default: nowhere.")
def years(years: float, file: Path | None) -> None:
    """Fill a memory with made-up days; print size, cost of a day and query times, a line a year."""
    with tempfile.TemporaryDirectory() as folder:
        path = file or Path(folder) / "memory.db"
        life = Life(path)
        for day in range(int(years * 365)):
            life.live(day)
            if (day + 1) % 365 == 0 or day + 1 == int(years * 365):
                click.echo(json.dumps(life.told(day + 1)))
        life.store.close()
        click.echo(json.dumps(opened_cost(path)))


class Life:
    """Days of a wearer who says 60 things and is seen 40 times, at a few places."""

    def __init__(self, file: Path) -> None:
        self.store = Store(file, KEY)
        self._file = file
        self._chance = np.random.default_rng(7)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self._words = [
            "".join(self._chance.choice(letters, self._chance.integers(3, 9))) for _ in range(8000)
        ]
        odds = 1 / np.arange(1, 8001) ** 0.9
        self._odds = odds / odds.sum()
        self._places: dict[str, Vector] = {}
        self._timeline = Timeline(self.store, self._place)
        self._turn_ms: list[float] = []
        self._day_ms: list[float] = []

    def _place(self, text: str) -> Vector:
        if text not in self._places and len(self._places) > 4096:
            self._places.clear()
        return self._places.setdefault(text, unit(self._chance))

    def sentence(self) -> str:
        """Sixteen words, the common ones often."""
        return " ".join(self._chance.choice(self._words, 16, p=self._odds))

    def live(self, day: int) -> None:
        """One day, a transaction for its turns and one for what is made of its contexts."""
        morning = BEGIN + timedelta(days=day)
        made = [(self.sentence(), unit(self._chance)) for _ in range(TURNS_A_DAY)]
        begun = time.thread_time()
        with self.store.transaction():
            for n, (text, vector) in enumerate(made):
                self.store.add_turn(
                    f"d{day}t{n}", 0, morning + timedelta(minutes=15 * n), text, "Noted.", "kitchen", vector,
                    session_id=f"d{day}s{n // 8}",
                )  # fmt: skip
        turned = time.thread_time()
        with self.store.transaction():
            for n in range(CONTEXTS_A_DAY):
                place = PLACES[(day + n // 5) % len(PLACES)]
                context = RealtimeContext(60.0 * n, f"A view of the {place}.", "", place, "busy")
                self._timeline.add(context, morning + timedelta(minutes=20 * n))
            self._timeline.close_stale(morning + timedelta(hours=20))
        done = time.thread_time()
        self._turn_ms.append((turned - begun) * 1e3 / TURNS_A_DAY)
        self._day_ms.append((done - turned) * 1e3)

    def told(self, days: int) -> dict[str, object]:
        """The state after so many days, and the costs since it was last asked for."""
        items = self.store.rows("SELECT count(*) FROM items")[0][0]
        told = {
            "days": days,
            "memories": items,
            "mb": round(self._file.stat().st_size / 1e6, 1),
            "turn_cpu_ms": round(float(np.median(self._turn_ms)), 2),
            "turns_a_cpu_second": round(1e3 / float(np.median(self._turn_ms))),
            "consolidation_cpu_ms_a_day": round(float(np.median(self._day_ms)), 1),
            **self._asked(),
        }
        self._turn_ms, self._day_ms = [], []
        return told

    def _asked(self) -> dict[str, float]:
        vectors = [unit(self._chance) for _ in range(40)]
        meaning = _timed([lambda v=v: self.store.nearest_turns(v, 10) for v in vectors])  # type: ignore[misc]
        return {"nearest_p50_ms": meaning[0], "nearest_p95_ms": meaning[1]}


@main.command()
@click.option("--years", default=2.0, show_default=True)
def purge(years: float) -> None:
    """Forget a turn for good after years; print how long that takes, and what questions take beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        life = Life(path)
        for day in range(int(years * 365)):
            life.live(day)
        life.store.close()
        click.echo(json.dumps(asyncio.run(_purged(Memory(Store(path, KEY), Hashed()), life))))  # type: ignore[arg-type]


async def _purged(memory: Memory, life: Life) -> dict[str, float]:
    async def ask() -> float:
        began = time.perf_counter()
        await memory.recall(life.sentence(), BEGIN + timedelta(days=3650), ())
        return (time.perf_counter() - began) * 1e3

    try:
        before = [await ask() for _ in range(50)]
        began = time.perf_counter()
        forgetting = asyncio.create_task(memory.forget_rows([("turn", 1)], undo_for_s=0))
        beside = [await ask()]
        while not forgetting.done():
            beside.append(await ask())
        return {
            "memories": memory.store.rows("SELECT count(*) FROM items")[0][0],
            "mb": round(memory.store.path.stat().st_size / 1e6, 1),
            "purge_s": round(time.perf_counter() - began, 1),
            "asked_meanwhile": len(beside),
            "recall_p50_ms_before": round(float(np.median(before)), 1),
            "recall_max_ms_before": round(max(before), 1),
            "recall_p50_ms_meanwhile": round(float(np.median(beside)), 1),
            "recall_max_ms_meanwhile": round(max(beside), 1),
        }
    finally:
        memory.close()


def _timed(work: list[Callable[[], object]]) -> tuple[float, float]:
    took = []
    for one in work:
        begun = time.perf_counter()
        one()
        took.append((time.perf_counter() - begun) * 1e3)
    return round(float(np.percentile(took, 50)), 1), round(float(np.percentile(took, 95)), 1)


def opened_cost(file: Path) -> dict[str, float]:
    """What an open store costs a fresh process after twenty searches: resident MB over the interpreter."""
    code = (
        "import sys, json; from pathlib import Path\n"
        "from os1_edge.bench import memory_store as m; import numpy as np\n"
        "before = m.rss_mb(); s = m.Store(Path(sys.argv[1]), m.KEY); c = np.random.default_rng(3)\n"
        "[s.nearest_turns(m.unit(c), 10) for _ in range(20)]\n"
        "print(json.dumps({'rss_over_interpreter_mb': round(m.rss_mb() - before, 1)}))"
    )
    out = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    return dict(json.loads(out.stdout))


def rss_mb() -> float:
    """Resident memory of this process."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
