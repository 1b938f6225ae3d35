"""A whole companion on fakes that are shaped like the real models, living a scripted timeline.

``Companion`` is given what is said and shown and when; it lives it on the virtual clock (or the real one)
and keeps what an observer would see. Only the models are fakes: turn taking, prompts, memory and playback
are real.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from os1_edge import clock
from os1_edge.app import Os1, TurnTrace
from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config
from os1_edge.device.speaker import ReplaySink
from os1_edge.events import (
    RATE,
    AudioFrame,
    EyeFrame,
    Gaze,
    Image,
    PartialTranscript,
    Samples,
    SceneFrame,
    SeenFrame,
)
from os1_edge.framing import frames
from os1_edge.offload.engine import Message
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import RecallRules
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector
from os1_edge.see.gaze.scene_camera import SceneCamera
from os1_edge.see.gaze.track import EyeSample
from os1_edge.see.scene import SceneDescription
from os1_edge.speak.tts import Speech

KEY = bytes(range(32))
MONDAY = datetime(2026, 3, 2, 8)
VOICE_RATE = 8000


class Ears:
    """Speech is what is loud."""

    def reset(self) -> None: ...

    def probability(self, chunk: Samples) -> float:
        return min(1.0, float(np.abs(chunk).max()) * 2)


@dataclass
class Recogniser:
    """Hears the script: the loudness of an utterance says which line it is."""

    lines: list[str]
    broken_at: frozenset[int] = frozenset()

    heard: list[Samples] = field(default_factory=list)

    def text(self, audio: Samples, cancelled: Callable[[], bool] | None = None) -> str:
        self.heard.append(audio)
        number = round((float(np.abs(audio).max()) - 0.5) * 100)
        if number < 0:
            return ""  # a noise
        if number in self.broken_at:
            raise RuntimeError("the recogniser broke")
        return self.lines[number]


@dataclass
class EndOfTurn:
    """Says of the n-th pause that is asked about how likely it ends the turn."""

    verdicts: list[float]
    asked: int = 0

    def complete(self, audio: Samples) -> float:
        self.asked += 1
        return self.verdicts[min(self.asked, len(self.verdicts)) - 1]


@dataclass
class Eyes:
    """A frame's first pixel says which scene it is."""

    scenes: list[str]
    wait: Callable[[int], None] = lambda _number: None

    def look(self, image: Image, *_: object) -> SceneDescription:
        number = int(image[0, 0, 0])
        self.wait(number)
        if self.scenes[number] == "broken":
            raise RuntimeError("the picture broke the detector")
        usable = bool(self.scenes[number])
        return SceneDescription(self.scenes[number], (), 0, "bright", usable, "" if usable else "covered")

    def again(self, seen: SceneDescription, *_: object) -> SceneDescription:
        return seen


def picture(number: int, scene: str) -> Image:
    """A frame that says its number in its first pixel; another scene looks quite different, and no scene is
    a covered lens."""
    blocks = np.random.default_rng(zlib.crc32(scene.encode())).integers(0, 255, (6, 8, 3), np.uint8)
    shown = np.repeat(np.repeat(blocks, 40, axis=0), 40, axis=1)
    shown *= bool(scene)
    shown[0, 0] = number
    return shown


EYE_FPS = 30


class Tracker:
    """An eye frame says where it looks, on the picture of ``picture``."""

    scene = SceneCamera(320, 240)

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None

    def step(self, frame: NDArray[np.uint8], at_s: float) -> EyeSample:
        x, y = (int(value) for value in frame[0])
        rests, self._before = self._before == (x, y), (x, y)
        return EyeSample(at_s, None, False, Gaze(at_s, x, y, 0.9, 1.0), rests, (), None)


class Bag:
    """An embedder: bags of words, hashed; texts that share words are alike."""

    def one(self, text: str) -> Vector:
        vector = np.full(DIMENSIONS, 1e-3, np.float32)
        for word in text.lower().replace(".", " ").replace("?", " ").replace(",", " ").split():
            vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@dataclass
class Engine:
    """Writes the reply word by word, ``token_s`` seconds apart. ``reply`` may raise, or return an exception
    to be raised after the first word."""

    reply: Callable[[str], str | Exception] = lambda heard: "All right."
    token_s: float = 0.02
    name: str = "fake"
    prompts: list[list[Message]] = field(default_factory=list)

    primed: list[list[Message]] = field(default_factory=list)
    opened: list[list[Message]] = field(default_factory=list)

    async def prime(self, messages: Sequence[Message]) -> None:
        self.primed.append(list(messages))

    async def open(self, messages: Sequence[Message]) -> float:
        self.opened.append(list(messages))
        return 1.0

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        self.prompts.append(list(messages))
        answer = self.reply(messages[-1].text.rsplit("The wearer says: ", 1)[-1])
        words = ["Well"] if isinstance(answer, Exception) else answer.split(" ")
        for i, word in enumerate(words[:max_tokens]):
            await asyncio.sleep(self.token_s)
            yield word if i == 0 else " " + word
        if isinstance(answer, Exception):
            raise answer

    def close(self) -> None: ...


