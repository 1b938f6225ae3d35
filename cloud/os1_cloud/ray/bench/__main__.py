"""`python -m os1_cloud.ray.bench [NAME...]`: prints a table of each measure."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import click

from os1_cloud.bench.measures import machine
from os1_cloud.ray.bench.measures import MEASURES


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(MEASURES)))
def bench(names: tuple[str, ...]) -> None:
    """Measure front door and Ray on this machine, with a scripted engine: all measures, or those named."""
    if len(names) != 1:  # a process of its own for each: Ray keeps state of a cluster that is gone
        for name in names or MEASURES:
            subprocess.run([sys.executable, "-m", __package__, name], check=True)
        return
    click.echo(f"-- {names[0]}")
    for what, value in asyncio.run(MEASURES[names[0]]()).items():
        click.echo(f"{what:28} {value:.3f}" if isinstance(value, float) else f"{what:28} {value}")
    click.echo(machine())


if __name__ == "__main__":
    bench(prog_name="python -m os1_cloud.ray.bench")
