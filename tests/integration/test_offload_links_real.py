"""Turns over TLS through a link that is spoilt on purpose: each is answered, in time, once and whole.

All lines live at the same time. The whole matrix: python tests/faults/links.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from authority import WEEK, Authority

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from proxy import CLEAN, FaultProxy, Toxics, parse, timeline
from turns import ANSWER, ASKED, Device, Line, Scripted, certificate, hedged, line

from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.server import Address, Server, read_tls
from os1_edge.clock import Clock
from os1_edge.offload.budget import budgets
from os1_edge.offload.channels import Trust
from os1_edge.offload.link import Event
from os1_edge.offload.network import Quiet
from os1_edge.offload.remote import RemoteEngine
from os1_edge.offload.router import Router

BUDGET_S = 1.5
"""Lax, so that a machine that is busy with other things does not fail what the router did right."""

GOOD = Toxics(latency=0.01)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    try:
        return certificate(tmp_path_factory.mktemp("tls"))
    except RuntimeError as e:
        pytest.skip(str(e))


async def stable(it: Line) -> None:
    turns = await it.talk(4)
    assert {t.side for t in turns[1:]} == {"cloud"}


async def flapping(it: Line) -> None:
    async def flap() -> None:
        while True:
            await asyncio.sleep(0.7)
            it.proxy.toxics = Toxics(hole=True) if it.proxy.toxics == GOOD else GOOD

    flaps = asyncio.create_task(flap())
    try:
        await it.talk(8, 0.2)
    finally:
        flaps.cancel()


async def black_hole(it: Line) -> None:
    await it.talk(2)
    it.proxy.toxics = Toxics(hole=True)
    turns = await it.talk(4, 0.5)
    assert {t.side for t in turns} == {"local"}
    assert sum(t.both for t in turns) == 1  # one question is asked in vain
    it.proxy.toxics = GOOD
    await comes_back(it)


async def half_open(it: Line) -> None:
    await it.talk(2)
    it.proxy.toxics = Toxics(latency=0.01, half=True)
    turns = await it.talk(4)
    assert {t.side for t in turns} == {"local"}
    it.proxy.toxics = GOOD
    await comes_back(it)


async def captive_portal(it: Line) -> None:
    it.proxy.toxics = Toxics(reset=True)
    it.proxy.toxics = Toxics(captive=True)
    await it.talk(4)
    await asyncio.sleep(1.5)
    assert it.router.watch is not None
    assert it.router.watch.state == "captive"
    assert (await it.ask()).reason == "a login page stands between here and the server"
    it.proxy.toxics = GOOD
    await comes_back(it)


async def tls_broken(it: Line) -> None:
    await it.talk(1)
    it.proxy.toxics = Toxics(garble=True)
    turns = await it.talk(4)
    assert {t.side for t in turns} == {"local"}


async def killed_in_mid_answer(it: Line) -> None:
    await it.talk(1)
    asking = asyncio.create_task(it.ask())
    await words_written(it)
    it.proxy.toxics = Toxics(down=True)
    assert (await asking).side == "both"


async def picked_up_again(it: Line) -> None:
    """The link is cut in the middle of an answer and is back at once: the server goes on with it."""
    await it.talk(1)
    before = it.engine.asked
    asking = asyncio.create_task(it.ask())
    await words_written(it)
    it.proxy.toxics = Toxics(reset=True)
    it.proxy.toxics = GOOD
    turn = await asking
    assert turn.side == "cloud"
    assert it.router.journal.taken[-1].outcome == "it broke off, and was picked up again"
    assert it.engine.asked == before + 1


async def draining(it: Line) -> None:
    await it.talk(1)
    ending = asyncio.create_task(it.server.drain(1.0))
    turns = await it.talk(3)
    assert turns[-1].side == "local"
    await ending


async def words_written(it: Line) -> None:
    await it.engine.begun.wait()
    await asyncio.sleep(it.engine.first_s + 4 * it.engine.word_s)


async def comes_back(it: Line) -> None:
    for _ in range(60):
        if (await it.ask()).side == "cloud":
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the server was not asked again")


STORIES: list[Callable[[Line], Awaitable[None]]] = [
    stable,
    flapping,
    black_hole,
    half_open,
    captive_portal,
    tls_broken,
    killed_in_mid_answer,
    picked_up_again,
    draining,
]


def test_every_turn_is_answered_in_time_once_and_whole_whatever_the_link_does(
    tls: tuple[Path, Path],
) -> None:
    async def lived(story: Callable[[Line], Awaitable[None]]) -> str:
        slow = Scripted(word_s=0.05) if story in (killed_in_mid_answer, picked_up_again) else Scripted()
        async with line(tls, GOOD, first_token_s=BUDGET_S, engine=slow) as it:
            await it.settled()
            try:
                await story(it)
            except AssertionError as e:
                return f"{story.__name__}: {e} {[(t.side, t.reason) for t in it.turns]}"
            bad = [t for t in it.turns if t.text != ANSWER or t.first_s > BUDGET_S * 1.1]
            it.proxy.toxics = CLEAN
            for _ in range(100):
                if not it.engine.at_work and not it.device.at_work:
                    break
                await asyncio.sleep(0.05)
            left = it.engine.at_work, it.device.at_work
            return f"{story.__name__}: {bad}, {left} left" if bad or left != (0, 0) else ""

    async def go() -> list[str]:
        return [said for said in await asyncio.gather(*map(lived, STORIES)) if said]

    assert asyncio.run(go()) == []


def test_a_name_that_is_not_found_costs_nothing() -> None:
    async def go() -> None:
        far = RemoteEngine("nowhere.invalid:443", None, Trust(), Quiet())
        router = Router(Device(), far, Clock(), times=budgets(BUDGET_S))
        router.wearer_speaks()
        await asyncio.sleep(0.3)
        assert "".join([t async for t in router.stream(ASKED, 64)]) == ANSWER
        assert router.decision.reason == "the server cannot be reached"
        await router.close()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("since", "token", "mine", "said", "logged"),
    [
        (-4 * WEEK, "right", None, Event.OUTDATED, "shows a certificate that does not hold on this day"),
        (WEEK, "right", None, Event.OUTDATED, "shows a certificate that does not hold on this day"),
        (-WEEK, "wrong", None, Event.REFUSED, "refuses this device's token or certificate"),
        (-WEEK, "right", -4 * WEEK, Event.REFUSED, "refuses this device's token or certificate"),
    ],
)
def test_a_credential_that_does_not_hold_is_told_in_plain_words(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    since: timedelta,
    token: str,
    mine: timedelta | None,
    said: str,
    logged: str,
) -> None:
    """``since``: from when the server's certificate holds; ``mine``: the device's, if asked for."""

    async def go() -> None:
        ours = Authority(tmp_path, "ours")
        tokens = Tokens({hashlib.sha256(b"right").hexdigest(): "ann"})
        asked_for = ours.cert if mine is not None else None
        server = Server(
            Answerer(Scripted()),
            tokens,
            read_tls(*ours.issue("server", since), asked_for),
            certificates=mine is not None,
        )
        port = await server.start(Address("127.0.0.1", 0))
        trust = Trust(ours.cert.read_bytes())
        if mine is not None:
            certificate, key = ours.issue("ann", mine)
            trust = Trust(ours.cert.read_bytes(), key.read_bytes(), certificate.read_bytes())
        far = RemoteEngine(f"localhost:{port}", token, trust, Quiet())
        router = Router(Device(), far, Clock(), times=budgets(BUDGET_S))
        try:
            router.wearer_speaks()
            assert router.watch is not None
            async with asyncio.timeout(20):
                while router.watch.why != said:  # noqa: ASYNC110 - the watch's own state
                    await asyncio.sleep(0.05)
            assert "".join([t async for t in router.stream(ASKED, 64)]) == ANSWER
            assert router.decision.reason == said
            assert [r.getMessage().split(";")[0] for r in caplog.records if r.name.endswith("watch")] == [
                f"the offload server {logged}"
            ]
        finally:
            await router.close()
            await server.drain(0)

    asyncio.run(go())


def test_turns_over_packets_that_are_delayed_and_lost() -> None:
    """Two network namespaces and a relay between them: 80 ms round trips, 2 % of the packets lost."""
    import packets
    import tun

    if (why := tun.missing()) is not None:
        pytest.skip(f"no packets here: {why}")
    found = asyncio.run(packets.lived(tun.Weather(0.035, 0.01, 0.02), 4.0))
    assert 70 <= found["rtt_ms"] <= 200  # the tool itself
    assert found["whole"] == found["turns"]
    assert found["by_server"] >= 1


def test_hedged_asks_leave_nothing_behind(tls: tuple[Path, Path]) -> None:
    """grpc#43462: a dropped call is never cancelled by itself. Each of these begins on both sides."""
    found = asyncio.run(hedged(tls, 120))
    assert found["both"] == 120
    assert found["won by the server"] > 0
    assert found["won by the device"] > 0
    assert (found["live at the server"], found["live on the device"], found["tasks left"]) == (0, 0, 0)
    assert found["doubled or cut"] == 0


