"""What a watcher is told of how the companion stands."""

from __future__ import annotations

import asyncio
import random
import stat
from pathlib import Path
from typing import Any

import pytest

from os1_edge.clock import Clock
from os1_edge.device.metered import metered
from os1_edge.device.power import Power, pace
from os1_edge.live.record import Watched
from os1_edge.live.standing import kept_up, link_event, power_event, tell_standing
from os1_edge.offload.link import Link
from os1_edge.offload.network import Quiet
from os1_edge.offload.watch import Watch


class Far:
    around = Quiet()


class Companion:
    def __init__(self, watch: Watch | None) -> None:
        self.state, self.link, self.looking = "listening", watch, self
        self.away = False


def watching(work: Any) -> Any:
    async def go() -> Any:
        far: Any = Far()
        return await work(Watch(far, Clock(), random.Random(0), ("wwan*",)))

    return asyncio.run(go())


def test_each_change_is_told_once_and_the_newest_is_kept_for_a_page_that_opens_later() -> None:
    async def work(watch: Watch) -> None:
        watched, companion = Watched(), Companion(watch)
        told: list[dict[str, Any]] = []
        watched.watch(told.append)
        os1: Any = companion
        telling = asyncio.create_task(tell_standing(os1, watched))
        await asyncio.sleep(0.25)
        assert [event["kind"] for event in told] == ["state", "looking", "link"]
        companion.away = True
        await asyncio.sleep(0.25)
        telling.cancel()
        assert told[3:] == [{"kind": "looking", "away": True}]
        assert watched.latest["looking"] == {"kind": "looking", "away": True}
        assert "state" not in watched.latest

    watching(work)


def test_how_it_stands_is_told_again_after_that_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def go() -> None:
        watched = Watched()
        os1: Any = Companion(None)
        os1.looking = None  # something that breaks
        telling = asyncio.create_task(kept_up("telling", lambda: tell_standing(os1, watched), 0.0))
        while "telling failed: AttributeError" not in caplog.text:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)
        os1.looking = os1
        while "looking" not in watched.latest:  # noqa: ASYNC110 - nor has this
            await asyncio.sleep(0)
        telling.cancel()

    asyncio.run(go())


def test_the_link_is_told_in_words() -> None:
    async def work(watch: Watch) -> None:
        assert link_event(None)["quality"] == "none"
        assert link_event(watch)["quality"] == "unknown"
        watch.probes = 1
        assert link_event(watch)["quality"] == "off"
        watch.state = Link.ONLINE
        watch.path.rtt.sample(0.0832)
        good = {"kind": "link", "quality": "good", "why": "The link is good.", "rtt_ms": 80}
        assert link_event(watch) == good
        while not watch.breaker.open:
            watch.breaker.failed(0.0)
        assert link_event(watch)["quality"] == "off"

    watching(work)


def test_networkmanagers_word_on_the_cost_holds_until_the_network_changes() -> None:
    async def work(watch: Watch) -> None:
        watch.told_costs(True)
        assert watch.metered
        watch.told_costs(None)
        assert not watch.metered
        watch.told_costs(True)
        watch._changed()
        assert not watch.metered

    watching(work)


def test_the_battery_is_told_with_the_step() -> None:
    low = Power(12.4, False, 30.0)
    assert power_event(low, pace(low)) == {
        "kind": "power",
        "battery": 12,
        "charging": False,
        "step": "low",
        "reason": "the battery is at 12 %",
    }
    assert power_event(Power(), pace(Power()))["battery"] is None


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("echo u 1", True),
        ("echo u 2", False),
        ("echo u 3", True),
        ("echo u 4", False),
        ("echo u 0", None),
        ("exit 1", None),
        ("echo rubbish", None),
        ("exec sleep 60", None),
    ],
)
def test_networkmanager_is_asked_what_the_network_costs(
    does: str, told: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "busctl"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("os1_edge.device.metered.WITHIN_S", 0.2 if "sleep" in does else 5.0)
    assert asyncio.run(metered()) is told


def test_without_networkmanager_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert asyncio.run(metered()) is None
