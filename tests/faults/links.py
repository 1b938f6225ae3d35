"""The whole link matrix, and the promises that need a real connection: python tests/faults/links.py.

Prints a JSON result. ``--every 10`` takes each tenth cell; ``--jobs 2`` lives two cells at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

from matrix import FAULTS, cells, live, summary
from proxy import Toxics
from turns import certificate, hedged, line


def virtual(every: int, jobs: int) -> dict[str, Any]:
    """Every cell on the virtual clock, over a modelled link."""
    logging.disable(logging.WARNING)
    chosen = list(cells(FAULTS, every))
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(live, chosen, chunksize=8))
    by_fault = {
        fault: {k: v for k, v in summary(of).items() if k in ("cells", "in_time", "whole", "both_at_work")}
        for fault in FAULTS
        if (of := [f for f in found if f.cell.fault == fault])
    }
    return summary(found) | {"by_fault": by_fault}


async def comes_back(tls: tuple[Path, Path], hole_s: float) -> float:
    """Seconds from the end of a black hole to the server's first word over TLS; the wearer goes on asking."""
    async with line(tls, Toxics(latency=0.02)) as it:
        await it.settled()
        await it.talk(3)
        it.proxy.toxics = Toxics(hole=True)
        loop = asyncio.get_running_loop()
        until = loop.time() + hole_s
        while loop.time() < until - 0.5:
            await it.ask()
            await asyncio.sleep(0.25)
        await asyncio.sleep(max(0.0, until - loop.time()))
        it.proxy.toxics = Toxics(latency=0.02)
        while (turn := await it.ask()).side != "cloud":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return turn.at_s + turn.first_s - until


async def real(hole_s: float, times: int) -> dict[str, Any]:
    """What needs connections: several black holes at once, each at another phase, and hedged questions."""
    with tempfile.TemporaryDirectory() as folder:
        tls = certificate(Path(folder))

        async def later(n: int) -> float:
            await asyncio.sleep(0.37 * n)
            return await comes_back(tls, hole_s)

        back = sorted(await asyncio.gather(*(later(n) for n in range(times))))
        return {
            "black_hole_s": hole_s,
            "first_word_after_s": {"median": round(back[len(back) // 2], 2), "worst": round(back[-1], 2)},
            "hedged": await hedged(tls, 2000),
        }


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--hole", type=float, default=40.0, help="seconds of the real black hole; 0: none")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    began = perf_counter()
    found: dict[str, Any] = {"virtual": virtual(chosen.every, chosen.jobs)}
    if chosen.hole:
        found["real"] = asyncio.run(real(chosen.hole, 6))
    found["took_s"] = round(perf_counter() - began)
    text = json.dumps(found, indent=1)
    if chosen.out:
        chosen.out.write_text(text + "\n", "utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