@dataclass
class Voice:
    """Speaks 15 letters a second, as people do."""

    rate: int = VOICE_RATE
    letters_per_s: int = 15
    fails: Callable[[str], bool] = lambda clause: False
    said: list[str] = field(default_factory=list)

    rtf: float = 0.0

    def speak(self, clause: str) -> Speech:
        return Speech(self.say(clause), self.rate, None)

    def say(self, clause: str) -> Samples:
        if self.fails(clause):
            raise RuntimeError(f"cannot say {clause}")
        self.said.append(clause)
        return np.full(len(clause) * self.rate // self.letters_per_s, 0.3, np.float32)


class Ear(ReplaySink):
    """What the wearer hears: a sink that also keeps when there was sound."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.blocks: list[tuple[float, float]] = []
        self._samples: dict[float, Samples] = {}
        self._rate_now = VOICE_RATE

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        self._rate_now = rate
        super().begin(turn_id, revision, rate)

    def write(self, block: Samples, at_s: float) -> None:
        self.blocks.append((at_s, at_s + len(block) / self._rate_now))
        self._samples[at_s] = block
        super().write(block, at_s)

    def drop(self, from_s: float) -> None:
        self.blocks = [b for b in self.blocks if b[0] < from_s]
        super().drop(from_s)

    def played_at(self, at_s: float, length: int) -> Samples:
        """``length`` samples at 16 kHz of what sounds from a session second on."""
        end_s = at_s + length / RATE
        out = np.zeros(length, np.float32)
        for begin, end in reversed(self.blocks):
            if end < at_s:
                break
            if begin < end_s:
                times = at_s + np.arange(length) / RATE
                inside = (times >= begin) & (times < end)
                block = self._samples[begin]
                out[inside] = block[
                    ((times[inside] - begin) * self._rate_now).astype(int).clip(0, len(block) - 1)
                ]
        return out

    def sounds(self, from_s: float, to_s: float) -> float:
        """Seconds of sound between two session seconds."""
        return sum(max(0.0, min(end, to_s) - max(begin, from_s)) for begin, end in self.blocks)


@dataclass
class Fakes:
    """What ``Faculties`` is, without weights."""

    vad: Any
    end_of_turn: Any
    asr: Any
    eyes: Any
    memory: Memory
    llm: Any
    far: Any
    voice: Any
    faces: Any = None
    vision: Any = None


@dataclass
class Companion:
    """A timeline and what came of it."""

    folder: Path
    engine: Engine = field(default_factory=Engine)
    voice: Voice = field(default_factory=Voice)
    wait_for_eyes: Callable[[int], None] = lambda _number: None
    deaf_to: frozenset[int] = frozenset()
    config: Config = field(default_factory=Config)
    tail_s: float = 3.0
    end_of_turn: EndOfTurn | None = None
    recogniser_kind: type[Recogniser] = Recogniser
    server: Any = None
    """An offload server, as a language engine."""

    capture: dict[str, Any] = field(default_factory=dict)
    """Given to ``Os1`` as it is: echo, wake."""

    eyes: Any = None
    """Describes pictures, instead of ``Eyes``."""
    faces: Any = None
    vision: Any = None
    """A vision model, as a language engine."""

    _said: list[tuple[float, float, str]] = field(default_factory=list)
    _texts: dict[int, str] = field(default_factory=dict)
    _noise: list[tuple[float, float, float]] = field(default_factory=list)
    _gaps: list[tuple[float, float]] = field(default_factory=list)
    _acts: list[tuple[float, Callable[[Os1], object]]] = field(default_factory=list)
    _shown: list[tuple[float, str]] = field(default_factory=list)
    _gazes: list[tuple[float, float, int, int]] = field(default_factory=list)

    turns: list[TurnTrace] = field(default_factory=list)
    partials: list[PartialTranscript] = field(default_factory=list)
    saying: list[tuple[int, str, str]] = field(default_factory=list)
    """Turns answered before, what was heard, what is said so far."""
    described: list[tuple[float, str]] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    """(heard, reply) in the memory at the end."""
    places: list[tuple[str, str]] = field(default_factory=list)
    """(location, activity) of the contexts in the memory at the end."""
    profile: list[tuple[str, str]] = field(default_factory=list)
    events: int = 0
    ended_s: float = 0.0

    def say(self, at_s: float, text: str, seconds: float = 1.0) -> Companion:
        """The wearer speaks."""
        self._said.append((at_s, seconds, text))
        return self

    def recognised_as(self, texts: dict[int, str]) -> Companion:
        """What is recognised where line ``number`` is the newest in the sound."""
        self._texts = texts
        return self

    def noise(self, at_s: float, seconds: float, level: float) -> Companion:
        """Something that is no speech."""
        self._noise.append((at_s, seconds, level))
        return self

    def no_frames(self, from_s: float, to_s: float) -> Companion:
        """The microphone gives nothing; what was said meanwhile is lost."""
        self._gaps.append((from_s, to_s))
        return self

    def do(self, at_s: float, act: Callable[[Os1], object]) -> Companion:
        """Something is done to the companion: a button, a command, a look at it."""
        self._acts.append((at_s, act))
        return self

    def show(self, at_s: float, scene: str) -> Companion:
        """The scene camera takes a frame; no scene is a covered lens, "broken" breaks the detector."""
        self._shown.append((at_s, scene))
        return self

    def look(self, from_s: float, to_s: float, x: int, y: int) -> Companion:
        """The wearer's gaze rests on (x, y) of the picture; ``capture["gaze"]`` follows it (``Tracker``)."""
        self._gazes.append((from_s, to_s, x, y))
        return self

    def live(self, *, virtual: bool = True) -> Companion:
        """Lives the timeline to its end."""
        clock.run(self._live(), virtual=virtual)
        return self

    # What an observer sees.

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        self.described.append((frame.at_s, description.sentence))

    def partly_heard(self, partial: PartialTranscript) -> None:
        self.partials.append(partial)

    def being_said(self, trace: TurnTrace, clauses: Sequence[str]) -> None:
        self.saying.append((len(self.turns), trace.heard, " ".join(clauses)))

    def turn_answered(self, trace: TurnTrace) -> None:
        self.turns.append(trace)

    def forgot(self) -> None: ...

    def heard(self) -> list[str]:
        return [t.heard for t in self.turns if t.failed is None]

    def failed(self) -> list[tuple[str, str]]:
        return [(t.ended.turn_id, t.failed) for t in self.turns if t.failed is not None]

    def told(self) -> list[dict[str, Any]]:
        """Everything about the turns but wall durations."""
        return [
            {
                "id": t.ended.turn_id,
                "span": (t.ended.start, t.ended.end, t.ended.decided),
                "heard": t.heard,
                "reply": t.reply,
                "route": t.route,
                "scene": t.scene,
                "hits": [(h.text, h.score) for h in t.hits],
                "spoken_s": round(t.spoken_s, 6),
                "file": t.spoken_file,
            }
            for t in self.turns
        ]

    async def _live(self) -> None:
        store = Store(self.folder / "memory.db", KEY)
        memory = Memory(store, Bag(), RecallRules())  # type: ignore[arg-type]
        lines = [self._texts.get(i, text) for i, (_, _, text) in enumerate(self._said)]
        self.recogniser = self.recogniser_kind(lines, self.deaf_to)
        ticking = Clock()
        fakes = Fakes(
            Ears(),
            self.end_of_turn,
            self.recogniser,
            self.eyes or Eyes([scene for _, scene in self._shown], self.wait_for_eyes),
            memory,
            self.engine,
            self.server,
            self.voice,
            self.faces,
            self.vision,
        )
        self.ear = Ear(self.folder / "replies")
        os1 = Os1(
            self.config,
            fakes,
            ticking,
            Calendar(MONDAY),
            self.ear,
            self,
            **self.capture,  # type: ignore[arg-type]
        )
        ticking.restart()
        try:
            acts = [asyncio.create_task(self._act(ticking, at_s, act, os1)) for at_s, act in self._acts]
            await os1.run(self._microphone(ticking), self._camera(ticking), self._eye(ticking))
            await asyncio.gather(*acts)
            self.ended_s = ticking.now()
            self.kept = store._rows("SELECT heard, reply FROM turns ORDER BY id")
            self.places = store._rows("SELECT DISTINCT location, activity FROM contexts ORDER BY 1")
            self.profile = [(e.text, e.source_turn) for e in store.profile()]
            self.events = len(await memory.events())
        finally:
            memory.close()

    async def _act(self, ticking: Clock, at_s: float, act: Callable[[Os1], object], os1: Os1) -> None:
        await ticking.sleep_until(at_s)
        act(os1)

    async def _microphone(self, ticking: Clock) -> AsyncIterator[AudioFrame]:
        ends = [at + seconds for at, seconds, _ in self._said]
        ends += [at for at, _ in self._shown]
        ends += [at + seconds for at, seconds, _ in self._noise] + [at for at, _ in self._acts]
        sound = np.zeros(round((max(ends, default=0.0) + self.tail_s) * RATE), np.float32)
        for at, seconds, level in self._noise:
            sound[round(at * RATE) : round((at + seconds) * RATE)] = level
        for i, (at, seconds, _) in enumerate(self._said):
            sound[round(at * RATE) : round((at + seconds) * RATE)] = 0.5 + i / 100
        for frame in frames([sound]):
            at = (frame.start + len(frame.samples)) / RATE
            await ticking.sleep_until(at)
            if not any(begin <= at < end for begin, end in self._gaps):
                yield frame

    async def _eye(self, ticking: Clock) -> AsyncIterator[EyeFrame]:
        for from_s, to_s, x, y in sorted(self._gazes):
            for i in range(round((to_s - from_s) * EYE_FPS)):
                at_s = from_s + i / EYE_FPS
                await ticking.sleep_until(at_s)
                yield EyeFrame(at_s, "eye", np.array([[x, y]], np.uint8))

    async def _camera(self, ticking: Clock) -> AsyncIterator[SceneFrame]:
        for i, (at, scene) in enumerate(self._shown):
            await ticking.sleep_until(at)
            yield SceneFrame(at, f"frame-{i}", picture(i, scene))
