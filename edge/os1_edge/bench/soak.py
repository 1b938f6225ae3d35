"""Days of wearing in minutes: does anything grow?

    python -m os1_edge.bench.soak --hours 24            on the virtual clock, as fast as the machine can
    python -m os1_edge.bench.soak --minutes 20 --realtime

The whole companion lives a day: real sound through the real echo canceller, voice detector, end-of-turn
model, turn taking, memory, night shift and playback. Only the big models are stand-ins: recognition, the
language model, the voice, the eyes and the embedder. The wearer speaks by day, in bursts, sometimes over a
reply; sleeps from 23 to 7; is muted and asks it to look away now and then.

Ends with code 1 where resident memory has grown by more than 5 % since the first quarter, or anything that
holds many things holds more than it may.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from typing import Any

import click
import numpy as np
import soundfile

import os1_models
from os1_edge import clock
from os1_edge.app import Os1, TurnTrace, front_end
from os1_edge.bench.memory_life import Hashed
from os1_edge.bench.resident import resident_mb
from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config
from os1_edge.events import CHUNK, RATE, AudioFrame, PartialTranscript, Samples, SceneFrame, SeenFrame
from os1_edge.hear.endpoint import SmartTurn
from os1_edge.hear.vad import SileroVad
from os1_edge.live.record import Watched
from os1_edge.remember.cluster import LONGEST_RUN
from os1_edge.remember.memory import Memory
from os1_edge.remember.store import Store
from os1_edge.see.scene import SceneDescription
from os1_edge.speak.tts import Speech

SPEECH = Path(__file__).parents[1] / "demo" / "morning" / "mic"

MONDAY = datetime(2026, 3, 2, 9)
AWAKE = range(7, 23)
FRAME_S = 5.0

GROWTH = 0.05
"""Share by which resident memory may grow after the first quarter."""

MOST = 1024
"""Things that one list, dict or queue without a bound of its own may hold; the largest by design holds a few
hundred (the log of turns that a page is shown has 20, a queue of sound 64)."""

OWN = {"timeline._run._run": LONGEST_RUN}
"""Bounds that stand in the runtime, by the end of the name."""

_LINES = (
    "I put the spare key under the blue pot.", "I have to finish the report before Friday.",
    "Where did I leave the camera?", "Anna gave me a book about birds.", "I like green tea.",
    "What did Anna give me?", "Remind me to call Ben at five.", "I am worried about the exam.",
)  # fmt: skip
_REPLY = "That is good to know, and I will think of it for the rest of the day."
_SCENES = ("A desk with a laptop.", "A kitchen with a kettle.", "A street with trees.", "A shelf with books.")


class Ears:
    """Recognition: another line each time, after the time that it takes."""

    def __init__(self) -> None:
        self._turn = 0

    def text(self, audio: Samples, cancelled: Callable[[], bool] | None = None) -> str:
        """See ``Recogniser``."""
        self._turn += 1
        return _LINES[self._turn % len(_LINES)]


class Eyes:
    """The scene: by the picture's brightness."""

    def look(self, image: Any, *_: object) -> SceneDescription:
        """See ``SceneDescriber``."""
        return SceneDescription(_SCENES[int(image[0, 0, 0]) % len(_SCENES)], (), 0, "bright", True, "")

    def again(self, seen: SceneDescription, *_: object) -> SceneDescription:
        """See ``SceneDescriber``."""
        return seen


