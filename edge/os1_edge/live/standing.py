"""How the companion stands, told to whoever watches when it changes: what it does, whether it looks, what the
link to the server is like, and how much of the device is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from os1_edge.app import Os1
from os1_edge.app.trace import tell_failure
from os1_edge.device.power import Pace, Power
from os1_edge.live.record import Watched
from os1_edge.offload.link import WHY, Link, works
from os1_edge.offload.watch import Watch

STATE_S = 0.1
"""How often it is looked at."""

AGAIN_S = 20.0
"""After this, what told of the companion and failed is begun again."""

QUALITY = {Link.ONLINE: "good", Link.METERED: "metered", Link.DEGRADED: "poor"}


async def kept_up(what: str, work: Callable[[], Awaitable[None]], wait_s: float = AGAIN_S) -> None:
    """Does ``work``, which goes on for ever; one that fails is told of in the log, and begun again."""
    while True:
        try:
            await work()
        except Exception as e:
            tell_failure(what, e)
        await asyncio.sleep(wait_s)


async def tell_standing(os1: Os1, watched: Watched) -> None:
    """Tells of each change, until it is cancelled."""
    told: dict[str, dict[str, Any]] = {}
    while True:
        now: dict[str, dict[str, Any]] = {
            "state": {"kind": "state", "state": os1.state},
            "looking": {"kind": "looking", "away": os1.looking.away},
            "link": link_event(os1.link),
        }
        for kind, event in now.items():
            if told.get(kind) != event:
                watched.tell(event)
        told = now
        await asyncio.sleep(STATE_S)


def link_event(watch: Watch | None) -> dict[str, Any]:
    """The way to the server: "none" (there is no server), "unknown", "off", or its quality. The round trip
    is rounded, so that not every probe is news."""
    if watch is None:
        return {"kind": "link", "quality": "none", "why": "Everything is done on the device.", "rtt_ms": None}
    if not watch.probes:
        return {"kind": "link", "quality": "unknown", "why": "It was not asked yet.", "rtt_ms": None}
    quality, why = QUALITY.get(watch.state, "off"), WHY[watch.state]
    if works(watch.state) and watch.breaker.open:
        quality, why = "off", "the server gives no answers in time"
    rtt_s = watch.path.rtt.srtt_s if quality != "off" else None
    rtt_ms = None if rtt_s is None else (round(rtt_s * 1000, -1) or 10)
    return {"kind": "link", "quality": quality, "why": why[0].upper() + why[1:] + ".", "rtt_ms": rtt_ms}


def power_event(power: Power, pace: Pace) -> dict[str, Any]:
    """Battery and heat, and the step that they ask for."""
    battery = None if power.battery_percent is None else round(power.battery_percent)
    told = {"battery": battery, "charging": power.charging, "step": pace.step.name, "reason": pace.reason}
    return {"kind": "power", **told}
