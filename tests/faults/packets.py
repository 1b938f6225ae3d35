"""Turns over real packets, delayed and lost: the server in one network namespace, the wearer in another.

``python tests/faults/packets.py`` prints what became of them as JSON; needs root, /dev/net/tun and iproute2.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import tun
from turns import ANSWER, ASKED, Device, Scripted, certificate

TOKEN = "packets"
PORT = 50443
BUDGET_S = 0.6


async def serve(cert: Path, key: Path) -> None:
    """A scripted server on all addresses of its namespace, until it is ended."""
    from os1_cloud.auth import Tokens
    from os1_cloud.core import Answerer
    from os1_cloud.server import Address, Server, read_tls

    tokens = Tokens({hashlib.sha256(TOKEN.encode()).hexdigest(): "wearer"})
    server = Server(Answerer(Scripted()), tokens, read_tls(cert, key))
    await server.start(Address("0.0.0.0", PORT))
    print("ready", flush=True)
    await asyncio.Event().wait()


async def talk(cert: bytes, seconds: float) -> None:
    """A wearer who asks all the time; a line of JSON a turn."""
    from os1_edge.clock import Clock
    from os1_edge.offload.budget import budgets
    from os1_edge.offload.channels import Trust
    from os1_edge.offload.network import Quiet
    from os1_edge.offload.remote import RemoteEngine
    from os1_edge.offload.router import Router

    far = RemoteEngine(f"{tun.FAR}:{PORT}", TOKEN, Trust(cert), Quiet())
    router = Router(Device(), far, Clock(), times=budgets(BUDGET_S), chance=random.Random(1))
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (at := loop.time() - began) < seconds:
        router.wearer_speaks()
        await asyncio.sleep(0.1)
        asked, first, text = loop.time(), 0.0, ""
        async for part in router.stream(ASKED, 64):
            first = first or loop.time() - asked
            text += part
        taken = router.journal.taken[-1]
        row = {
            "at_s": at,
            "first_s": first,
            "whole": text == ANSWER,
            "side": taken.answered,
            "both": taken.both,
        }
        print(json.dumps(row), flush=True)
    assert router.watch is not None
    print(json.dumps({"link": router.watch.told()}), flush=True)
    await router.close()


async def lived(
    weather: tun.Weather, seconds: float, hole: tuple[float, float] | None = None, bits_s: float = 0.0
) -> dict[str, Any]:
    """Turns in ``weather``, with a black hole between two seconds; what became of them."""
    with tempfile.TemporaryDirectory() as folder:
        cert, key = certificate(Path(folder), f",IP:{tun.FAR}")
        async with tun.Relay(weather, bits_s) as relay:
            server = await _in(relay.far, "serve", str(cert), str(key))
            wearer = None
            try:
                assert server.stdout is not None
                assert await asyncio.wait_for(server.stdout.readline(), 30) == b"ready\n"
                wearer = await _in(relay.near, "talk", str(cert), str(seconds))
                assert wearer.stdout is not None
                rows = [json.loads(await asyncio.wait_for(wearer.stdout.readline(), 30))]
                if hole is not None:
                    await asyncio.sleep(hole[0])
                    weather.hole = True
                    await asyncio.sleep(hole[1] - hole[0])
                    weather.hole = False
                rows += [json.loads(line) async for line in wearer.stdout]
            finally:
                for process in (server, wearer):
                    if process is not None and process.returncode is None:
                        process.kill()
                        await process.wait()
    link = rows.pop()["link"]
    return {
        "turns": len(rows),
        "in_time": sum(r["first_s"] <= BUDGET_S * 1.1 for r in rows),
        "whole": sum(r["whole"] for r in rows),
        "both": sum(r["both"] for r in rows),
        "by_server": sum(r["side"] == "cloud" for r in rows),
        "rtt_ms": round(1000 * link["rtt_s"]) if link["rtt_s"] is not None else None,
        "rows": rows,
    }


async def _in(space: str, *role: str) -> asyncio.subprocess.Process:
    command = ["ip", "netns", "exec", space, sys.executable, __file__, *role]
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)


CELLS = (
    ("wifi", tun.Weather(0.01, 0.005), 0.0),
    ("4G", tun.Weather(0.03, 0.02, 0.005), 5e6),
    ("train", tun.Weather(0.04, 0.03, 0.02), 1e6),
    ("3G", tun.Weather(0.1, 0.05, 0.01), 256e3),
    ("far away", tun.Weather(0.25, 0.02), 5e6),
    ("storm", tun.Weather(0.03, 0.02, 0.2), 1e6),
)


async def main() -> None:
    """All cells, and a lift: 40 s of black hole."""
    if (why := tun.missing()) is not None:
        sys.exit(f"no packets here: {why}")
    found = {}
    for name, weather, bits_s in CELLS:
        found[name] = await lived(weather, 12.0, bits_s=bits_s)
        del found[name]["rows"]
    lift = await lived(tun.Weather(0.02, 0.005), 55.0, (4.0, 44.0))
    rows = lift.pop("rows")
    over = rows[0]["at_s"] + rows[0]["first_s"] + 44.0
    back = next(
        (r["at_s"] + r["first_s"] - over for r in rows if r["side"] == "cloud" and r["at_s"] > over), None
    )
    found["lift"] = lift | {"first_word_after_s": back}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", cert, key]:
            asyncio.run(serve(Path(cert), Path(key)))
        case ["talk", cert, seconds]:
            asyncio.run(talk(Path(cert).read_bytes(), float(seconds)))
        case _:
            asyncio.run(main())
