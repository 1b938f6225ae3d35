"""The language model: reading a prompt, writing, and the first token of a real turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import os1_models
from os1_edge.bench.prompt import NOW, SAID, TOLD, first_token_s, ready
from os1_edge.bench.stage import Reading, Setting, Stage, Unavailable, Work
from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.converse.reply import Replier
from os1_edge.offload.engine import Message
from os1_edge.offload.local import LocalLlama
from os1_edge.offload.router import Router
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import RecallRules
from os1_edge.remember.store import Store

WRITTEN = 32
"""Tokens of an answer: a reply is one or two sentences."""
STORY = "Tell me a long story about the sea."


class Talk:
    """One loaded model with a memory of a few facts, and the loop that it is asked in."""

    def __init__(self, model: str, threads: int, folder: Path) -> None:
        self.llama = LocalLlama(os1_models.path(model), threads)
        embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
        store = Store(folder / "memory.db", bytes(32), embedder=embedder.name)
        self.memory = Memory(store, embedder, RecallRules(3, 0.25, derived=False))
        self._loop = asyncio.Runner()
        self.replier = self._loop.run(self._told())

    def close(self) -> None:
        """Frees everything."""
        self._loop.close()
        self.memory.close()
        self.llama.close()

    def sample(self) -> Sequence[float]:
        """Tokens a second read and written; first token in ms with the prefix read, and with nothing read."""
        return self._loop.run(self._sample())

    async def _told(self) -> Replier:
        for number, text in enumerate(TOLD):
            await self.memory.keep_turn(f"told-{number}", 0, NOW, text, "I will remember that.", "")
        return Replier(Config(), Router(self.llama, None, Clock()), self.memory)

    async def _sample(self) -> tuple[float, float, float, float]:
        heard = SAID[0]  # "Where did I park the car?": answered by the model, from a memory
        asked = await self.replier.prepare(heard, NOW, "A cup and a book on a table.")
        seconds = []
        for way in ("whole", "prefix"):  # in this order the prefix need not be read a second time
            await ready(self.llama, self.replier, asked, asked, way)
            seconds.append(await first_token_s(self.replier, asked))
        story = [*asked.prompt[:-1], Message("user", STORY)]
        texts, first = await _timed_pieces(self.llama.stream(story, WRITTEN))
        generation = max(1, len(texts) - 1) / max(1e-9, perf_counter() - first)
        prefill = self.llama.length(asked.prompt) / seconds[0]
        return prefill, generation, 1000 * seconds[1], 1000 * seconds[0]


async def _timed_pieces(stream: AsyncGenerator[str, None]) -> tuple[list[str], float]:
    """The pieces, and when the first came."""
    texts: list[str] = []
    first = perf_counter()
    async with aclosing(stream) as pieces:
        async for text in pieces:
            first = first if texts else perf_counter()
            texts.append(text)
    return texts, first


@contextmanager
def _model(setting: Setting, *, model: str, threads: int) -> Iterator[Work]:
    if threads > setting.threads:
        raise Unavailable(f"it keeps to {setting.threads} cores; see --threads")
    with TemporaryDirectory() as folder:
        talk = Talk(model, threads or setting.threads, Path(folder))
        try:
            yield talk.sample
        finally:
            talk.close()


def model(name: str, threads: int = 0, *, quick: bool = False) -> Stage:
    """One language model. ``threads`` 0: all that are measured with."""
    label = f"{name}, {threads} thread{'s' * (threads > 1)}" if threads else name
    of: dict[str, str | int | float] = {"model": name} | ({"threads": threads} if threads else {})
    return Stage(
        f"llm {label}",
        "converse",
        (
            Reading(f"{label}, prompt read", "tok/s", "higher", of | {"figure": "prefill"}),
            Reading(f"{label}, written", "tok/s", "higher", of | {"figure": "generation"}),
            Reading(f"{label}, first token, prefix read", of=of | {"figure": "first token warm"}),
            Reading(f"{label}, first token, nothing read", of=of | {"figure": "first token cold"}),
        ),
        partial(_model, model=name, threads=threads),
        repeats=5,
        within_s=8.0,
        ready_s=3.0,
        warm=0,  # the first sample begins with nothing read, like each
        quick=quick,
    )


def stages() -> list[Stage]:
    """All of them: the device's model, alone and by threads, the small device's, the server's."""
    return [
        model("qwen2.5-0.5b", quick=True),
        *(model("qwen2.5-0.5b", threads) for threads in (1, 2, 4)),
        model("smollm2-135m"),
        model("qwen2.5-1.5b"),
    ]
