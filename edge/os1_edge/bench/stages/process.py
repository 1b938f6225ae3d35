"""What is paid once or always: loading a model, its memory, the start of the whole, and the path that hears
while nothing is said."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import process_time

import numpy as np

import os1_models
from os1_edge.bench.stage import Reading, Setting, Stage, Unavailable, Work
from os1_edge.events import RATE, Samples
from os1_edge.framing import frames
from os1_edge.hear.capture import Capture
from os1_edge.hear.echo import canceller
from os1_edge.hear.turn import TurnDetector
from os1_edge.hear.vad import SileroVad

MODELS = (
    "silero-vad", "smart-turn-v3.2", "whisper-tiny.en", "whisper-base", "objects-ssd", "centerface", "ppocr",
    "minilm-l6", "qwen2.5-0.5b", "smollm2-135m", "piper-joe",
)  # fmt: skip
START_S = 120
"""Seconds after which a process that loads a model is given up."""
QUIET_S = 20
HISS = 0.002
"""Amplitude of the noise of a quiet room."""


@contextmanager
def _fresh(setting: Setting, *, what: str) -> Iterator[Work]:
    if what != "everything":
        os1_models.path(what)  # a missing one is told before a process is started
    command = [sys.executable, "-m", "os1_edge.bench.stages.fresh", what, str(setting.threads)]

    def work() -> Sequence[float]:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=START_S, check=False, start_new_session=True
        )
        if done.returncode:
            raise Unavailable((done.stderr.strip().splitlines() or ["it ended"])[-1])
        told = json.loads(done.stdout.splitlines()[-1])
        return told["ready_ms"], told["rss_mb"]

    yield work


def loaded(name: str) -> Stage:
    """One model in a process of its own."""
    of: dict[str, str | int | float] = {"model": name}
    return Stage(
        f"load {name}",
        "process",
        (
            Reading(f"load {name}", of=of | {"figure": "load"}),
            Reading(f"memory of {name}", "MB", of=of | {"figure": "memory"}),
        ),
        partial(_fresh, what=name),
        repeats=3,
        within_s=2.0,
        ready_s=1.0,
        warm=1,  # the file comes from the disk once
        quick=False,
    )


@contextmanager
def _listening(_: Setting) -> Iterator[Work]:
    vad, capture = SileroVad(os1_models.path("silero-vad")), Capture(echo=canceller())
    noise = np.random.default_rng(0).standard_normal(QUIET_S * RATE) * HISS
    quiet: Samples = noise.astype(np.float32)

    def work() -> Sequence[float]:
        vad.reset()
        turns, began = TurnDetector(), process_time()
        for frame in frames([quiet]):
            for heard in capture.step(frame):
                turns.step(heard, vad.probability(heard.samples))
        return (100 * (process_time() - began) / QUIET_S,)

    yield work


def stages() -> list[Stage]:
    """All of them."""
    start = (
        Reading("cold start, all models", of={"figure": "cold start"}),
        Reading("memory, all models", "MB", of={"figure": "memory of all"}),
    )
    return [
        Stage(
            "listening",
            "process",
            (Reading("listening to a quiet room, of a core", "%", of={"figure": "idle"}),),
            _listening,
        ),
        Stage(
            "cold start",
            "process",
            start,
            partial(_fresh, what="everything"),
            repeats=3,
            within_s=12.0,
            warm=0,
        ),
        *(loaded(name) for name in MODELS),
    ]
