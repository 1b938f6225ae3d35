"""What the link to the server is good for: a table of states. Pure.

The truth is our own probe over TLS to a server whose certificate is checked; neither a captive portal nor an
operating system that says "connected" can fake it. What the system says only decides when to probe.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import StrEnum

from os1_edge.offload.breaker import BackOff


class Link(StrEnum):
    """States."""

    OFFLINE = "offline"
    CAPTIVE = "captive"
    METERED = "metered"
    DEGRADED = "degraded"
    ONLINE = "online"


class Event(StrEnum):
    """What happens to a link."""

    NO_ROUTE = "there is no network"
    CHANGED = "the network changed"
    ANSWERED = "the server answered a probe"
    ANSWERED_LATE = "the server answered a probe late"
    ANSWERED_METERED = "the server answered a probe over a network that costs"
    LOST = "the server did not answer a probe"
    REFUSED = "the server refuses this device: its token or certificate is wrong, withdrawn or too old"
    OUTDATED = "the server's certificate does not hold on this day: it has expired, or the date here is wrong"
    FORGED = "somebody else answered in the server's place"
    SILENT = "the server said nothing to a question in time"


_ALWAYS = {
    Event.NO_ROUTE: Link.OFFLINE,
    Event.CHANGED: Link.OFFLINE,
    Event.ANSWERED: Link.ONLINE,
    Event.ANSWERED_LATE: Link.DEGRADED,
    Event.ANSWERED_METERED: Link.METERED,
    Event.REFUSED: Link.OFFLINE,
    Event.OUTDATED: Link.OFFLINE,
    Event.FORGED: Link.CAPTIVE,
}
"""Events after which it does not matter what was before."""

_WORKS = (Link.ONLINE, Link.METERED, Link.DEGRADED)

TRANSITIONS: dict[tuple[Link, Event], Link] = {
    **{(state, event): to for state in Link for event, to in _ALWAYS.items()},
    # One lost probe is a lost packet, two are an outage.
    (Link.ONLINE, Event.LOST): Link.DEGRADED,
    (Link.METERED, Event.LOST): Link.DEGRADED,
    (Link.DEGRADED, Event.LOST): Link.OFFLINE,
    (Link.CAPTIVE, Event.LOST): Link.OFFLINE,
    (Link.OFFLINE, Event.LOST): Link.OFFLINE,
    # A question that stays unanswered may be the server's fault; the probe that it sets off decides.
    **{(state, Event.SILENT): Link.DEGRADED for state in _WORKS},
    (Link.CAPTIVE, Event.SILENT): Link.CAPTIVE,
    (Link.OFFLINE, Event.SILENT): Link.OFFLINE,
}

LATE_S = 1.0
"""A round trip above this is no link for a talk."""

WHY = {
    Link.OFFLINE: "the server cannot be reached",
    Link.CAPTIVE: "a login page stands between here and the server",
    Link.METERED: "the network costs by the byte",
    Link.DEGRADED: "the link is poor",
    Link.ONLINE: "the link is good",
}
"""The states in words."""


def works(state: Link) -> bool:
    """Whether a question may be asked over a link in this state."""
    return state in _WORKS


def answered(rtt_s: float, *, metered: bool) -> Event:
    """What a probe's answer after ``rtt_s`` means."""
    if rtt_s > LATE_S:
        return Event.ANSWERED_LATE
    return Event.ANSWERED_METERED if metered else Event.ANSWERED


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    """How long to wait between probes; seconds."""

    down_active_s: float = 1.0
    """From probe to probe while the link is down and the wearer talks: an outage's end is noticed in time."""
    up_active_s: float = 10.0
    up_idle_s: float = 30.0
    active_for_s: float = 60.0
    """After the wearer last spoke."""
    rules: BackOff = field(default_factory=BackOff)
    """While the link is down and nobody talks: radios cost battery."""


class Schedule:
    """When the next probe is due."""

    def __init__(self, chance: random.Random, times: ProbeTimes = ProbeTimes()) -> None:  # frozen
        self._chance, self._times = chance, times
        self._lost = 0
        self._spoke_at = float("-inf")
        self.due_at = 0.0
        """By the caller's clock."""

    def now(self, now: float) -> None:
        """The network changed, or a question went unanswered: probe at once."""
        self.due_at = now
        self._lost = 0

    def spoke(self, now: float, state: Link) -> None:
        """The wearer began to speak. A link that is not known to work is looked at while they do, which also
        hides the handshake."""
        idle = now - self._spoke_at > self._times.active_for_s
        self._spoke_at = now
        if idle or state is not Link.ONLINE:
            self.due_at = min(self.due_at, now)

    def probed(self, began: float, now: float, state: Link) -> None:
        """A probe that ``began`` has ended; ``state`` is what became of the link."""
        active = now - self._spoke_at <= self._times.active_for_s
        if works(state):
            self._lost = 0
            steady = self._times.up_active_s if active else self._times.up_idle_s
            # One that hangs between states is looked at again soon.
            self.due_at = now + (self._times.down_active_s if state is Link.DEGRADED and active else steady)
            return
        wait = self._times.rules.wait_s(self._lost, self._chance)
        self._lost += 1
        self.due_at = max(now, began + min(wait, self._times.down_active_s)) if active else now + wait
