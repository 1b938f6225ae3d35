"""The cluster as one front door knows it: which deployments there are, and how many replicas of each.

cli imports it. Nothing is scheduled here: `follow` only tells the front door's queue how many places it has.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Any, TypeVar

# Before Ray is imported. One event loop per process talks gRPC (grpc#25364), and answers come over gRPC from
# the replica itself, not by way of Ray's object store (measured: docs/decisions).
os.environ.setdefault("RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP", "0")
os.environ.setdefault("RAY_SERVE_USE_GRPC_BY_DEFAULT", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import DeploymentUnavailableError, RayServeException
from ray.serve.schema import ApplicationStatus, ApplicationStatusOverview

from os1_cloud.address import ServeError, parse_address
from os1_cloud.admission import Task, Why
from os1_cloud.build import Engines, gather, require_language
from os1_cloud.events import Record
from os1_cloud.places import Places
from os1_cloud.ray.deploy import APP, Kind, deploy, kind_of
from os1_cloud.ray.engine import Pressure, RayEngine, RayRecognizer, RayVoice
from os1_cloud.settings import ModelSettings, Settings

log = logging.getLogger(__name__)
READY_S = 300.0
"""For the first replica of a model to load it."""
TELL_S = 15.0
"""Between two lines of log about a model that is waited for."""
REACH_S = 3.0
"""For the cluster's head to take a connection."""
JOIN_S = 60.0
"""For Ray to join; of what is no cluster it makes nothing for minutes."""
FOLLOW_S = 1.0
"""Between two looks at how many replicas there are."""
LOOK_S = 3.0
"""For one look. Of a head that is lost Ray says nothing for a minute; then it ends this process."""
T = TypeVar("T")
AnyEngine = RayEngine | RayRecognizer | RayVoice
_KINDS: dict[Kind, type[AnyEngine]] = {
    "language": RayEngine,
    "recognizer": RayRecognizer,
    "voice": RayVoice,
}
MISSED: frozenset[str] = frozenset({"too_late", "queue_full", "expired"})
"""Outcomes that one more replica would have prevented. Not `engine_lost`: Serve replaces what was lost
unasked, and what is missing until then shows as these."""


def connect(address: str) -> None:
    """Joins the cluster by the node on this machine.

    Args:
        address: "auto" or HOST:PORT.

    Raises:
        ServeError: there is none, or it does not let this process in.
    """
    try:
        if address != "auto":
            head = parse_address(address)
            socket.create_connection((head.host, head.port), REACH_S).close()
        ray.init(address=address, namespace="os1", log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError, RayError) as e:
        raise _not_joined(address, " ".join(str(e).split())) from e


def _not_joined(address: str, why: str) -> ServeError:
    return ServeError(
        f"no Ray cluster can be joined at {address}: {why.removesuffix('.')}. A front door needs a Ray node "
        "on its own machine (ray start --address=HEAD:6379 --num-cpus=0), the cluster's release of Ray and "
        "of Python, and its token where it has one (RAY_AUTH_MODE=token and RAY_AUTH_TOKEN)"
    )


@dataclass(slots=True)
class Missed:
    """A watcher of core: budgets that were missed, by model, for the autoscaler."""

    text: int = 0
    """Refused on arrival, when no model was chosen yet."""
    pictures: int = 0
    by_model: dict[str, int] = field(default_factory=dict)

    def refused(self, task: Task, why: Why) -> None:
        """See `events.Watcher`."""
        if why in MISSED:
            if task == "caption":
                self.pictures += 1
            else:
                self.text += 1

    def ended(self, record: Record) -> None:
        """See `events.Watcher`."""
        if record.outcome in MISSED:
            self.by_model[record.model] = self.by_model.get(record.model, 0) + 1

    def resumed(self, result: str) -> None:
        """See `events.Watcher`."""

    def of(self, model: str, vision: bool) -> int:
        """Of one model, and of the questions refused that would have gone to it."""
        return self.by_model.get(model, 0) + (self.pictures if vision else self.text)


async def joined(settings: Settings) -> Pool:
    """The pool of an operator's settings, ready to answer.

    Raises:
        ServeError: there is no cluster, or a model has no replica.
    """
    require_language(settings.models)
    if not log.isEnabledFor(logging.INFO):
        logging.getLogger("ray.serve").setLevel(logging.WARNING)
    # That it cannot handle SIGTERM outside of the main thread: the server does.
    logging.getLogger("ray._private.worker").addFilter(lambda told: "SIGTERM" not in told.getMessage())
    try:
        async with asyncio.timeout(JOIN_S):
            await _aside(partial(connect, settings.ray))
    except TimeoutError:
        raise _not_joined(settings.ray, f"it says nothing for {JOIN_S:.0f} s") from None
    pool = Pool(settings.models)
    try:
        await pool.start()
    except (RayError, RayServeException) as e:
        raise ServeError(f"Ray Serve does not answer: {e}") from e
    return pool


