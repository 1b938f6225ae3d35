"""What is measured. Each returns its numbers by name; times are seconds."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections import Counter
from typing import Any

from os1_cloud.bench.client import Answer, Served, read, served
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2

Numbers = dict[str, Any]
WARM = 200
GRACE_S = 2.5
"""After which no answer goes on that nobody reads."""


def quantile(values: list[float], share: float) -> float:
    """The value below which `share` of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def overhead(calls: int = 2000) -> Numbers:
    """Our unary call and first text against the least that grpc.aio can do, and against no server at all.
    The calls alternate, so that what else the machine does hits both."""
    async with served(slots=1) as s:
        one = s.echo.unary_unary("/Echo/One")
        two = s.echo.unary_stream("/Echo/Two")
        payload = edge_pb2.ProbeRequest().SerializeToString() or b"x"
        echo, probe, stream, ask = list[float](), list[float](), list[float](), list[float]()
        for number in range(WARM + calls):
            began = time.perf_counter()
            await one(payload)
            echo.append(time.perf_counter() - began)
            began = time.perf_counter()
            await s.edge.Probe(edge_pb2.ProbeRequest(), metadata=s.metadata)
            probe.append(time.perf_counter() - began)
            if number % 4 == 0:
                began = time.perf_counter()
                call = two(payload)
                await call.read()
                await call.read()
                stream.append(time.perf_counter() - began)
                await call.read()
                began = time.perf_counter()
                ask.append((await read(s.ask(number, 1), began)).first_s or 0.0)
        direct = (await s.state("direct"))["direct"]
    echo, probe = echo[WARM:], probe[WARM:]
    stream, ask = stream[WARM // 4 :], ask[WARM // 4 :]
    median = statistics.median
    return {
        "echo_p50_ms": 1000 * median(echo),
        "probe_p50_ms": 1000 * median(probe),
        "unary_ratio": median(probe) / median(echo),
        "echo_second_message_p50_ms": 1000 * median(stream),
        "ask_first_text_p50_ms": 1000 * median(ask),
        "direct_first_text_p50_ms": 1000 * median(direct),
        "first_text_overhead_p50_ms": 1000 * (median(ask) - median(direct)),
    }


async def fair(wearers: int = 200, seconds: float = 10.0, token_s: float = 0.02) -> Numbers:
    """Many answers at once: does each get its share, and does the first text of the unlucky come late?"""
    async with served(first_s=token_s, token_s=token_s, slots=wearers) as s:
        await read(s.ask(10**6, 1), time.perf_counter())
        until = time.perf_counter() + seconds
        asked = [_asked(s, number, until) for number in range(wearers)]
        answers = await asyncio.gather(*asked)
        tokens = [a.tokens for a in answers]
        firsts = [a.first_s for a in answers if a.first_s is not None]
        await asyncio.sleep(GRACE_S)
        state = await s.state()
    return {
        "wearers": wearers,
        "answered": len(firsts),
        "tokens_min": min(tokens),
        "tokens_max": max(tokens),
        "tokens_ratio": max(tokens) / max(1, min(tokens)),
        "tokens_of_engine": seconds / token_s,
        "first_p50_ms": 1000 * statistics.median(firsts),
        "first_p99_ms": 1000 * quantile(firsts, 0.99),
        "first_ratio": quantile(firsts, 0.99) / statistics.median(firsts),
        "live_left": state["live"],
    }


async def _asked(s: Served, number: int, until: float) -> Any:
    began = time.perf_counter()
    return await read(s.ask(number, 1000), began, until)


async def cancels(asks: int = 10_000, together: int = 100, seed: int = 1) -> Numbers:
    """Answers read to the end, dropped, cancelled and asked twice, at random: what is left behind?"""
    chance = random.Random(seed)
    async with served(token_s=0.002, slots=64, queue=together * 2) as s:
        turn, codes = asyncio.Semaphore(together), Counter[str]()

        async def one(number: int) -> None:
            async with turn:
                how, most = chance.choice(("end", "drop", "cancel", "twice")), chance.randrange(1, 8)
                began = time.perf_counter()
                if how == "twice":  # a hedge or a retry: the second joins the first
                    first, second = s.ask(number, 8), s.ask(number, 8)
                    got = await asyncio.gather(read(first, began, most=most), read(second, began))
                    codes[f"twice {got[1].code}"] += 1
                    return
                answer = await read(s.ask(number, 8), began, most=most if how != "end" else 100)
                if how == "cancel":
                    stub = s.assists[number % len(s.assists)]
                    await stub.Cancel(pb.CancelRequest(request_id=f"q{number}"), metadata=s.metadata)
                codes[f"{how} {answer.code or 'left'}"] += 1

        states = []
        for block in range(5):
            size = asks // 5
            await asyncio.gather(*(one(block * size + n) for n in range(size)))
            await asyncio.sleep(GRACE_S)
            states.append(await s.state())
    last = states[-1]
    return {
        "asks": asks,
        "outcomes": dict(sorted(codes.items())),
        "live_left": last["live"],
        "engine_at_work": last["at_work"],
        "places_busy": last["busy"],
        "tasks_by_block": [state["tasks"] for state in states],
        "rss_mb_by_block": [round(state["rss"] / 2**20, 1) for state in states],
        "kept_answers": last["kept"],
    }


async def load(rate: float = 40.0, seconds: float = 20.0, slots: int = 8, seed: int = 1) -> Numbers:
    """Questions that come when they come (Poisson), whatever became of those before; times count from when
    they should have been asked, so that a slow server hides nothing."""
    chance = random.Random(seed)
    async with served(first_s=0.05, token_s=0.01, slots=slots) as s:
        await read(s.ask(10**6, 1), time.perf_counter())
        began, due = time.perf_counter(), 0.0
        asked: list[asyncio.Future[Answer]] = []
        budget = pb.Budget(first_token_ms=1500)
        while due < seconds:
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
            call = s.ask(len(asked), chance.randrange(5, 40), budget=budget)
            asked.append(asyncio.ensure_future(read(call, began + due)))
        answers = await asyncio.gather(*asked)
    firsts = [a.first_s for a in answers if a.first_s is not None]
    codes = Counter(a.code for a in answers)
    return {
        "asked_a_second": round(len(answers) / seconds, 1),
        "answered": len(firsts),
        "codes": dict(sorted(codes.items())),
        "first_p50_ms": 1000 * statistics.median(firsts),
        "first_p99_ms": 1000 * quantile(firsts, 0.99),
        "first_max_ms": 1000 * max(firsts),
        "late": sum(f > 1.5 for f in firsts),
    }


def machine() -> str:
    """What else the machine was doing."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
