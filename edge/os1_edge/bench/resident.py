"""Resident memory of the models of a profile, loaded one after the other and each used once.

    os1 bench resident [--profile wear4100] [--most 450] [--json]

In a process of its own: what another command had loaded would count. The last line is what remains once free
memory has been given back, as a running companion does after loading.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import os1_models
from os1_edge.config import Config, Profile, with_profile
from os1_edge.events import RATE
from os1_edge.native import give_back, loading


def resident_mb() -> float:
    """Resident memory of this process in megabytes, after what is free has been given back."""
    gc.collect()
    give_back()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096 / 1e6


def measure(config: Config) -> Iterator[tuple[str, float]]:
    """(what was loaded and used last, MB with it), in the order of a turn.

    Raises:
        os1_models.ModelMissing: a model has not been pulled.
    """
    kept: list[object] = []
    yield "Python", resident_mb()
    for name, (load, use) in _PARTS.items():
        with loading():
            part = load(config)
        use(part)
        kept.append(part)
        yield name, resident_mb()


def _vad(config: Config) -> Any:
    from os1_edge.hear.vad import SileroVad

    return SileroVad(os1_models.path("silero-vad"))


def _end_of_turn(config: Config) -> Any:
    from os1_edge.hear.endpoint import SmartTurn

    return SmartTurn(os1_models.path("smart-turn-v3.2"))


def _recogniser(config: Config) -> Any:
    from os1_edge.hear.recogniser import make_recogniser

    hear = config.hear
    return make_recogniser(hear.engine, os1_models.path(hear.asr_model), hear.language, hear.threads)


def _voice(config: Config) -> Any:
    from os1_edge.speak.tts import Piper

    speak = config.speak
    return Piper(os1_models.path(speak.voice), speak.speed, threads=speak.threads, lean=speak.lean)


def _language(config: Config) -> Any:
    from os1_edge.offload.local import LocalLlama

    converse = config.converse
    return LocalLlama(os1_models.path(converse.model), converse.threads, converse.context_tokens)


def _say(llm: Any) -> None:
    from os1_edge.offload.engine import Message

    async def say() -> None:
        async for _ in llm.stream([Message("user", "Say hello.")], 20):
            pass

    asyncio.run(say())


_PARTS: dict[str, tuple[Callable[[Config], Any], Callable[[Any], object]]] = {
    "voice activity": (_vad, lambda vad: vad.probability(np.zeros(512, np.float32))),
    "end of turn": (_end_of_turn, lambda end: end.complete(_noise(3.0))),
    "recognition": (_recogniser, lambda ears: ears.text(_noise(5.0), lambda: False)),
    "voice": (_voice, lambda voice: voice.speak("Hello there, how are you today?")),
    "language model": (_language, _say),
}
"""How each is loaded, and used once."""


def _noise(seconds: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.random.default_rng(0).normal(0, 0.01, round(seconds * RATE)).astype(np.float32)


@click.command("resident")
@click.option(
    "--profile", type=click.Choice(["wear4100", "phone", "laptop"]), default="wear4100", show_default=True
)
@click.option("--most", type=float, help="MB above which the exit code is 1.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def main(profile: Profile, most: float | None, as_json: bool) -> None:
    """Resident memory of the models of a profile: detectors, recognition, voice, language model."""
    config = with_profile(Config(profile=profile))
    found = dict(measure(config))
    if as_json:
        click.echo(json.dumps({name: round(mb, 1) for name, mb in found.items()}))
    else:
        for name, mb in found.items():
            click.echo(f"{name:>15}  {mb:6.1f} MB")
    total = list(found.values())[-1]
    if most is not None and total > most:
        click.echo(f"os1: {total:.0f} MB are more than {most:.0f}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
