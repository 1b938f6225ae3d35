"""Makes what the settings name: the engines, and the server before them.

cli imports it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

import os1_models
from os1_cloud.address import ServeError
from os1_cloud.auth import TokenFile
from os1_cloud.core import UNBOUNDED, Answerer
from os1_cloud.engines import Engine, Recognizer, Voice
from os1_cloud.engines.llama import Llama, Llava
from os1_cloud.engines.speech import Piper, Whisper
from os1_cloud.engines.upstream import Upstream
from os1_cloud.engines.worker import Recycle, Worker
from os1_cloud.events import Watcher
from os1_cloud.metrics import Metrics
from os1_cloud.places import Places
from os1_cloud.server import Server
from os1_cloud.settings import ModelSettings, Settings
from os1_cloud.speech import Ears, Mouth
from os1_cloud.tls import read_tls
from os1_cloud.wearers import WearerLimits

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Engines:
    """All that a server works with."""

    language: list[Engine] = field(default_factory=list)
    recognizer: Recognizer | None = None
    voice: Voice | None = None

    def all(self) -> Iterator[Any]:
        """Each of them."""
        yield from self.language
        yield from (e for e in (self.recognizer, self.voice) if e is not None)

    async def start(self) -> None:
        """Loads them, one after the other: each wants the whole disk.

        Raises:
            EngineError: one cannot be loaded.
        """
        for engine in self.all():
            if hasattr(engine, "start"):
                await engine.start()

    async def close(self) -> None:
        """Frees them."""
        for engine in self.all():
            engine.close()
        await asyncio.sleep(0.05)  # for the loop to reap its child processes

    def workers(self) -> list[tuple[str, int, int]]:
        """Name, bytes and restarts of each worker process."""
        found = [(e.name, getattr(e, "worker", None)) for e in self.all()]
        return [(n, w.memory_bytes, max(0, w.starts - 1)) for n, w in found if isinstance(w, Worker)]


def build(settings: Settings) -> Engines:
    """The engines, not loaded yet.

    Raises:
        ServeError: a setting makes no sense.
        os1_models.ModelError: a model is not there; the message says how to get it.
    """
    require_language(settings.models)
    return gather((model, engine(model)) for model in settings.models)


def require_language(models: Iterable[ModelSettings]) -> None:
    """Raises:
    ServeError: none of `models` is a language model.
    """
    if all(model.kind in ("whisper", "piper") for model in models):
        raise ServeError("no language model is named; give --model, or models of kind llama in the settings")


def gather(made: Iterable[tuple[ModelSettings, Any]]) -> Engines:
    """Engines, each where it belongs."""
    found = Engines()
    for model, each in made:
        match model.kind:
            case "whisper":
                found.recognizer = each
            case "piper":
                found.voice = each
            case _:
                found.language.append(each)
    return found


def engine(model: ModelSettings) -> Any:
    """The `Engine`, `Recognizer` or `Voice` of one model, not loaded yet.

    Raises:
        ServeError: a setting makes no sense.
        os1_models.ModelError: the model is not there; the message says how to get it.
    """
    recycle = Recycle(model.recycle_jobs, model.recycle_growth_mb * 1024**2)
    match model.kind:
        case "llama":
            layers, threads = model.gpu_layers, model.threads
            return Llama(model.name, _path(model), threads, model.context, gpu_layers=layers, recycle=recycle)
        case "vision":
            weights, projector = _vision_paths(model)
            return Llava(model.name, weights, projector, model.threads, model.context, recycle=recycle)
        case "whisper":
            return Whisper(model.name, _path(model), model.threads, recycle=recycle)
        case "piper":
            return Piper(model.name, _path(model), model.threads, recycle=recycle)
        case "upstream":
            return _upstream(model)


def _path(model: ModelSettings) -> Path:
    return os1_models.path(model.name) if model.path is None else model.path


def _vision_paths(model: ModelSettings) -> tuple[Path, Path]:
    if model.path is None:
        from os1_models import vision

        weights, projector = vision.files(model.name)
        return weights, projector
    if model.projector is None:
        raise ServeError(f"model {model.name}: a path of a vision model needs its projector")
    return model.path, model.projector


def _upstream(model: ModelSettings) -> Upstream:
    key = os.environ.get(model.key_env, "") if model.key_env else ""
    if model.key_env and not key:
        raise ServeError(f"model {model.name}: the environment has no {model.key_env}")
    try:
        return Upstream(
            model.name,
            model.url,
            model.model or model.name,
            key=key,
            context=model.context,
            slots=model.slots,
            vision=model.vision,
            command=model.command,
            start_s=model.start_s,
        )
    except ValueError as e:
        raise ServeError(f"model {model.name}: {e}") from e


@dataclass(frozen=True, slots=True)
class Served:
    """The server, and what of it can be changed while it runs."""

    server: Server
    answerer: Answerer
    tokens: TokenFile | None
    places: dict[str, Places]
    """Of each engine, by its name."""


def credentials(settings: Settings) -> tuple[TokenFile | None, grpc.ServerCredentials | None]:
    """Who may call, and the server's certificate.

    Raises:
        ServeError, BadTokens: a file that the settings name cannot be used.
    """
    tokens = TokenFile(settings.tokens, log.warning) if settings.tokens else None
    if settings.tls_cert is None or settings.tls_key is None:
        return tokens, None
    return tokens, read_tls(settings.tls_cert, settings.tls_key, settings.client_ca)


def served(
    settings: Settings,
    known: tuple[TokenFile | None, grpc.ServerCredentials | None],
    engines: Engines,
    metrics: Metrics,
    watchers: Sequence[Watcher],
) -> Served:
    """The server before `engines`, not started yet. Inside a running event loop.

    Args:
        settings: what the operator wants.
        known: its `credentials`.
        engines: from `build`.
        metrics, watchers: are told what happens.
    """
    tokens, tls = known
    answerer = Answerer(
        engines.language,
        queue=settings.queue,
        limits=wearer_limits(settings, settings),
        watchers=[metrics, *watchers],
    )
    metrics.watch(answerer, engines.workers)
    wearers = answerer.wearers
    ears = Ears(engines.recognizer, wearers) if engines.recognizer is not None else None
    mouth = Mouth(engines.voice, wearers) if engines.voice is not None else None
    server = Server(
        answerer,
        tokens,
        tls,
        certificates=settings.client_ca is not None,
        ears=ears,
        mouth=mouth,
        node=settings.node,
        reflection=settings.reflection,
        watchers=[metrics],
        balancer_s=settings.balancer_s,
    )
    places = dict(answerer.places)
    places |= {ears.recognizer.name: ears.places} if ears is not None else {}
    places |= {mouth.voice.name: mouth.places} if mouth is not None else {}
    return Served(server, answerer, tokens, places)


def wearer_limits(running: Settings, wanted: Settings) -> WearerLimits:
    """The bounds of one wearer; none where wearers are not known."""
    known = running.tokens is not None or running.client_ca is not None
    return WearerLimits(**wanted.limits.model_dump()) if known else UNBOUNDED
