"""What is measured. Each returns its numbers by name; the cluster's processes are this machine's."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import ray

from os1_cloud.bench.client import served
from os1_cloud.bench.measures import Numbers, quantile
from os1_cloud.engines import Piece, Prompt, Turn
from os1_cloud.engines.scripted import Scripted
from os1_cloud.ray.bench import bare, scripted
from os1_cloud.ray.bench.cluster import Cluster, cluster
from os1_cloud.ray.bench.front import RETRYABLE, Client, Told, front, read
from os1_cloud.ray.pool import connect

WARM = 20
WORDS, TOKEN_S = 10, 0.02
"""Of an answer: a fifth of a second."""
ANSWER_S = WORDS * TOKEN_S
SLOTS = 16


@asynccontextmanager
async def fronted(
    *cpus: int,
    replicas: int,
    slots: int = SLOTS,
    first_s: float = TOKEN_S,
    connections: int = 8,
    stamped: bool = False,
) -> AsyncIterator[tuple[Cluster, Client]]:
    """A cluster with the scripted deployment, a front door before it, and a client. Replicas take a CPU
    each."""
    with cluster(*cpus) as made, tempfile.TemporaryDirectory() as folder:
        connect(made.address)
        model = scripted.model(replicas, slots, 1.0)
        await asyncio.to_thread(scripted.run, model, first_s, TOKEN_S, stamped=stamped)
        with front(made.address, Path(folder), slots) as door:
            client = Client([door.address], connections)
            try:
                yield made, client
            finally:
                await client.close()
                ray.shutdown()


async def overhead(asks: int = 100) -> Numbers:
    """What words cost on their way: from the engine alone, from a server in one process, through a front
    door and Ray, and through two servers that do nothing but gRPC. They alternate, so that what else the
    machine does hits all.

    `way` is from the engine's writing a word to its client's reading it; `first` and `word` are how much
    later than due the first and each word came, which has the question's way in it as well.
    """
    paths: dict[str, list[Told]] = {"engine": [], "server": [], "ray": [], "bare": []}
    async with (
        fronted(2, replicas=1, stamped=True) as (_, client),
        served(TOKEN_S, TOKEN_S, SLOTS, stamped=True) as one,
        bare.hops(TOKEN_S, TOKEN_S) as stub,
    ):
        engine = Scripted(TOKEN_S, TOKEN_S, SLOTS, stamped=True)
        for number in range(WARM + asks):
            answers = {
                "engine": await _alone(engine),
                "server": await read(one.ask(number, WORDS)),
                "ray": await client.ask(number, WORDS, session_id="one"),
                "bare": await bare.ask(stub, WORDS),
            }
            for name, told in answers.items():
                paths[name] += [told] if number >= WARM else []
    found: Numbers = {}
    for what, of in (("way", Told.ways), ("first", _first), ("word", _late)):
        times = {name: list(chain.from_iterable(map(of, told))) for name, told in paths.items()}
        at = {name: (1000 * statistics.median(t), 1000 * quantile(t, 0.99)) for name, t in times.items()}
        for name, (p50, p99) in at.items():
            found |= {f"{what}_{name}_p50_ms": p50, f"{what}_{name}_p99_ms": p99}
        for base in ("engine", "server"):
            found[f"{what}_added_to_{base}_p50_ms"] = at["ray"][0] - at[base][0]
            found[f"{what}_added_to_{base}_p99_ms"] = at["ray"][1] - at[base][1]
        found[f"{what}_ray_over_bare"] = at["ray"][0] / at["bare"][0]
    return found


def _first(told: Told) -> list[float]:
    return [told.words[0] - TOKEN_S]


def _late(told: Told) -> list[float]:
    return [word - (n + 1) * TOKEN_S for n, word in enumerate(told.words)]


async def _alone(engine: Scripted) -> Told:
    told = Told(began=time.monotonic())
    async with aclosing(engine.generate(Prompt((Turn("user", "hi"),), WORDS))) as parts:
        async for part in parts:
            if isinstance(part, Piece):
                told.words.append(time.monotonic() - told.began)
                told.text += part.text
    return told


async def throughput(seconds: float = 6.0, slots: int = 4) -> Numbers:
    """Answers a second of one replica and of two, each on a node with one CPU, when more is asked than they
    can. Medians of three turns of each, alternating."""
    turns: dict[int, list[float]] = {1: [], 2: []}
    async with fronted(1, 1, replicas=2, slots=slots) as (_, client):
        for replicas in (2, 1) * 3:
            told = scripted.model(replicas, slots, 1.0)
            # Both nodes are full: an old replica has to leave first.
            await asyncio.to_thread(scripted.run, told, TOKEN_S, TOKEN_S, max_surge_percent=0)
            await asyncio.sleep(2.5)  # the front door looks each second
            turns[replicas].append(await _flood(client, 3 * slots * replicas, seconds) / seconds)
    one, two = statistics.median(turns[1]), statistics.median(turns[2])
    most = slots / ANSWER_S
    return {
        "one_a_second": one,
        "two_a_second": two,
        "ratio": two / one,
        "of_what_two_engines_can": two / (2 * most),
    }


async def _flood(client: Client, together: int, seconds: float) -> int:
    """Answers that came in `seconds` when `together` clients ask again as soon as they are answered."""
    end, answered = time.perf_counter() + seconds, 0

    async def one(number: int) -> None:
        nonlocal answered
        count = 0
        while time.perf_counter() < end:
            told = await client.ask(number, WORDS, request_id=f"f{end:.3f}-{number}-{count}")
            count += 1
            answered += told.code == "OK" and time.perf_counter() < end
            if told.code != "OK":
                await asyncio.sleep(0.05)

    await asyncio.gather(*(one(number) for number in range(together)))
    return answered


async def kill(calls: int = 500, rate: float = 50.0, seed: int = 1) -> Numbers:
    """A node ends without a word while questions come at random times."""
    async with fronted(1, 1, replicas=2) as (made, client):
        await client.ask(10**6)
        ender = asyncio.get_running_loop().call_later(
            0.4 * calls / rate, lambda: asyncio.ensure_future(asyncio.to_thread(made.nodes[1].kill))
        )
        answers = await _arrivals(client, calls, rate, seed, sessions=40)
        ender.cancel()
    codes = Counter(a.code for a in answers)
    failed = [a for a in answers if a.code != "OK"]
    torn = [a for a in answers if a.code == "OK" and a.text != _text(WORDS)]
    return {
        "calls": calls,
        "outcomes": dict(codes),
        "errors_share": len(failed) / calls,
        "errors_not_retryable": sum(a.code not in RETRYABLE for a in failed),
        "answers_with_a_gap": len(torn),
        "slowest_s": max(a.took for a in answers),
        "p50_s": statistics.median(a.took for a in answers),
    }


async def affinity(calls: int = 400, seed: int = 2) -> Numbers:
    """Whether a wearer's next question finds what was read for the last one: at half of what the replicas
    can, and at more than they can."""
    found: Numbers = {}
    async with fronted(1, 1, replicas=2, slots=4) as (_, client):
        most = 2 * 4 / ANSWER_S
        for name, share in (("half_load", 0.5), ("overload", 1.3)):
            answers = await _arrivals(client, calls, share * most, seed, sessions=24, mark=name)
            ended = [a for a in answers if a.code == "OK"]
            later = [a for a in ended if a.again]
            found[f"{name}_hits"] = sum(a.cached > 0 for a in later) / len(later)
            found[f"{name}_answered"] = len(ended) / len(answers)
    return found


async def cancel(asks: int = 60) -> Numbers:
    """From a client's Cancel, or its leaving for good, until the engine has stopped."""
    from ray import serve

    from os1_cloud.ray.deploy import APP
    from os1_proto.assist.v1 import assist_pb2 as pb

    took: list[float] = []
    async with fronted(1, replicas=1) as (_, client):
        handle = serve.get_app_handle(APP + scripted.NAME)
        for number in range(asks):
            await client.ask(number, 500, most=4)
            began = time.monotonic()
            await client.assists[0].Cancel(pb.CancelRequest(request_id=client.id(number)))
            state: dict[str, Any] = {"at_work": 1}
            while state["at_work"]:
                [state] = await handle.broadcast("state").results_async()
            took.append(state["ended"] - began)
    return {
        "cancel_to_stop_p50_ms": 1000 * statistics.median(took),
        "cancel_to_stop_max_ms": 1000 * max(took),
    }


async def _arrivals(
    client: Client, calls: int, rate: float, seed: int, sessions: int, mark: str = "a"
) -> list[Told]:
    """`calls` questions at random times, `rate` a second, whoever is answered or not: no call waits for
    another."""
    chance, tasks = random.Random(seed), []
    due, seen = time.perf_counter(), set[int]()
    for number in range(calls):
        due += chance.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        session = chance.randrange(sessions)
        asked = client.ask(number, WORDS, request_id=f"{mark}{number}", session_id=f"{mark}{session}")
        tasks.append(asyncio.ensure_future(_noted(asked, session in seen)))
        seen.add(session)
    return list(await asyncio.gather(*tasks))


async def _noted(asked: Coroutine[Any, Any, Told], again: bool) -> Told:
    told = await asked
    told.again = again
    return told


def _text(words: int) -> str:
    return "".join(f"{number} " for number in range(words))


MEASURES: dict[str, Callable[[], Coroutine[Any, Any, Numbers]]] = {
    "overhead": overhead,
    "throughput": throughput,
    "kill": kill,
    "affinity": affinity,
    "cancel": cancel,
}
