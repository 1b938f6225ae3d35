"""How long a decision takes: the rule alone, and with all that it rests on gathered."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import click

from os1_edge.clock import Clock
from os1_edge.offload.budget import budgets
from os1_edge.offload.channels import Trust
from os1_edge.offload.engine import Message
from os1_edge.offload.link import Link
from os1_edge.offload.network import Quiet
from os1_edge.offload.remote import RemoteEngine
from os1_edge.offload.route import Cloud, Rules, decide
from os1_edge.offload.router import Router

PROMPT = [
    Message("system", "You are OS-1. " * 40),
    *(Message("user" if n % 2 == 0 else "assistant", f"{n} " + "words " * 40) for n in range(12)),
    Message("user", "Where did I leave my keys?"),
]
PICTURE = bytes(60_000)
ROUNDS = 5


class Silent:
    """No model: a decision needs none."""

    name = "none"
    sees = True

    async def prime(self, messages: Any) -> None:
        """Nothing to read."""

    def stream(self, *_: Any, **__: Any) -> Any:
        """Never called."""
        raise NotImplementedError


async def measure(calls: int) -> dict[str, float]:
    """Microseconds a decision, median of rounds."""
    far = RemoteEngine("127.0.0.1:1", None, Trust(), Quiet())
    router = Router(
        Silent(),
        far,
        Clock(),
        Rules(images=True),
        reencode=lambda data, side, quality: data,
        chance=random.Random(0),
    )
    watch = router.watch
    assert watch is not None
    watch.state = Link.ONLINE
    for n in range(20):
        watch.path.rtt.sample(0.04 + n / 1000)
        watch.path.uplink.add(100_000.0 + n)
        watch.answered("reply", 500, 0.1, 0.01 * n, inside=True, missed=False)
    watch.path.at_s = 0.0
    await router.prime(PROMPT[:-1])
    budget, showing = budgets()["caption"], [*PROMPT[:-1], Message("user", "What is this?", (PICTURE,))]
    plain, seen = router.job(PROMPT, "reply"), router.job(showing, "caption")
    state, looking = router.state(plain), router.state(seen)
    assert isinstance(state.cloud, Cloud)

    def whole(messages: list[Message], task: Any) -> None:
        job = router.job(messages, task)
        decide(router.state(job), job, budget)

    return {
        "decide_us": _us(lambda: decide(state, plain, budget), calls),
        "decide_with_pictures_us": _us(lambda: decide(looking, seen, budget), calls),
        "whole_us": _us(lambda: whole(PROMPT, "reply"), calls),
        "whole_with_pictures_us": _us(lambda: whole(showing, "caption"), calls),
    }


def _us(work: Callable[[], object], calls: int) -> float:
    took = []
    for _ in range(ROUNDS):
        began = perf_counter()
        for _ in range(calls):
            work()
        took.append((perf_counter() - began) / calls * 1e6)
    return round(median(took), 2)


@click.command("route")
@click.option("--calls", type=click.IntRange(1), default=2000, show_default=True, help="Decisions a round.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def main(calls: int, as_json: bool) -> None:
    """How long the router takes to decide, in microseconds."""
    found = asyncio.run(measure(calls))
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name.removesuffix('_us').replace('_', ' '):24} {value:8.1f} us")
