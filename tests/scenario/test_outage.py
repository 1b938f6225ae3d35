"""An offload server that falls silent, refuses, dies: as the wearer and the log notice it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from companion import Companion, Engine

from os1_edge.events import RATE
from os1_edge.offload.breaker import BackOff, Breaker
from os1_edge.offload.far import Accepted, FarError, Finished, Probed, Question, Step, Stranger, Text
from os1_edge.offload.network import Quiet

BUDGET_S = 0.6


@dataclass
class Server:
    """An engine far away; ``state`` says what becomes of a call at a session second."""

    state: Callable[[float], str] = lambda now: "up"
    answer: str = "From the server."
    rtt_s: float = 0.04
    name: str = "offload server"
    around: Quiet = field(default_factory=Quiet)
    asked_at: list[float] = field(default_factory=list)
    """What it was only to read ahead is not among them."""
    asked: list[str] = field(default_factory=list)
    probed_at: list[float] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    open_calls: int = 0

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        now = asyncio.get_running_loop().time()
        if not question.prime:
            self.asked_at.append(now)
            self.asked.append(question.request_id)
        self.open_calls += 1
        try:
            match self.state(now):
                case "black hole":  # no packet comes back, not even a reset
                    await asyncio.sleep(1e9)
                case "thinks":  # and thinks
                    yield Step(1, Accepted())
                    await asyncio.sleep(5.0)
                case "refuses":
                    raise FarError("busy", "offload server: resource exhausted", 2.0)
            await asyncio.sleep(self.rtt_s)
            yield Step(1, Accepted())
            for seq, word in enumerate(self.answer.split(" "), 2):
                if self.state(now) == "dies" and seq == 4:
                    raise FarError("broken", "offload server: internal")
                await asyncio.sleep(0.02)
                yield Step(seq, Text(word if seq == 2 else f" {word}"))
            yield Step(99, Finished())
        finally:
            self.open_calls -= 1

    async def resume(self, request_id: str, node: str, from_seq: int) -> AsyncGenerator[Step, None]:
        raise FarError("lost", "offload server: not found")
        yield

    async def cancel(self, request_id: str, node: str) -> None:
        self.cancelled.append(request_id)

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        now = asyncio.get_running_loop().time()
        self.probed_at.append(now)
        if self.state(now) == "black hole":
            await asyncio.sleep(timeout_s)
            raise FarError("unreachable", "offload server: no answer to a probe")
        await asyncio.sleep(self.rtt_s)
        return Probed(self.rtt_s, padding)

    async def diagnose(self, timeout_s: float) -> Stranger:
        return ""

    async def close(self) -> None: ...


def borrower(folder: Path, state: Callable[[float], str], answer: str = "From the server.") -> Companion:
    """A companion with a server."""
    chance = {"chance": random.Random(7)}
    here = Engine(lambda _: "From the device.")
    return Companion(folder, here, server=Server(state, answer), capture=chance)


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
    assert told.turns[0].route_reason.startswith("the server's first word comes within 0.")


def test_a_black_hole_costs_one_wait_and_one_line_in_the_log(
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
        "the offload server cannot be reached",
        "the offload server answers again",
    ]
    # A probe finds it out; what is asked meanwhile is asked in vain, and nothing after.
    assert len([at for at in told.server.asked_at if 30 < at < 150]) <= 1
    assert all(t.reply == "From the server." for t in told.turns if t.ended.end / RATE > 152)
    assert told.server.open_calls == 0


def test_the_wearer_is_heard_by_the_server_a_second_after_an_outage(tmp_path: Path) -> None:
    told = minutes_of_talk(tmp_path, lambda now: "black hole" if 30 < now < 150 else "up")
    told.live()
    after = [at for at in told.server.probed_at if at >= 150]
    assert after[0] - 150 <= 1.0


def test_an_outage_that_nobody_speaks_in_is_not_probed_each_second(tmp_path: Path) -> None:
    told = borrower(tmp_path, lambda now: "black hole" if now > 20 else "up")
    told.say(1.0, "Go on.").say(400.0, "Go on.")
    told.live()
    quiet = [at for at in told.server.probed_at if 120 < at < 390]
    assert len(quiet) <= 270 / (30 * 0.7) + 1
    assert told.turns[-1].reply == "From the device."


def test_two_devices_do_not_come_back_in_the_same_moment() -> None:
    waits = [BackOff().wait_s(0, random.Random(seed)) for seed in range(40)]
    assert len(set(waits)) == 40
    assert (min(waits), max(waits)) == (pytest.approx(0.7, abs=0.1), pytest.approx(1.3, abs=0.1))


def test_waits_double_up_to_a_bound() -> None:
    even = BackOff(jitter=0.0)
    waits = [even.wait_s(failures, random.Random(0)) for failures in range(8)]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_server_that_keeps_failing_is_asked_no_more_until_a_probe_shows_it_is_back() -> None:
    breaker = Breaker(random.Random(0), BackOff(jitter=0.0))
    for _ in range(2):
        breaker.failed(0.0)
    assert not breaker.open
    breaker.failed(0.0)
    assert (breaker.open, breaker.probe_due(0.9), breaker.probe_due(1.0)) == (True, False, True)
    breaker.probed(1.0, good=False)
    assert (breaker.open, breaker.probe_due(2.9), breaker.probe_due(3.0)) == (True, False, True)
    breaker.probed(3.0, good=True)
    assert not breaker.open


def test_a_server_that_is_mostly_late_is_asked_no_more() -> None:
    breaker = Breaker(random.Random(0))
    for late in (True, False, True, False, True, False, True, False, True):
        breaker.answered(0.0, late=late)
    assert not breaker.open
    breaker.answered(0.0, late=True)
    assert breaker.open


def test_a_server_that_refuses_is_replaced_at_once(tmp_path: Path) -> None:
    told = borrower(tmp_path, lambda now: "refuses")
    told.say(1.0, "Go on.").live()
    (turn,) = told.turns
    assert (turn.reply, turn.route) == ("From the device.", "local")
    assert turn.route_reason.startswith("the server failed (busy); ")
    assert (turn.spoke_at_s or 99) - turn.ended.decided / RATE < 0.1


def test_a_server_that_thinks_too_long_is_told_to_stop(tmp_path: Path) -> None:
    told = borrower(tmp_path, lambda now: "thinks")
    told.say(1.0, "Go on.").live()
    (turn,) = told.turns
    assert (turn.reply, turn.route) == ("From the device.", "local")
    assert turn.route_reason.startswith("the server had said nothing after 0.")
    assert len(told.server.asked) == 1
    assert told.server.asked[0] in told.server.cancelled
    assert told.server.open_calls == 0


def test_a_server_that_dies_in_mid_sentence_is_gone_on_from_here(tmp_path: Path) -> None:
    told = borrower(tmp_path, lambda now: "dies", "Your car is in the yard.")
    told.say(1.0, "Go on.").live()
    (turn,) = told.turns
    assert turn.reply.startswith("Your car")
    assert turn.reply.count("Your car") == 1
    assert turn.reply.endswith("From the device.")
    assert turn.failed is None
    last = told.engine.prompts[-1][-1]
    assert (last.role, last.text) == ("assistant", "Your car")
