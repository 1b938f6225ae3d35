"""An operator who starts a front door where it cannot work is told why. No cluster is started."""

import asyncio
import gc
import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("os1_cloud.ray.bench.front", reason="needs Ray: run scripts/test-ray")

from ray.serve.schema import ApplicationStatusOverview, DeploymentStatusOverview

from os1_cloud.address import ServeError
from os1_cloud.ray.pool import connect, engine, joined, said
from os1_cloud.ray.replica import LanguageReplica
from os1_cloud.settings import ModelSettings, Settings

HANDLE = SimpleNamespace(options=lambda **_: None)


@pytest.fixture
def nowhere() -> str:
    """Where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_where_no_cluster_is_the_front_door_says_what_one_needs(nowhere: str) -> None:
    with pytest.raises(ServeError, match=r"refused.*RAY_AUTH_TOKEN"):
        connect(nowhere)


def test_settings_without_a_language_model_are_refused_before_a_cluster_is_looked_for(nowhere: str) -> None:
    models = (ModelSettings(kind="piper", name="x"),)
    with pytest.raises(ServeError, match="no language model"):
        asyncio.run(joined(Settings(ray=nowhere, models=models)))


def test_another_kind_of_model_by_the_same_name_is_refused() -> None:
    model = ModelSettings(kind="llama", name="x")
    with pytest.raises(ServeError, match=r"x: the settings say language.*voice"):
        engine(model, HANDLE, {"kind": "voice", "slots": 1, "rate": 22050})
    facts = {"kind": "language", "slots": 4, "context_tokens": 2048, "vision": False}
    assert engine(model, HANDLE, facts).slots == 4


def overview(status: str, *told: str) -> ApplicationStatusOverview:
    """What Serve says of an application."""
    deployments = {
        str(number): DeploymentStatusOverview("UPDATING", "UNSPECIFIED", {}, message)  # type: ignore[arg-type]
        for number, message in enumerate(told)
    }
    return ApplicationStatusOverview(status, "", 0.0, deployments)  # type: ignore[arg-type]


def test_what_serve_says_last_of_a_model_is_told() -> None:
    assert said(overview("DEPLOYING", "1 replica\nneeds 8 CPUs, there are 2\n")) == (
        False,
        "needs 8 CPUs, there are 2",
    )
    assert said(overview("DEPLOY_FAILED", "Traceback\n  EngineError: no file")) == (
        True,
        "EngineError: no file",
    )
    assert said(overview("DEPLOYING", "")) == (False, "see `serve status`")


def test_an_engine_that_cannot_be_made_is_the_only_failure_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def make() -> Any:
        raise ServeError("no such model")

    with pytest.raises(ServeError, match="no such model"):
        LanguageReplica(make)
    gc.collect()
    assert unraisable == []
