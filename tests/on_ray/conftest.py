"""A Ray cluster of real processes for the tests of this folder; skipped where Ray is not installed or cannot
start. `scripts/test-ray` installs it and runs them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ray_world import World


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "last: ends the cluster that all tests here share")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[World]":
    """A head and a second node with two CPUs each, and the scripted model on both."""
    import ray_world

    from os1_cloud.ray.bench.cluster import cluster

    folder: Path = tmp_path_factory.mktemp("fronts")
    try:
        made = cluster(2, 2)
        running = made.__enter__()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
        pytest.skip(f"no Ray cluster can be started here: {e}")
    try:
        there = ray_world.joined(running, folder)
        yield there
        there.close()
    finally:
        made.__exit__(None, None, None)
