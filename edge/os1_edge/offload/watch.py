"""Watches the link: probes it, keeps the estimates, and writes one line in the log per outage."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection
from contextlib import suppress
from typing import Literal

from os1_edge.clock import Clock
from os1_edge.offload.breaker import Breaker
from os1_edge.offload.engine import Task
from os1_edge.offload.estimate import Networks, PathEstimates, Quantiles
from os1_edge.offload.far import Failure, Far, FarError, Probed, Stranger, TaskLoad
from os1_edge.offload.link import TRANSITIONS, Event, Link, Schedule, answered, works
from os1_edge.offload.network import NO_HINTS, Network, costs
from os1_edge.offload.offers import Offers
from os1_edge.offload.route import Cloud

log = logging.getLogger(__name__)

PROBE_S = 1.0
"""Probes of a broken link begin so long after one another, and of one that works wait so long at least."""

PATIENCE_S = 9.0
"""A probe of a broken link is given up after this: three round trips of the slowest that is any use."""

PADDING = 16_384
"""Bytes sent with a probe where the uplink's rate is not known; none over a network that costs."""

RATE_KEPT_S = 60.0
"""After this an uplink's rate is measured again."""

QUEUE_DECAY_S = 5.0
"""A server's word on its queue is half forgotten after this."""

UNKNOWN_FIRST = (0.05, 0.15, 0.3)
"""Seconds to a server's first text (p10, p50, p95) before anything is known of it. Hopeful: a server that is
never asked is never known, and the device keeps the budget anyway."""

FORGOTTEN_S = 120.0
"""After this what a server was like counts no more; what it says of itself, or hope, does."""

HOW = {
    Event.FORGED: "is behind a login page",
    Event.REFUSED: "refuses this device's token or certificate",
    Event.OUTDATED: "shows a certificate that does not hold on this day",
}
"""What ended a link, of the server; whatever else did, it cannot be reached."""

FOUND: dict[Stranger, Event] = {
    "": Event.LOST,
    "forged": Event.FORGED,
    "outdated": Event.OUTDATED,
    "barred": Event.REFUSED,
}
"""What a handshake showed of a server that answers no probe."""

SIZES = 500
"""Prompt tokens that part small questions from large ones."""


