"""An offload server that falls silent, as the wearer and the log notice it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from companion import Companion, Engine

from os1_edge.events import RATE
from os1_edge.offload.breaker import BackOff, Breaker
from os1_edge.offload.engine import EngineError, Message

BUDGET_S = 0.6


@dataclass
class Server(Engine):
    """An engine far away; ``state`` says what becomes of a call at a session second."""

    state: Callable[[float], str] = lambda now: "up"
    asked_at: list[float] = field(default_factory=list)
    open_calls: int = 0

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        now = asyncio.get_running_loop().time()
        self.asked_at.append(now)
        self.open_calls += 1
        try:
            match self.state(now):
                case "black hole":  # no packet comes back, not even a reset
                    await asyncio.sleep(1e9)
                case "refuses":
                    raise EngineError("the server is full")
                case "dies":
                    yield "I was about"
                    raise EngineError("the link broke")
            async for text in Engine.stream(self, messages, max_tokens):
                yield text
        finally:
            self.open_calls -= 1

    async def close(self) -> None: ...


def borrower(folder: Path, state: Callable[[float], str]) -> Companion:
    """A companion with a server."""
    server = Server(lambda _: "From the server.", state=state)
    return Companion(folder, Engine(lambda _: "From the device."), server=server)


def minutes_of_talk(folder: Path, state: Callable[[float], str]) -> Companion:
    """A word every ten seconds for four minutes."""
    told = borrower(folder, state)
    for n in range(24):
        told.say(1.0 + 10 * n, "Go on.")
    return told


def test_a_server_that_answers_is_borrowed_from(tmp_path: Path) -> None:
    told = minutes_of_talk(tmp_path, lambda now: "up")
    told.live()
    assert {(t.reply, t.route) for t in told.turns} == {("From the server.", "cloud")}


def test_a_black_hole_costs_its_budget_once_and_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """HA core#108001, #113723 (10,000 warnings); wyoming-satellite#26 …: never recovers; MentraOS#2302."""
    caplog.set_level(logging.INFO, logger="os1_edge")
    told = minutes_of_talk(tmp_path, lambda now: "black hole" if 30 < now < 150 else "up")
    told.live()
    assert len(told.turns) == 24
    waits = [(t.spoke_at_s or 99) - (t.paused_at or 0) / RATE for t in told.turns]
    assert max(waits) < BUDGET_S + 1.0
    assert [r.getMessage().split(";")[0] for r in caplog.records if "offload" in r.name] == [
        f"the offload server said nothing for {BUDGET_S} s",
        "the offload server answers again",
    ]
    asked = [at for at in told.server.asked_at if 30 < at < 150]
    assert 4 <= len(asked) <= 8  # twelve turns: most are not even asked for
    assert [t.reply for t in told.turns][-3:] == ["From the server."] * 3
    assert told.server.open_calls == 0


def test_two_devices_do_not_come_back_in_the_same_moment() -> None:
    waits = []
    for seed in range(40):
        breaker = Breaker(BackOff(), seed=seed)
        breaker.failed(0.0)
        waits.append(min(t / 100 for t in range(200) if breaker.allows(t / 100)))
    assert len(set(waits)) > 20
    assert (min(waits), max(waits)) == (pytest.approx(0.7, abs=0.1), pytest.approx(1.3, abs=0.1))


def test_waits_double_up_to_a_bound_and_an_answer_ends_them() -> None:
    breaker, now, waits = Breaker(BackOff(jitter=0.0)), 0.0, []
    for _ in range(12):
        breaker.failed(now)
        waits.append(next(s for s in (1, 2, 4, 8, 16, 32, 60, 61) if breaker.allows(now + s)))
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60]
    assert breaker.answered()
    assert breaker.allows(now)
    assert not breaker.out


def test_a_server_that_refuses_is_replaced_at_once(tmp_path: Path) -> None:
    told = borrower(tmp_path, lambda now: "refuses")
    told.say(1.0, "Go on.").live()
    (turn,) = told.turns
    assert (turn.reply, turn.route) == ("From the device.", "local")
    assert turn.route_reason == "the offload server gave no answer"
    assert (turn.spoke_at_s or 99) - turn.ended.decided / RATE < 0.1


def test_a_server_that_dies_in_mid_sentence_has_said_what_it_said(tmp_path: Path) -> None:
    told = borrower(tmp_path, lambda now: "dies")
    told.say(1.0, "Go on.").live()
    (turn,) = told.turns
    assert "From the device" not in turn.reply
    assert turn.failed is None
