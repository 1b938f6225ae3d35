"""``os1 review``: the wearer's memory in a browser, without a companion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import os1_models
from os1_edge.config import Config
from os1_edge.live.run import of_settings
from os1_edge.remember.choices import load_choices
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.store import Store
from os1_edge.review.api import Review
from os1_edge.see.image import decode_image
from os1_edge.web.glasses import BrowserGlasses
from os1_edge.web.pairing import Doors
from os1_edge.web.run import HERE
from os1_edge.web.server import make_app, served


async def review(
    config: Config, memory_file: Path, key: bytes, tell: Callable[[str], None], *, port: int
) -> None:
    """Serves the page of the memory on this machine only, until it is cancelled.

    Raises:
        BadMemory: it cannot be opened.
        os1_models.ModelMissing: the embedding model has not been pulled.
        PortTaken: another program has the port.
    """
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    memory = Memory(Store(memory_file, key, embedder=embedder.name), embedder)
    try:
        choices = await memory.run(load_choices, memory.store) or of_settings(config)
        log_file = memory_file.with_name("turns.jsonl")
        doors = Doors(lambda code: tell(f"the new code is {code}"))
        shown = Review.of(memory, embedder, memory_file, key, log_file, choices)
        app = make_app(None, BrowserGlasses(decode_image), doors, frozenset(HERE), shown)
        async with served(app, ["127.0.0.1"], port, None) as bound:
            tell(f"open http://localhost:{bound}/#{doors.code}")
            tell(f"the code to pair a browser is {doors.code}; Ctrl-C ends it")
            await asyncio.Event().wait()
    finally:
        await asyncio.to_thread(memory.close)
