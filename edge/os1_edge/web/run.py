"""``os1 run --browser``: the companion with a browser as its glasses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from os1_edge.config import Config
from os1_edge.faculties import Loading
from os1_edge.live.devices import Devices, own_power
from os1_edge.live.record import Watched
from os1_edge.live.run import companion, notified
from os1_edge.review.api import Review
from os1_edge.see.image import decode_image
from os1_edge.web.glasses import BrowserGlasses
from os1_edge.web.pairing import Doors
from os1_edge.web.server import make_app, own_addresses, served
from os1_edge.web.tls import certificate

HERE = ("localhost", "127.0.0.1", "::1")


async def run_in_browser(
    config: Config,
    memory_file: Path,
    key: bytes,
    watched: Watched,
    tell: Callable[[str], None],
    *,
    port: int,
    lan: bool,
    models: Loading | None = None,
) -> None:
    """Lives until it is cancelled.

    Args:
        config: the settings.
        memory_file: the wearer's memory.
        key: its key.
        watched: is told what happens.
        tell: prints a line for the wearer.
        port: where the page is served; 0: any free one.
        lan: serve it to the network as well, over TLS.
        models: see ``companion``.

    Raises:
        PortTaken: another program has the port.
    """
    glasses = BrowserGlasses(decode_image)
    devices = Devices(
        glasses.microphone, glasses.camera, glasses.speaker, own_power, in_a_room=BrowserGlasses.in_a_room
    )
    names = [*HERE, *(own_addresses() if lan else [])]
    tls, fingerprint = certificate(memory_file.parent, names) if lan else (None, "")
    async with companion(config, memory_file, key, devices, watched, models) as live:
        doors = Doors(lambda code: tell(f"the new code is {code}"))
        log_file = memory_file.with_name("turns.jsonl")
        memory = live.faculties.memory
        known = (memory, memory.embedder, memory_file, key, log_file)
        review = Review.of(*known, live.choices, live.choose, live.os1.forgot)
        app = make_app(live, glasses, doors, frozenset(names), review)
        async with served(app, ["0.0.0.0"] if lan else ["127.0.0.1"], port, tls) as bound:
            scheme = "https" if lan else "http"
            for name in names[len(HERE) :] if lan else HERE[:1]:
                tell(f"open {scheme}://{name}:{bound}/#{doors.code}")
            tell(f"the code to pair a browser is {doors.code}; Ctrl-C ends it")
            if lan:
                tell(f"the browser will warn: nobody signed this certificate. Its SHA-256 is {fingerprint}")
            async with notified():
                await live.life