class Engine:
    """A language model of 40 words a second."""

    name = "stand-in"

    async def prime(self, messages: object) -> None:
        """See ``LanguageEngine``."""

    async def stream(self, messages: object, max_tokens: int, **_: object) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine``."""
        for word in _REPLY.split():
            await asyncio.sleep(0.025)
            yield f" {word}"

    def close(self) -> None:
        """See ``LanguageEngine``."""


class Voice:
    """15 letters a second of a tone."""

    rate, rtf = 16_000, 0.1

    def speak(self, clause: str) -> Speech:
        """See ``Piper``."""
        return Speech(np.full(len(clause) * self.rate // 15, 0.05, np.float32), self.rate, None)


@dataclass
class Standins:
    """What ``Faculties`` is."""

    vad: Any
    end_of_turn: Any
    memory: Memory
    asr: Any = field(default_factory=Ears)
    eyes: Any = field(default_factory=Eyes)
    llm: Any = field(default_factory=Engine)
    far: Any = None
    voice: Any = field(default_factory=Voice)
    faces: Any = None
    vision: Any = None


class Mouth:
    """``Sink`` that takes sound and forgets it."""

    latency_s = 0.05

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        """See ``Sink``."""

    def write(self, block: Samples, at_s: float) -> None:
        """See ``Sink``."""

    def drop(self, from_s: float) -> None:
        """See ``Sink``."""

    def end(self) -> None:
        """See ``Sink``."""


class Count(Watched):
    """Counts what a page would be told."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = self.failed = self.cut = self.frames = self.partials = 0

    def turn_answered(self, trace: TurnTrace) -> None:
        """See ``Observer``."""
        super().turn_answered(trace)
        self.turns += 1
        self.failed += trace.failed is not None
        self.cut += trace.interrupted

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        """See ``Observer``."""
        self.frames += 1

    def partly_heard(self, partial: PartialTranscript) -> None:
        """See ``Observer``."""
        self.partials += 1


@dataclass
class Soaked:
    """What came of it."""

    hours: float
    wall_s: float
    turns: int
    failed: int
    interrupted: int
    frames: int
    memories: int
    rss_first_mb: float
    """After the first quarter."""
    rss_last_mb: float
    growth_percent: float
    held: dict[str, int]
    """What holds more than 20 things at the end."""
    over: dict[str, str]
    """What held more than it may, at any look."""


def sizes(root: object) -> dict[str, tuple[int, int]]:
    """Length and bound of all queues, lists, deques, dicts and sets that hang on ``root`` in the runtime."""
    found: dict[str, tuple[int, int]] = {}
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [("os1", root)]
    leaves = (ModuleType, FunctionType, type, str, bytes, np.ndarray)
    while todo:
        name, thing = todo.pop()
        if id(thing) in seen or isinstance(thing, leaves):
            continue
        seen.add(id(thing))
        if isinstance(thing, asyncio.Queue):
            found[name] = thing.qsize(), thing.maxsize or MOST
        elif isinstance(thing, deque):
            found[name] = len(thing), MOST if thing.maxlen is None else thing.maxlen
        elif isinstance(thing, list | dict | set):
            found[name] = len(thing), next((most for end, most in OWN.items() if name.endswith(end)), MOST)
        if type(thing).__module__.startswith("os1_edge"):
            slots = [s for c in type(thing).__mro__ for s in getattr(c, "__slots__", ())]
            members = dict(getattr(thing, "__dict__", {})) | {s: getattr(thing, s, None) for s in slots}
            todo += [(f"{name}.{key}", value) for key, value in members.items()]
    return found


Spoken = tuple[float, Samples]
"""Second and sound."""


def _utterances(
    hours: float, chance: random.Random, sounds: list[Samples]
) -> Iterator[tuple[float, Samples]]:
    """Bursts of talk by day, a word in the night."""
    at = 2.0
    while at < hours * 3600 - 30:
        awake = int(MONDAY.hour + at / 3600) % 24 in AWAKE
        for _ in range(chance.randint(2, 6) if awake else 1):
            sound = chance.choice(sounds)
            yield at, sound
            # Now and then the next is said over the reply to this one.
            at += len(sound) / RATE + chance.choice((1.6, 6.0, 8.0, 15.0))
        at += chance.expovariate(1 / (120.0 if awake else 3600.0))


