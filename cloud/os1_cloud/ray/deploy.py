"""Makes Serve deployments of an operator's settings. Serve schedules; here is only what it is told.

`application` is the app builder that Serve config files name (`os1_cloud.ray.deploy:application`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import ValidationError
from ray import serve
from ray.serve.config import ProxyLocation
from ray.serve.schema import ApplicationStatus, ApplicationStatusOverview

from os1_cloud.address import ServeError
from os1_cloud.ray.replica import LanguageReplica, RecognizerReplica, VoiceReplica
from os1_cloud.settings import ModelSettings

log = logging.getLogger(__name__)
APP = "os1-"
"""Begins the name of each application of ours; the model's name follows."""
ROUTER = "os1_cloud.ray.router.Router"
"""Serve's, by consistent hash: a session goes to one replica, and to the next on the ring when that is full
or silent."""
POLICY = "os1_cloud.ray.scaling:desired"
FALLBACKS = 8
"""Replicas tried behind a session's own before a question waits: one is free unless nine in a row are
full."""
DRAIN_S = 125.0
"""A replica that is replaced may end its answers: the longest (120 s), and what it takes to notice."""
ENVIRONMENT = {
    # The engine awaits and never blocks, so one loop does for both: a thread hop less for each word.
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE": "1000",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
Kind = Literal["language", "recognizer", "voice"]
_CLASSES: dict[Kind, type] = {
    "language": LanguageReplica,
    "recognizer": RecognizerReplica,
    "voice": VoiceReplica,
}


def kind_of(model: ModelSettings) -> Kind:
    """What a model does."""
    kinds: dict[str, Kind] = {"whisper": "recognizer", "piper": "voice"}
    return kinds.get(model.kind, "language")


def engine_of(model: dict[str, Any]) -> Any:
    """The engine of one model, not loaded yet. `model`: the fields of `ModelSettings`."""
    from os1_cloud.build import engine

    return engine(ModelSettings.model_validate(model))


def places_of(model: ModelSettings) -> int:
    """Questions that a replica of a model works on at a time: a model in a worker process one, an upstream
    server as many as it batches."""
    return model.slots if model.kind == "upstream" else 1


def threads_of(model: ModelSettings) -> int:
    """Of a replica that is told none: the CPUs that it takes of its machine, not all that are there."""
    return max(1, math.ceil(model.replicas.cpus))


def options(model: ModelSettings, per_replica: int) -> dict[str, Any]:
    """What Serve is told about a deployment.

    Args:
        model: the operator's settings.
        per_replica: questions that a replica works on at a time.
    """
    wanted = model.replicas
    actor: dict[str, Any] = {"num_cpus": wanted.cpus, "num_gpus": wanted.gpus}
    actor |= {"resources": dict(wanted.resources), "runtime_env": {"env_vars": dict(ENVIRONMENT)}}
    scaling: dict[str, Any] = {"num_replicas": wanted.min}
    if wanted.max > wanted.min:
        scaling = {
            "autoscaling_config": {
                "min_replicas": wanted.min,
                "max_replicas": wanted.max,
                "target_ongoing_requests": max(1.0, 0.7 * per_replica),
                "upscale_delay_s": 5.0,
                "downscale_delay_s": 300.0,
                "look_back_period_s": 15.0,
                "policy": {"policy_function": POLICY},
            }
        }
    return scaling | {
        "ray_actor_options": actor,
        "max_ongoing_requests": per_replica,
        # The queue that knows deadlines is the front door's. This one holds what is sent while a lost replica
        # is still on the ring (measured: half as much refused 7 of 500 questions when a node was killed).
        "max_queued_requests": max(4, per_replica),
        "request_router_config": {
            "request_router_class": ROUTER,
            "request_router_kwargs": {"num_fallback_replicas": FALLBACKS},
            "initial_backoff_s": 0.01,
            "max_backoff_s": 0.1,
        },
        # A new release's replica answers before an old one leaves. Needs room for one more.
        "max_surge_percent": 20,
        "graceful_shutdown_timeout_s": DRAIN_S,
        "graceful_shutdown_wait_loop_s": 0.5,
        "health_check_period_s": 2.0,
        "health_check_timeout_s": 10.0,
        "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
        "user_config": {},
    }


def bind(replica: type, name: str, make: Callable[[], Any], told: dict[str, Any]) -> Any:
    """An application of one deployment.

    Args:
        replica: one of the classes of `replica`.
        name: of the model.
        make: makes the engine, in the replica.
        told: from `options`.
    """
    return serve.deployment(**told)(replica).options(name=name).bind(make)


def application(args: dict[str, Any]) -> Any:
    """The app builder of Serve config files.

    Args:
        args: `model`: a `[[models]]` table of server.toml; `version`: changed to replace the replicas one by
        one.

    Raises:
        ServeError: `model` is none.
    """
    try:
        model = ModelSettings.model_validate(args["model"])
    except (KeyError, ValidationError) as e:
        raise ServeError(f"args.model is no [[models]] table of server.toml: {e}") from e
    told = args["model"] if "threads" in args["model"] else args["model"] | {"threads": threads_of(model)}
    make = partial(engine_of, told)
    return bind(_CLASSES[kind_of(model)], model.name, make, options(model, places_of(model)))


def table(model: ModelSettings) -> dict[str, Any]:
    """What `application` is told of a model: only what the operator set. All else is for the replica to say,
    such as its threads."""
    return model.model_dump(mode="json", exclude_unset=True)


def runs(app: ApplicationStatusOverview) -> bool:
    """Whether an application is left as it is. One that Serve has given up is not, unless replicas of the
    release before answer."""
    if app.status == ApplicationStatus.DEPLOY_FAILED:
        return any(d.replica_states.get("RUNNING", 0) for d in app.deployments.values())
    return app.status not in (ApplicationStatus.DELETING, ApplicationStatus.NOT_STARTED)


def missing(
    models: Sequence[ModelSettings], apps: Mapping[str, ApplicationStatusOverview]
) -> list[ModelSettings]:
    """Those of `models` that are to be deployed, given the cluster's applications by name."""
    return [m for m in models if APP + m.name not in apps or not runs(apps[APP + m.name])]


def deploy(models: Sequence[ModelSettings]) -> None:
    """Deploys the models that the cluster does not run yet; does not wait for their replicas."""
    serve.start(proxy_location=ProxyLocation.Disabled)
    wanted = missing(models, serve.status().applications)
    for model in models:
        if model not in wanted:
            log.info("%s is deployed already; its settings here are not used", model.name)
    targets = [
        serve.RunTarget(application({"model": table(m)}), name=APP + m.name, route_prefix=None)
        for m in wanted
    ]
    if targets:
        serve.run_many(targets, wait_for_applications_running=False)