class Watch:
    """The link to one server as far as it is known. Use it in one loop."""

    def __init__(self, far: Far, clock: Clock, chance: random.Random, metered: Collection[str] = ()) -> None:
        """``metered``: interfaces that cost, as shell patterns."""
        self._far, self._clock, self._patterns = far, clock, metered
        self._networks = Networks()
        self._schedule = Schedule(chance)
        self._first: dict[tuple[Task, bool], Quantiles] = {}
        self._first_at: dict[tuple[Task, bool], float] = {}
        self._loads: dict[Task, TaskLoad] = {}
        self._loads_at = self._busy_at = float("-inf")
        self._busy_s = 0.0
        self._rate_at = float("-inf")
        self._wake, self._up = asyncio.Event(), asyncio.Event()
        self._out: Literal["", "link", "server"] = ""
        """What is at fault in the present outage."""
        self._looking: set[asyncio.Task[Probed]] = set()
        """Bounded by ``PATIENCE_S``: one a second."""
        self.breaker = Breaker(chance)
        self.state = Link.OFFLINE
        self.why = "not looked at yet"
        self.network: Network = NO_HINTS
        self._costs: bool | None = None
        self.metered = self.draining = self.in_doubt = False
        """``in_doubt``: a question went unanswered, and no probe has been since."""
        self.probes = self.outages = 0
        self.offers: Offers | None = None
        """What the server said last that it is."""

    @property
    def path(self) -> PathEstimates:
        """What is known of the way through the present network."""
        return self._networks.at(self.network.name)

    async def run(self) -> None:
        """Probes until it is cancelled."""
        self._enter(self._far.around.network())
        listening = asyncio.create_task(self._far.around.changes(self._changed))
        try:
            while True:
                wait = self._schedule.due_at - self._clock.now()
                if wait > 0.001:  # less may not move a clock on
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._wake.wait(), wait)
                    self._wake.clear()
                    continue
                await self._probe()
        finally:
            self._stop_looking()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def comes_up(self) -> None:
        """Returns when a probe has shown a way to the server, now or before."""
        await self._up.wait()

    def wearer_speaks(self) -> None:
        """The wearer began to speak: a question may follow."""
        self._schedule.spoke(self._clock.now(), self.state)
        self._wake.set()

    def told_costs(self, costs: bool | None) -> None:
        """Whether the present network costs, as the system knows; ``None``: the interface's name tells."""
        self._costs, before = costs, self.metered
        self._weigh()
        if self.metered != before:
            self._probe_now()

    def cloud(self, task: Task, tokens: int, reading_s: float = 0.0) -> Cloud | None:
        """What to expect of the server for such a question; None: it never answered a probe from here.
        ``reading_s``: it has been reading what comes before for so long, and is not through; as far as
        anybody can tell, that takes as long again."""
        path, now = self.path, self._clock.now()
        if path.rtt.srtt_s is None:
            return None
        unsure, late = path.unsure(now), path.late(task)
        p50, p95, known = self._first_text(task, tokens)
        if reading_s > p50:
            p50, p95, known = reading_s, max(2 * reading_s, p95), True
        return Cloud(
            srtt_s=path.rtt.srtt_s,
            # What is half forgotten may be half as good: trusted like a first sample (RFC 6298, 2.2).
            rttvar_s=path.rtt.rttvar_s + unsure * path.rtt.srtt_s / 2,
            uplink_p50=path.uplink.p50,
            uplink_p10=path.uplink.p10 * (1 - unsure / 2),
            queue_s=self._queue_s(task, now),
            first_p50_s=p50,
            first_p95_s=p95,
            known=known,
            late_s=late.p90_s if now - late.at_s < FORGOTTEN_S else None,
        )

    @property
    def no_way(self) -> str:
        """Why there is no way to the server, where the state alone does not tell."""
        return self.why if self.why in (Event.REFUSED, Event.OUTDATED) else ""

    def serves(self, task: Task) -> bool:
        """Whether the server answers such questions, as far as it says."""
        return not self._loads or task in self._loads

    def knows(self, feature: str) -> bool:
        """Whether the server has an ability, as far as it says (``offers``)."""
        return self.offers is None or feature in self.offers.features

    def took(self, seconds: float, up_bytes: int) -> None:
        """The server took a question after ``seconds``. No sample of the round trip, as the upload is in it,
        but one of the uplink."""
        path = self.path
        path.at_s = self._clock.now()
        if path.rtt.srtt_s is not None:
            path.uploaded(up_bytes, seconds - path.rtt.srtt_s)

    def answered(
        self, task: Task, tokens: int, thought_s: float, late_s: float, *, inside: bool, missed: bool
    ) -> None:
        """The server's first text came ``thought_s`` after it took the question, ``late_s`` after its
        predicted median; ``inside`` its upper bound; ``missed``: after the budget."""
        self._quantiles(task, tokens).add(thought_s)
        now = self._first_at[task, tokens > SIZES] = self._clock.now()
        self.path.late(task).outcome(now, late_s, inside=inside)
        self.breaker.answered(now, late=missed)
        self._tell_of_breaker("is mostly late")
        if not missed:
            self._recovered()

    def missed(self, task: Task, waited_s: float, late_s: float, *, overdue: bool, inside: bool) -> None:
        """The server had said no word after ``waited_s``, when the device's was there. ``overdue``: it should
        have taken the question by then; ``inside``: it might still have been in time, so it proves little."""
        if not inside:
            now = self._clock.now()
            self.path.late(task).outcome(now, late_s, inside=False)
            self.breaker.answered(now, late=True)
            self._tell_of_breaker("is mostly late")
        if overdue:
            self.path.rtt.at_least(waited_s)
            self._silent()

    def refused(self, task: Task, tokens: int, expected_s: float) -> None:
        """The server would have been late, by its own word: its first text after ``expected_s``."""
        self._quantiles(task, tokens).add(expected_s)
        self._first_at[task, tokens > SIZES] = self._clock.now()

    def failed(self, kind: Failure, retry_after_s: float) -> None:
        """A question failed."""
        now = self._clock.now()
        if kind in ("busy", "late"):
            self._busy_s, self._busy_at = max(retry_after_s, 0.5), now
        elif kind == "ending":
            self.draining = True
            self._probe_now()
        elif kind == "unreachable":
            self.breaker.failed(now)
            self._silent()
        elif kind != "unfit":  # that one is this question's fault
            self.breaker.failed(now)
        self._tell_of_breaker("gives no answers")

    def _silent(self) -> None:
        self.in_doubt = True
        self._happened(Event.SILENT)
        self._probe_now()

    def _tell_of_breaker(self, how: str) -> None:
        if self.breaker.open:
            self._lost_it(how, "server")

    def told(self) -> dict[str, object]:
        """The link and the estimates, for people and programs."""
        path, rtt = self.path, self.path.rtt
        return {
            "link": self.state.value,
            "why": self.why,
            "metered": self.metered,
            "network": self.network.name,
            "breaker_open": self.breaker.open,
            "draining": self.draining,
            "server": None if (o := self.offers) is None else [o.node, o.version, *o.models],
            "rtt_s": None if rtt.srtt_s is None else round(rtt.srtt_s, 4),
            "rtt_deviation_s": round(rtt.rttvar_s, 4),
            "uplink_bytes_s": round(path.uplink.p50),
            "uplink_low_bytes_s": round(path.uplink.p10),
            "late_s": {task: late.p90_s for task, late in path.lateness.items()},
            "inside": {task: round(late.inside, 3) for task, late in path.lateness.items()},
            "networks_known": len(self._networks),
            "probes": self.probes,
            "outages": self.outages,
            "first_text_s": {
                f"{task}, {'long' if long else 'short'}": [round(q.p50, 3), round(q.p95, 3), q.count]
                for (task, long), q in self._first.items()
            },
        }

    def _probe_now(self) -> None:
        self._schedule.now(self._clock.now())
        self._wake.set()

    def _changed(self) -> None:
        self._stop_looking()
        self._enter(self._far.around.network())
        self._happened(Event.CHANGED if self.network.up else Event.NO_ROUTE)
        self._probe_now()

    def _enter(self, network: Network) -> None:
        self.network, self._costs = network, None
        self._weigh()
        self._rate_at = float("-inf")

    def _weigh(self) -> None:
        by_name = costs(self.network.interface, self._patterns)
        self.metered = by_name if self._costs is None else self._costs

    async def _probe(self) -> None:
        began, network = self._clock.now(), self.network
        self.probes += 1
        up, ends = works(self.state), self.draining
        # Behind its name, or at another address, there may be one that does not end.
        event = await (self._look() if up and not ends else self._look_for_a_way())
        if network is not self.network:  # another's news
            return
        self._happened(event)
        now, good = self._clock.now(), works(self.state)
        if self.breaker.probe_due(now):
            self.breaker.probed(now, good=good)
        self._schedule.probed(began, now, self.state)
        if good and not up and not self.metered and self._rate_at == float("-inf"):
            self._schedule.now(now)  # once more, with padding
        elif good and self.draining and not ends:
            self._schedule.now(now)

    async def _look(self) -> Event:
        """Probes a link that worked."""
        stale = self._clock.now() - self._rate_at > RATE_KEPT_S
        padding = PADDING if stale and not self.metered else 0
        path = self.path
        wait = min(max(PROBE_S, 2 * path.rtt.rto_s), PATIENCE_S)
        if padding:
            wait = min(wait + 2 * padding / path.uplink.p10, PATIENCE_S)
        try:
            found = await asyncio.wait_for(self._far.probe(padding, wait), wait + 0.2)
        except (FarError, TimeoutError) as e:
            path.rtt.lost()
            return Event.REFUSED if isinstance(e, FarError) and e.kind == "refused" else Event.LOST
        return self._measured(path, found, padding)

    async def _look_for_a_way(self) -> Event:
        """Probes a link that did not work: each second another, beside those that are still under way; the
        first that comes through is the way."""
        newest = asyncio.create_task(self._far.probe(0, PATIENCE_S, fresh=True))
        self._looking.add(newest)
        done, _ = await asyncio.wait(self._looking, timeout=PROBE_S, return_when=asyncio.FIRST_COMPLETED)
        self._looking -= done
        good = [task for task in done if not task.cancelled() and task.exception() is None]
        if good:
            self._stop_looking()
            return self._measured(self.path, good[0].result(), 0)
        if newest not in done:
            return Event.LOST
        error = newest.exception()
        if isinstance(error, FarError) and error.kind == "refused":
            return Event.REFUSED
        return FOUND[await self._far.diagnose(PROBE_S)]

    def _stop_looking(self) -> None:
        for task in self._looking:
            task.cancel()
        self._looking.clear()

    def _measured(self, path: PathEstimates, found: Probed, padding: int) -> Event:
        now = self._clock.now()
        if padding:
            if path.rtt.srtt_s is not None:
                path.uploaded(padding, found.rtt_s - path.rtt.srtt_s)
            self._rate_at = now
        else:
            path.rtt.sample(found.rtt_s)
        path.at_s = now
        self._loads, self._loads_at = dict(found.loads), now
        self.draining, self.offers = found.draining, found.offers or self.offers
        rtt = path.rtt.srtt_s if padding and path.rtt.srtt_s is not None else found.rtt_s
        return answered(rtt, metered=self.metered)

    def _happened(self, event: Event) -> None:
        before, self.state = self.state, TRANSITIONS[self.state, event]
        self.why = event.value
        if event in (Event.ANSWERED, Event.ANSWERED_LATE, Event.ANSWERED_METERED):
            self.in_doubt = False
            self._up.set()
            if self._out == "link":
                self._recovered()
        elif (works(before) or event in HOW) and not works(self.state):
            self._lost_it(HOW.get(event, "cannot be reached"), "link")

    def _lost_it(self, how: str, fault: Literal["link", "server"]) -> None:
        if not self._out:
            self._out = fault
            self.outages += 1
            log.warning("the offload server %s; until it answers, replies are made here", how)

    def _recovered(self) -> None:
        if self._out:
            self._out = ""
            log.info("the offload server answers again")

    def _quantiles(self, task: Task, tokens: int) -> Quantiles:
        return self._first.setdefault((task, tokens > SIZES), Quantiles(*UNKNOWN_FIRST))

    def _first_text(self, task: Task, tokens: int) -> tuple[float, float, bool]:
        """(p50, p95) of the seconds from a place in the engine to the first text; whether that is known."""
        kind = task, tokens > SIZES
        own, load = self._quantiles(task, tokens), self._loads.get(task)
        stale = self._clock.now() - self._first_at.get(kind, float("-inf")) > FORGOTTEN_S
        if (stale or own.count < 3) and load is not None and load.first_token_s > 0:
            return load.first_token_s, load.first_token_s + 4 * load.deviation_s, True
        if stale:
            return UNKNOWN_FIRST[1], UNKNOWN_FIRST[2], False
        return own.p50, own.p95, True

    def _queue_s(self, task: Task, now: float) -> float:
        load = self._loads.get(task)
        told = load.wait_s * _left(now - self._loads_at) if load is not None else 0.0
        return max(told, self._busy_s * _left(now - self._busy_at))


def _left(age_s: float) -> float:
    """What is left of a word on a queue."""
    return float(0.5 ** (age_s / QUEUE_DECAY_S))