async def _microphone(ticking: Clock, hours: float, plan: Iterator[Spoken]) -> AsyncIterator[AudioFrame]:
    hiss = np.random.default_rng(0).normal(0, 1e-3, 64 * CHUNK).astype(np.float32)
    upcoming = next(plan, None)
    for n in range(int(hours * 3600 * RATE) // CHUNK):
        start = n * CHUNK
        at = (n % 64) * CHUNK
        block = hiss[at : at + CHUNK].copy()
        while upcoming is not None and upcoming[0] * RATE + len(upcoming[1]) <= start:
            upcoming = next(plan, None)
        if upcoming is not None and (first := start - round(upcoming[0] * RATE)) > -CHUNK:
            piece = upcoming[1][max(0, first) : max(0, first + CHUNK)]
            block[max(0, -first) : max(0, -first) + len(piece)] += piece[: CHUNK - max(0, -first)]
        await ticking.sleep_until((start + CHUNK) / RATE)
        yield AudioFrame(start, block)


async def _camera(ticking: Clock, hours: float) -> AsyncIterator[SceneFrame]:
    rng = np.random.default_rng(1)
    for n in range(int(hours * 3600 / FRAME_S)):
        await ticking.sleep_until(n * FRAME_S)
        image = np.repeat(np.repeat(rng.integers(0, 255, (6, 8, 3), np.uint8), 40, 0), 40, 1)
        yield SceneFrame(n * FRAME_S, "scene", image)


async def soak(folder: Path, hours: float, tell: Callable[[str], None], seed: int = 0) -> Soaked:
    """Lives ``hours`` on the running loop's clock.

    Raises:
        os1_models.ModelMissing: the voice detector or the end-of-turn model has not been pulled.
    """
    began, ticking, count, chance = time.monotonic(), Clock(), Count(), random.Random(seed)
    embedder: Any = Hashed()
    memory = Memory(Store(folder / "memory.db", bytes(32)), embedder)
    vad, end = SileroVad(os1_models.path("silero-vad")), SmartTurn(os1_models.path("smart-turn-v3.2"))
    standins: Any = Standins(vad, end, memory)
    config = Config()
    sounds = [soundfile.read(f, dtype="float32")[0] for f in sorted(SPEECH.glob("*.wav"))]
    os1 = Os1(
        config, standins, ticking, Calendar(MONDAY), Mouth(), count, *front_end(config, in_a_room=True),
        chance=random.Random(seed),
    )  # fmt: skip
    rss: list[float] = []
    over: dict[str, str] = {}

    async def look() -> None:
        while True:
            await asyncio.sleep(max(1.0, hours * 3600 / 16))
            rss.append(resident_mb())
            over.update({n: f"{size} of {most}" for n, (size, most) in sizes(os1).items() if size > most})
            tell(f"{ticking.now() / 3600:6.2f} h  {count.turns:5d} turns  {rss[-1]:6.1f} MB")

    async def fidget() -> None:
        while True:
            await asyncio.sleep(chance.uniform(1200, 5400))
            os1.mute()
            os1.looking.look_away()
            await asyncio.sleep(chance.uniform(10, 120))
            os1.unmute()
            os1.looking.look_back()

    aside = [asyncio.create_task(look()), asyncio.create_task(fidget())]
    try:
        plan = _utterances(hours, chance, sounds)
        await os1.run(_microphone(ticking, hours, plan), _camera(ticking, hours))
        rss.append(resident_mb())
        held = sizes(os1)
        (memories,) = memory.store.rows("SELECT count(*) FROM items")[0]
    finally:
        for task in aside:
            task.cancel()
        await asyncio.gather(*aside, return_exceptions=True)
        memory.close()
    first = rss[len(rss) // 4]
    return Soaked(
        hours, time.monotonic() - began, count.turns, count.failed, count.cut, count.frames, memories, first,
        rss[-1], 100 * (rss[-1] / first - 1), {n: s for n, (s, _) in held.items() if s > 20}, over,
    )  # fmt: skip


def faults(found: Soaked) -> list[str]:
    """What is wrong with it, in words."""
    wrong = [f"{name} held {what}" for name, what in found.over.items()]
    if found.growth_percent > 100 * GROWTH:
        wrong.append(f"resident memory grew by {found.growth_percent:.1f} %")
    if found.failed:
        wrong.append(f"{found.failed} turns failed")
    return wrong


@click.command()
@click.option("--hours", type=click.FloatRange(min=0.01), default=24.0, show_default=True)
@click.option("--minutes", type=click.FloatRange(min=0.1), help="Instead of --hours.")
@click.option("--realtime", is_flag=True, help="On the wall clock.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def main(hours: float, minutes: float | None, realtime: bool, as_json: bool) -> None:
    """Does a companion that is worn for days grow?"""
    hours = hours if minutes is None else minutes / 60

    def tell(line: str) -> None:
        click.echo(line, err=True)

    with TemporaryDirectory(prefix="os1-") as folder:
        found = clock.run(soak(Path(folder), hours, tell), virtual=not realtime)
    if as_json:
        click.echo(json.dumps(asdict(found)))
    else:
        for name, value in asdict(found).items():
            click.echo(f"{name:>16}  {round(value, 1) if isinstance(value, float) else value}")
    for fault in (wrong := faults(found)):
        click.echo(f"os1: {fault}", err=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
