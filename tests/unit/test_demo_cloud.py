"""`scripts/demo --cloud` says which side answered while the link was how, and when the server was no use."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "demo_cloud.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_cloud", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_routes_are_told_by_what_was_wrong_with_the_link(demo: ModuleType) -> None:
    turns = [
        {"end_s": at, "route": route}
        for at, route in ((5, "local"), (10, "rule"), (34, "cloud"), (60, "local"), (99, "cloud"))
    ]
    told = list(demo.routes(turns, 100.0))
    assert [line.split(" s  ", 1)[1].split("  ")[-1].strip() for line in told] == [
        "1 by the server, 1 by the device, 1 by no model",
        "nothing asked",
        "1 by the device",
        "1 by the server",
    ]
    assert told[2].strip().startswith("50-70   s  a lift")


def taken(answered: str, link: str = "online", route: str = "cloud") -> dict[str, Any]:
    return {"route": route, "link": link, "answered": answered, "first_s": 1.5}


def test_a_server_that_is_too_slow_for_the_budget_is_named_as_that(demo: ModuleType) -> None:
    good = demo.verdict([taken("cloud"), taken("local"), taken("local", "offline", "local")])
    assert "asked 2 times and in time 1 times, its first word after 1.5 s" in good
    never = demo.verdict([taken("local"), taken("local", "degraded")])
    assert "was asked 1 times and never in time" in never
    assert "too slow, or too busy" in never
    assert "could never be asked" in demo.verdict([])
