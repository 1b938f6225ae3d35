"""Fixtures that several kinds of test share: the demo morning replayed once, and where data lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import settings

import os1_models

# A machine that is busy with other things must not fail a test, nor may one run differ from the next.
settings.register_profile("os1", deadline=None, max_examples=60, derandomize=True, database=None)
settings.load_profile("os1")

KEY = bytes(range(32))
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Replayed:
    """A replay's output folder and its report as JSON text."""

    out: Path
    lines: list[str]

    @property
    def json(self) -> str:
        return (self.out / "report.json").read_text("utf-8")


@pytest.fixture(scope="session")
def pulled() -> Callable[[str], Path]:
    """The main file of a model; the test is skipped where it has not been pulled."""

    def find(name: str, file: str | None = None) -> Path:
        try:
            return os1_models.path(name, file)
        except os1_models.ModelMissing as missing:
            pytest.skip(str(missing))

    return find


@pytest.fixture(scope="session")
def demo_morning() -> Path:
    """The bundled session."""
    return Path(str(files("os1_edge") / "demo" / "morning"))


@pytest.fixture(scope="session")
def demo_replay(
    tmp_path_factory: pytest.TempPathFactory, pulled: Callable[[str], Path], demo_morning: Path
) -> Replayed:
    """The bundled morning, replayed fast through the real models; once for all tests that look at it."""
    from os1_edge.config import Config
    from os1_edge.faculties import model_names
    from os1_edge.replay.run import replay

    for name in model_names(Config()):
        pulled(name)
    out, lines = tmp_path_factory.mktemp("demo") / "out", []
    replay(demo_morning, out, Config(), KEY, realtime=False, tell=lines.append)
    return Replayed(out, lines)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The labelled data: ``$OS1_SHARED_DATA``, else ``shared/data`` beside the checkout."""
    folder = Path(os.environ.get("OS1_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no labelled data at {folder}; set OS1_SHARED_DATA")
    return folder
