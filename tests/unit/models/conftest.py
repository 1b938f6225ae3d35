"""Fixtures of the model tests. No test here leaves the loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from os1_models.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    root = tmp_path / "models"
    root.mkdir()
    return Store(root)


@pytest.fixture(autouse=True)
def _own_corner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's models, nor sends loopback requests through a proxy."""
    monkeypatch.setenv("OS1_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
