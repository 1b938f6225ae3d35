"""The deployment that is measured: words at a pace, and a memory for whose prompts it has read."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from ray import serve
from ray.serve.config import ProxyLocation

from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.engines.scripted import Scripted
from os1_cloud.ray.deploy import APP, bind, options
from os1_cloud.ray.replica import LanguageReplica
from os1_cloud.settings import ModelSettings

NAME = "scripted"
SESSIONS = 32
"""Kept prompts, as many as a llama worker has."""
READ = 10
"""Tokens of a prompt."""


class Remembering(Scripted):
    """Says how much of a prompt it has read before, as an engine with a prompt cache does, and goes on
    counting behind a prefix."""

    def __init__(self, first_s: float, token_s: float, slots: int, stamped: bool = False) -> None:
        """See `Scripted`."""
        super().__init__(first_s, token_s, slots, NAME, stamped=stamped)
        self._counts = not stamped
        self.ended = 0.0
        """When it stopped last: seconds of the machine's clock, the same in all its processes."""
        self._known: OrderedDict[str, None] = OrderedDict()  # bounded by SESSIONS

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """See `Engine.generate`."""
        cached = READ if prompt.session in self._known else 0
        self._known.pop(prompt.session, None)
        if prompt.session:
            self._known[prompt.session] = None
            while len(self._known) > SESSIONS:
                self._known.popitem(last=False)
        number = prompt.prefix.count(" ")
        try:
            async with aclosing(super().generate(prompt)) as parts:
                async for part in parts:
                    if isinstance(part, Finished):
                        yield replace(part, cached_tokens=cached)
                        continue
                    yield Piece(f"{number} ") if self._counts else part
                    number += 1
        finally:
            self.ended = time.monotonic()


class Watched(LanguageReplica):
    """A replica that tells what it does."""

    _engine: Remembering

    async def state(self) -> dict[str, Any]:
        """Its process, the answers at work, the words written so far, and when the last answer ended."""
        engine = self._engine
        told = {"pid": os.getpid(), "at_work": engine.at_work, "written": engine.written}
        return told | {"ended": engine.ended}


def model(replicas: int, slots: int, cpus: float = 0.5, **more: Any) -> ModelSettings:
    """Its settings, as an operator would write them."""
    table = {"min": replicas, "max": replicas, "cpus": cpus, **more}
    return ModelSettings.model_validate(
        {"kind": "upstream", "name": NAME, "url": "http://unused", "slots": slots, "replicas": table}
    )


def run(
    settings: ModelSettings, first_s: float, token_s: float, *, stamped: bool = False, **told: Any
) -> None:
    """Deploys it, or replaces what is deployed, and waits until it answers.

    Args:
        settings: from `model`.
        first_s, token_s, stamped: see `Scripted`.
        told: more options for Serve.
    """
    serve.start(proxy_location=ProxyLocation.Disabled)
    make = partial(Remembering, first_s, token_s, settings.slots, stamped)
    app = bind(Watched, NAME, make, options(settings, settings.slots) | told)
    serve.run(app, name=APP + NAME, route_prefix=None)