def test_the_proxy_spoils_what_it_is_told_to() -> None:
    """The tool itself: what comes out of it is what the stories rest on."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(4096):
                writer.write(data)
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        proxy = FaultProxy("127.0.0.1", server.sockets[0].getsockname()[1], Toxics(latency=0.05))
        await proxy.start()
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        began = loop.time()
        writer.write(b"here")
        assert await reader.readexactly(4) == b"here"
        assert loop.time() - began >= 0.1
        proxy.toxics = Toxics(rate=20_000)
        began = loop.time()
        writer.write(bytes(8_000))
        await reader.readexactly(8_000)
        assert loop.time() - began >= 0.4
        proxy.toxics = Toxics(hole=True)
        writer.write(b"lost?")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(5), 0.1)
        proxy.toxics = CLEAN
        assert await reader.readexactly(5) == b"lost?"
        proxy.toxics = Toxics(garble=True)
        writer.write(b"hello")
        # Both ways: changed twice is unchanged; the server saw something else, which TLS would have noticed.
        assert await reader.readexactly(5) == b"hello"
        proxy.toxics = Toxics(reset=True)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        await proxy.close()
        server.close()

    asyncio.run(go())
    assert timeline("0 latency=0.02; 30 hole") == [(0.0, Toxics(latency=0.02)), (30.0, Toxics(hole=True))]
    with pytest.raises(ValueError, match="'fast' is none of latency"):
        parse("fast")