class Pool:
    """The deployments of some models. Inside a running event loop."""

    def __init__(self, models: Sequence[ModelSettings]) -> None:
        """`models`: those that the front door offers."""
        self._models = tuple(models)
        self._front = f"{socket.gethostname()}-{os.getpid()}"
        self._following: asyncio.Task[None] | None = None
        self._looking: asyncio.Future[dict[str, int]] | None = None
        self.missed = Missed()
        self.engines: dict[str, AnyEngine] = {}

    async def start(self) -> None:
        """Deploys what is not there and waits for a replica of each model.

        Raises:
            ServeError: a model has none after `READY_S`, or after the time that its server may take.
        """
        await asyncio.to_thread(deploy, self._models)
        for model in self._models:
            handle = serve.get_app_handle(APP + model.name)
            facts = await _facts(handle, model.name, max(READY_S, model.start_s if model.command else 0.0))
            self.engines[model.name] = engine(model, handle, facts)
        with suppress(TimeoutError):  # one each until `follow` knows
            await self.look()

    async def look(self) -> None:
        """Counts the replicas.

        Raises:
            TimeoutError: the head says nothing; the next look waits for the same answer.
        """
        if self._looking is None or self._looking.done():
            self._looking = _aside(_running)
        async with asyncio.timeout(LOOK_S):
            counts = await asyncio.shield(self._looking)
        for name, engine in self.engines.items():
            engine.replicas = counts.get(name, 0)

    def gathered(self) -> Engines:
        """The engines as a server wants them."""
        return gather((model, self.engines[model.name]) for model in self._models)

    def follow(self, places: dict[str, Places]) -> None:
        """Keeps a front door's queues, by the model's name, as wide as the cluster is."""
        for name, engine in self.engines.items():
            engine.pressure = partial(self._pressure, engine, places[name])
        self._following = asyncio.ensure_future(self._follow(places))

    async def close(self) -> None:
        """Stops following, and leaves the cluster; the deployments go on."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})
        ray.shutdown()

    def _pressure(self, engine: AnyEngine, queue: Places) -> Pressure:
        waiting = sum(queue.waiting.values())
        return (self._front, waiting, self.missed.of(engine.name, bool(getattr(engine, "vision", False))))

    async def _follow(self, places: dict[str, Places]) -> None:
        told = ""
        while True:
            try:
                await self.look()
                told = ""
            except Exception as e:  # whatever Ray raises: were this to end, the places would stay as they are
                why = "the head does not answer" if isinstance(e, TimeoutError) else type(e).__name__
                if why != told:
                    log.warning("how many replicas there are is not known now: %s", why)
                told = why
            for name, engine in self.engines.items():
                if (queue := places[name]).slots != engine.slots:
                    log.info("%s: %d replicas, %d places", name, engine.replicas, engine.slots)
                    queue.resize(engine.slots)
            await asyncio.sleep(FOLLOW_S)


def engine(model: ModelSettings, handle: Any, facts: dict[str, Any]) -> AnyEngine:
    """The engine of one model.

    Args:
        model: the operator's settings.
        handle: of its deployment.
        facts: from one of its replicas.

    Raises:
        ServeError: what is deployed by that name is something else.
    """
    kind = kind_of(model)
    deployed = facts.get("kind", kind)  # replicas of the release before do not say
    if deployed != kind:
        raise ServeError(f"{model.name}: the settings say {kind}, but deployed by that name is a {deployed}")
    return _KINDS[kind](model.name, handle, facts)


def _aside(work: Callable[[], T]) -> asyncio.Future[T]:
    """What `work` returns, from a thread that the end of this process does not wait for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        settle: Callable[[], None]
        try:
            settle = partial(future.set_result, work())
        except Exception as e:
            settle = partial(future.set_exception, e)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else settle())

    Thread(target=run, name="os1 look", daemon=True).start()
    return future


async def _facts(handle: Any, name: str, ready_s: float) -> dict[str, Any]:
    """What a replica says about itself; waits until there is one, and until it has a place free.

    Raises:
        ServeError: there is none in time, or Serve has given them up.
    """
    why, telling = "see `serve status`", asyncio.ensure_future(_tell(name))
    try:
        async with asyncio.timeout(ready_s):
            while True:
                with suppress(DeploymentUnavailableError):  # no replica yet
                    if found := await handle.broadcast("facts").results_async():
                        return dict(found[0])
                given_up, why = await asyncio.to_thread(_said, name)
                if given_up:
                    raise ServeError(f"{name}: its replicas do not start, and Serve tries no more: {why}")
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise ServeError(f"{name}: no replica is ready after {ready_s:.0f} s: {why}") from None
    finally:
        telling.cancel()


async def _tell(name: str) -> None:
    """Logs what a model is waited for, until it is cancelled."""
    while True:
        await asyncio.sleep(TELL_S)
        log.warning("%s: waits for a replica: %s", name, (await asyncio.to_thread(_said, name))[1])


def _said(name: str) -> tuple[bool, str]:
    """Whether Serve starts no more replicas of a model, and the last that it said of them."""
    app = serve.status().applications.get(APP + name)
    return (False, "see `serve status`") if app is None else said(app)


def said(app: ApplicationStatusOverview) -> tuple[bool, str]:
    """Whether Serve has given an application up, and the last that it says of it."""
    told = [app.message, *(d.message for d in app.deployments.values())]
    lines = [line.strip() for line in "\n".join(told).splitlines() if line.strip()]
    return app.status == ApplicationStatus.DEPLOY_FAILED, lines[-1] if lines else "see `serve status`"


def _running() -> dict[str, int]:
    """Replicas that answer, by model."""
    counts = {}
    for app, status in serve.status().applications.items():
        if app.startswith(APP):
            states = [d.replica_states for d in status.deployments.values()]
            counts[app.removeprefix(APP)] = sum(s.get("RUNNING", 0) for s in states)
    return counts
