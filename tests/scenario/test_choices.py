"""What the wearer chose on the page, kept to by a companion that lives; its models and devices are fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from companion import KEY, Bag, Ear, Ears, Engine, Eyes, Fakes, Recogniser, Voice

from os1_edge.app.night import Night
from os1_edge.clock import Calendar, Clock
from os1_edge.config import Config
from os1_edge.device.power import Power
from os1_edge.live.devices import Devices
from os1_edge.live.record import Watched
from os1_edge.live.run import Live, _companion, of_settings
from os1_edge.remember.choices import Choices, save_choices
from os1_edge.remember.memory import Memory
from os1_edge.remember.retention import Retention
from os1_edge.remember.store import Store

NOW = datetime(2026, 3, 2, 8)


class Quiet(Fakes):
    """Faculties that nobody speaks to."""

    def close(self) -> None:
        self.memory.close()


def faculties(folder: Path) -> Any:
    bag: Any = Bag()
    memory = Memory(Store(folder / "memory.db", KEY), bag)
    return Quiet(Ears(), None, Recogniser([]), Eyes([]), memory, Engine(), None, Voice())


class Mouth(Ear):
    def close(self) -> None: ...


def devices(folder: Path) -> Any:
    async def nothing(_: Clock) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield

    async def power() -> Power:
        return Power()

    return Devices(nothing, nothing, lambda _: Mouth(folder), power, in_a_room=False)  # type: ignore[arg-type]


def test_sharing_that_is_switched_on_again_is_as_the_settings_say(tmp_path: Path) -> None:
    config = Config.model_validate({"offload": {"policy": "prefer-battery"}})

    async def go() -> list[str]:
        parts = faculties(tmp_path)
        save_choices(parts.memory.store, of_settings(config).model_copy(update={"share_text": False}))
        watched = Watched()
        async with _companion(config, parts, devices(tmp_path), watched) as live:
            policies = [policy(live)]
            live.choose(live.choices.model_copy(update={"share_text": True}))
            return [*policies, policy(live)]

    assert asyncio.run(go()) == ["prefer-private", "prefer-battery"]


def policy(live: Live) -> str:
    return live.os1._engine.rules.policy


def test_what_was_taken_back_is_not_taken_by_the_next_sweep(tmp_path: Path) -> None:
    """The companion was told of the shorter keeping; an undo by voice or from a terminal tells it nothing."""

    async def go() -> list[int]:
        parts = faculties(tmp_path)
        memory = parts.memory
        try:
            await memory.keep_turn(
                "t1", 0, NOW - timedelta(days=100), "The key is in the jar.", "Yes.", "home"
            )
            night = Night(Config(), parts, Clock(), Calendar(NOW))
            night.rest()
            await memory.choose(Choices(), Choices(keep_turns_days=30))
            night.keep(Retention(turn_days=30))
            left = [len(memory.store.turns())]
            await memory.undo_forget()
            await night._forget()
            left.append(len(memory.store.turns()))
            save_choices(memory.store, Choices(keep_turns_days=30))
            await night._forget()
            return [*left, len(memory.store.turns())]
        finally:
            memory.close()

    assert asyncio.run(go()) == [0, 1, 0]
