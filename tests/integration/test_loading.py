"""The models, loaded side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from os1_edge.config import Config, with_profile
from os1_edge.faculties import Loading, model_names
from os1_edge.remember.connection import BadMemory

SMALL = with_profile(Config(profile="wear4100"))


def loading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("loading")]


@pytest.fixture
def models(pulled: Callable[..., Path]) -> None:
    for name in model_names(SMALL):
        pulled(name)


@pytest.mark.usefixtures("models")
def test_a_memory_of_another_key_is_told_and_no_model_stays_loaded(tmp_path: Path) -> None:
    memory = tmp_path / "memory.db"
    with Loading(SMALL) as loading:
        loading.faculties(memory, bytes(32)).close()
    loading = Loading(SMALL)
    with pytest.raises(BadMemory), loading:
        loading.faculties(memory, bytes([1] * 32))
    llm = loading._llm  # what is freed cannot be seen from outside
    assert llm.cancelled() or llm.result()._llama._model is None
    assert loading_threads() == []
