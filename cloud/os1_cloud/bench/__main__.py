"""`python -m os1_cloud.bench NAME`: prints one table."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import click

from os1_cloud.bench import measures
from os1_cloud.bench.measures import Numbers


@click.group()
def bench() -> None:
    """Measure the server with a scripted engine on this machine, over loopback."""


@bench.command()
@click.option("--calls", default=2000, show_default=True)
def overhead(calls: int) -> None:
    """What the server adds to gRPC and to the engine."""
    _show(measures.overhead(calls))


@bench.command()
@click.option("--wearers", default=200, show_default=True)
@click.option("--seconds", default=10.0, show_default=True)
def fair(wearers: int, seconds: float) -> None:
    """Whether each of many wearers gets their share."""
    _show(measures.fair(wearers, seconds))


@bench.command()
@click.option("--asks", default=10_000, show_default=True)
def cancels(asks: int) -> None:
    """What dropped and cancelled questions leave behind."""
    _show(measures.cancels(asks))


@bench.command()
@click.option("--rate", default=40.0, show_default=True, help="Questions a second.")
@click.option("--seconds", default=20.0, show_default=True)
@click.option("--slots", default=8, show_default=True)
def load(rate: float, seconds: float, slots: int) -> None:
    """Questions that come at random times, more than can be answered or fewer."""
    _show(measures.load(rate, seconds, slots))


def _show(work: Coroutine[None, None, Numbers]) -> None:
    for name, value in asyncio.run(work).items():
        click.echo(f"{name:28} {value:.3f}" if isinstance(value, float) else f"{name:28} {value}")
    click.echo(measures.machine())


if __name__ == "__main__":
    bench(prog_name="python -m os1_cloud.bench")
