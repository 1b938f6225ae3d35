"""Who says the first word, and what becomes of the other: on the virtual clock, whatever the delays are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from os1_edge import clock
from os1_edge.clock import Clock
from os1_edge.offload.budget import budgets
from os1_edge.offload.far import Accepted, Finished, Question, Step, Text
from os1_edge.offload.hedge import Asked, race
from os1_edge.offload.route import Decision

WAY_S = 0.04
"""The way to the server, one way; a cancel takes as long."""


class Server:
    """Takes a question, says a first word after a while, and is at work until it has ended or was told to."""

    name = "server"

    def __init__(self, first_s: float) -> None:
        self.first_s, self.at_work = first_s, 0

    async def ask(self, _question: Question) -> AsyncGenerator[Step, None]:
        self.at_work += 1  # closing the call frees nothing: a server may take it for a lost link
        await asyncio.sleep(2 * WAY_S)
        yield Step(1, Accepted("a"))
        await asyncio.sleep(self.first_s)
        yield Step(2, Text("far"))
        await asyncio.sleep(1.0)
        self.at_work -= 1
        yield Step(3, Finished())

    async def cancel(self, _request_id: str, _node: str) -> None:
        await asyncio.sleep(WAY_S)
        self.at_work = 0


class Device:
    """Says a first word after a while; it is at work until it has ended or is closed."""

    def __init__(self, first_s: float) -> None:
        self.first_s, self.at_work = first_s, 0

    async def answer(self) -> AsyncGenerator[str, None]:
        self.at_work += 1
        try:
            await asyncio.sleep(self.first_s)
            yield "near"
            await asyncio.sleep(1.0)
        finally:
            self.at_work -= 1


delays = st.floats(0.0, 3.0)


@settings(max_examples=300, deadline=None)
@given(far_s=delays, near_s=delays, hedge_s=delays, accept_s=st.none() | delays)
def test_the_loser_is_not_at_work_any_more_a_tenth_of_a_second_after_the_first_word(
    far_s: float, near_s: float, hedge_s: float, accept_s: float | None
) -> None:
    async def live() -> None:
        server, device, at = Server(far_s), Device(near_s), Clock()
        question = Question("q", [], 10, budgets()["reply"])
        asked = Asked(server, question, at)  # type: ignore[arg-type]
        behind: list[asyncio.Task[Any]] = []
        decision = Decision("cloud", "", hedge_at=hedge_s, accept_by=accept_s)
        won = await race(
            asked, device.answer, decision, at, lambda left: behind.append(asyncio.create_task(left))
        )
        assert won.text == ("far" if won.winner == "cloud" else "near")
        await asyncio.sleep(0.1)
        assert (device.at_work if won.winner == "cloud" else server.at_work) == 0
        assert (server.at_work if won.winner == "cloud" else device.at_work) == 1  # the winner goes on
        await asyncio.gather(*behind)

    clock.run(live(), virtual=True)
