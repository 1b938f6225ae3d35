"""Time to the first token of a reply on the device's own model: what was read stays, against reading it all.

    os1 bench prompt [--turns 12] [--json]

A conversation of scripted turns through the real memory, recall and prompt. Each turn is asked three times,
in changing order, so that one machine's moods fall on all alike:

- *along*: as in the runtime, the prompt was read for the words said so far (three quarters of them) and what
  is in view before the turn ended; then it ends, and what differs is read;
- *prefix*: what came before the turn was read (persona, examples, history); all of the turn is new;
- *whole*: nothing was read before.

Counted from the prompt's being there; recall is in it for none of them.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

import click
import numpy as np

import os1_models
from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.converse.reply import Asked, Replier
from os1_edge.offload.engine import Message
from os1_edge.offload.local import LocalLlama
from os1_edge.offload.router import Router
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import RecallRules
from os1_edge.remember.store import Store

TOLD = (
    "I parked the car on level three near the lift.", "My dentist appointment is on Thursday at ten.",
    "I am allergic to peanuts.", "My sister Anna lives in Bergen.",
    "I hid the spare key under the flower pot.",
    "I love jazz and long walks.", "My flight to Lisbon leaves on Friday at half past six.",
)  # fmt: skip
SAID = (
    "Where did I park the car?", "I had a long meeting this morning.", "When is my dentist appointment?",
    "I am going to bake a cake tonight.", "Where does my sister Anna live?", "It is raining again today.",
    "Where did I hide the spare key?", "I feel a bit tired this evening.", "When does my flight leave?",
    "What should I eat for dinner tonight?", "What music do I like?", "I will call my sister later on.",
)  # fmt: skip
IN_VIEW = "A cup and a book on a table."
NOW = datetime(2026, 3, 16, 12)
WAYS = ("along", "prefix", "whole")


@dataclass(slots=True)
class Times:
    """Seconds to the first token, by way, and the prompts' lengths in tokens."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    tokens: list[int] = field(default_factory=list)


async def first_token_s(replier: Replier, asked: Asked) -> float:
    """Seconds until the reply's first text."""
    began = perf_counter()
    async with aclosing(replier.stream(asked)) as stream:
        async for _ in stream:
            return perf_counter() - began
    return perf_counter() - began


async def ready(llama: LocalLlama, replier: Replier, asked: Asked, so_far: Asked, way: str) -> None:
    """Has the model hold what it would hold when the turn ends."""
    if way == "whole":
        await llama.forget()
        return
    await llama.prime([*asked.prompt[:-1], Message("user", "")])
    if way == "along":
        await replier.prime(so_far)


async def measured(llama: LocalLlama, memory: Memory, turns: int) -> Times:
    """Lives a conversation of ``turns`` turns."""
    for number, text in enumerate(TOLD):
        at = NOW - timedelta(days=len(TOLD) - number)
        await memory.keep_turn(f"told-{number}", 0, at, text, "I will remember that.", "")
    replier = Replier(Config(), Router(llama, None, Clock()), memory)
    times = Times()
    for number in range(turns):
        heard, at = SAID[number % len(SAID)], NOW + timedelta(minutes=number)
        words = heard.split()
        asked = await replier.prepare(heard, at, IN_VIEW)
        so_far = await replier.prepare(" ".join(words[: -(-len(words) * 3 // 4)]), at, IN_VIEW)
        if asked.plan.fixed is None:
            times.tokens.append(llama.length(asked.prompt))
            order = [WAYS[(number + i) % len(WAYS)] for i in range(len(WAYS))]
            for way in order:
                await ready(llama, replier, asked, so_far, way)
                times.seconds[way].append(await first_token_s(replier, asked))
        replier.keep(asked, "All right, I will keep that in mind for you.", whole=True)
    return times


def summed(times: Times) -> dict[str, object]:
    """Medians, 95th percentiles, and how many times faster than reading it all."""
    whole = times.seconds["whole"]
    return {
        "turns": len(whole),
        "prompt_tokens_p50": median(times.tokens),
        **{way: _quantiles(times.seconds[way]) for way in WAYS},
        **{
            f"{way}_times_faster": round(
                median(w / t for w, t in zip(whole, times.seconds[way], strict=True)), 1
            )
            for way in WAYS[:-1]
        },
    }


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{q}_s": round(float(np.percentile(seconds, q)), 3) for q in (50, 95)}


@click.command("prompt", help="Time to a reply's first token: what was read stays, against reading it all.")
@click.option("--model", default="qwen2.5-0.5b", show_default=True)
@click.option("--turns", default=len(SAID), show_default=True, type=click.IntRange(3, 100))
@click.option("--threads", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def prompt(model: str, turns: int, threads: int, as_json: bool) -> None:
    """``os1 bench prompt``."""
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    llama = LocalLlama(os1_models.path(model), threads)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", bytes(32), embedder=embedder.name)
        memory = Memory(store, embedder, RecallRules(3, 0.25, derived=False))
        try:
            found = summed(asyncio.run(measured(llama, memory, turns)))
        finally:
            memory.close()
            llama.close()
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        shown = "  ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        click.echo(f"{name:22}{shown}")


if __name__ == "__main__":
    prompt()
