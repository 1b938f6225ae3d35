"""Several front doors, real processes over TLS: one is killed, ends or falls silent in mid-answer.

The device is slow where a server is to go on, so that which side does is not a matter of this machine's load.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from doors import door
from proxy import FaultProxy, Toxics
from turns import ANSWER, ASKED, Device, Wearer, certificate, wearer

from os1_edge.offload.channels import Trust

LAX_S, SLOW_S, QUICK_S = 10.0, 8.0, 0.05
WENT_ON = "it broke off, and a server that was told so far went on"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    try:
        return certificate(tmp_path_factory.mktemp("tls"))
    except RuntimeError as e:
        pytest.skip(str(e))


def lived(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 120))


async def heard_until(it: Wearer, words: int, then: Callable[[], Awaitable[None]]) -> str:
    """An answer, in the middle of which ``then`` happens."""
    text = ""
    async with aclosing(it.router.stream(ASKED, 64)) as answer:
        async for part in answer:
            before, text = text.count(" "), text + part
            if before < words <= text.count(" "):
                await then()
    return text


async def asked_from(it: Wearer, side: str) -> None:
    """Asks on until ``side`` answers, as who talks on does."""
    while (turn := await it.ask()).side != side:
        assert turn.text == ANSWER
        await asyncio.sleep(0.1)


def believing(tls: tuple[Path, Path]) -> Trust:
    return Trust(tls[0].read_bytes())


def test_one_of_two_addresses_is_killed_in_mid_answer_and_the_other_goes_on(tls: tuple[Path, Path]) -> None:
    async def story() -> None:
        async with (
            door(tls, "one") as one,
            door(tls, "two") as two,
            wearer(f"{one.address}, {two.address}", believing(tls), Device(SLOW_S), LAX_S) as it,
        ):
            await it.settled()
            assert it.router.watch is not None
            assert it.router.watch.offers is not None
            assert it.router.watch.offers.node == "one"  # the first, while it is there
            assert await heard_until(it, 4, one.end) == ANSWER
            taken = it.router.journal.taken[-1]
            assert (taken.answered, taken.outcome) == ("cloud", WENT_ON)
            turn = await it.ask()
            assert (turn.text, turn.side) == (ANSWER, "cloud")  # without a wait for the one that is gone

    lived(story)


def test_one_of_two_behind_a_balancer_is_killed_in_mid_answer(tls: tuple[Path, Path]) -> None:
    async def story() -> None:
        async with door(tls, "one") as one, door(tls, "two") as two:
            balancer = FaultProxy("127.0.0.1", one.port)
            await balancer.start()

            async def killed() -> None:
                balancer._to = ("127.0.0.1", two.port)
                await one.end()

            async with wearer(f"localhost:{balancer.port}", believing(tls), Device(SLOW_S), LAX_S) as it:
                await it.settled()
                assert await heard_until(it, 4, killed) == ANSWER
                taken = it.router.journal.taken[-1]
                assert (taken.answered, taken.outcome) == ("cloud", WENT_ON)
            await balancer.close()

    lived(story)


def test_one_that_falls_silent_in_mid_answer_is_left_for_the_other(tls: tuple[Path, Path]) -> None:
    async def story() -> None:
        async with door(tls, "one") as one, door(tls, "two") as two:
            proxy = FaultProxy("127.0.0.1", one.port)
            await proxy.start()

            async def hole() -> None:
                proxy.toxics = Toxics(hole=True)

            async with wearer(
                f"localhost:{proxy.port},{two.address}", believing(tls), Device(SLOW_S), LAX_S
            ) as it:
                await it.settled()
                assert await heard_until(it, 4, hole) == ANSWER
                taken = it.router.journal.taken[-1]
                assert (taken.answered, taken.outcome) == ("cloud", WENT_ON)
            await proxy.close()

    lived(story)


def test_one_that_ends_lets_its_answer_end_and_the_next_question_goes_to_the_other(
    tls: tuple[Path, Path],
) -> None:
    async def story() -> None:
        async with (
            door(tls, "one") as one,
            door(tls, "two") as two,
            wearer(f"{one.address},{two.address}", believing(tls), Device(QUICK_S), LAX_S) as it,
        ):
            await it.settled()

            async def ends() -> None:
                one.process.send_signal(signal.SIGTERM)

            assert await heard_until(it, 4, ends) == ANSWER
            assert it.router.journal.taken[-1].outcome == ""  # it was let end
            await asked_from(it, "cloud")
            watch = it.router.watch
            assert watch is not None
            assert not watch.draining

    lived(story)


def test_all_are_killed_and_come_back(tls: tuple[Path, Path]) -> None:
    async def story() -> None:
        async with (
            door(tls, "one") as one,
            door(tls, "two") as two,
            wearer(f"{one.address},{two.address}", believing(tls), Device(QUICK_S), LAX_S) as it,
        ):
            await it.settled()

            async def killed() -> None:
                await one.end()
                await two.end()

            assert await heard_until(it, 4, killed) == ANSWER
            assert it.router.journal.taken[-1].answered == "both"
            assert {t.side for t in await it.talk(3, 0.1)} == {"local"}
            async with door(tls, "back", two.port):
                await asked_from(it, "cloud")
            assert {(t.text, t.first_s <= LAX_S) for t in it.turns} == {(ANSWER, True)}

    lived(story)
