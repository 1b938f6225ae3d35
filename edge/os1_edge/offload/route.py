"""Where an answer is made: ``decide(state, job, budget)``. Pure, and quick: a decision takes microseconds.

What a decision rests on (``Cloud``, ``State``, ``Job``) is made anew for each and never changed. It is not
frozen all the same: frozen ones take seven times as long to make, which was a third of a decision.

The rule of docs/decisions/0011: ask the server where its first word is expected in time, have the device
begin at the last moment at which it still keeps the budget by itself, and leave the server out where asking
it would mostly be in vain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from os1_edge.offload.budget import Budget
from os1_edge.offload.engine import LanguageEngine, Message, Task
from os1_edge.offload.link import WHY, Link, works
from os1_edge.offload.offers import Offers

Policy = Literal["prefer-quality", "prefer-private", "prefer-battery"]
Route = Literal["local", "cloud"]

MARGIN_S = 0.05
"""Kept in hand before the last moment: a timer may fire late, a thread may wait for a core."""

NOTICE_S = 0.15
"""A server that has not even taken a question by so long after it should have is not waited for."""


FRESH = 16
"""Tokens of a question that nobody can have read ahead: the last second's."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A route with its reason in words."""

    route: Route
    """"cloud": the server, and the device too from ``hedge_at`` on if there is no word yet."""
    reason: str
    hedge_at: float | None = None
    """Seconds after the beginning at which the device begins as well; None: not before the server failed."""
    accept_by: float | None = None
    """Seconds after which the server must have taken the question; else the device begins then."""
    rung: int | None = None
    """Which rung of the picture ladder leaves; -1: pictures as they are; None: nothing leaves."""
    cloud_high_s: float | None = None
    """Within this the server's first word is expected; ``cloud_middle_s`` is as likely as not."""
    cloud_middle_s: float | None = None
    doubtful: bool = False
    """Whether the device will have to begin more often than not as a rule: both sides are set to work."""


class RoutedEngine(LanguageEngine, Protocol):
    """A language engine that says where its answers are made."""

    @property
    def decision(self) -> Decision:
        """Of the newest answer that somebody waits for; from its first text on."""
        ...

    async def open(self, messages: Sequence[Message]) -> None:
        """Reads what every prompt begins with; it tells nothing of the wearer, so that it may be kept."""
        ...


@dataclass(slots=True)
class Cloud:
    """What is known of the server and the way there; seconds, and bytes a second."""

    srtt_s: float
    rttvar_s: float
    uplink_p50: float
    uplink_p10: float
    queue_s: float
    first_p50_s: float
    """From the question's place in the engine to its first text."""
    first_p95_s: float
    known: bool = True
    """Whether the server's pace was seen or told; else it is hoped for."""
    late_s: float | None = None
    """By how much nine of ten first words came later than their median at most; None: not known yet."""

    def forecast(self, up_bytes: int) -> tuple[float, float]:
        """(median, upper bound) of the seconds to the first word; one in ten or fewer come later."""
        base = self.srtt_s + self.queue_s + self.first_p50_s
        middle = base + up_bytes / self.uplink_p50
        if self.late_s is not None:
            return middle, middle + self.late_s
        slow = min(self.uplink_p10, self.uplink_p50)
        return middle, base + up_bytes / slow + 4 * self.rttvar_s + max(
            self.first_p95_s - self.first_p50_s, 0.0
        )

    def taken_by(self, up_bytes: int) -> float:
        """When the server must have said that it took the question."""
        up = up_bytes / min(self.uplink_p10, self.uplink_p50)
        return self.srtt_s + 4 * self.rttvar_s + up + NOTICE_S


@dataclass(frozen=True, slots=True)
class Local:
    """The device's own model: ``estimate.LocalModel`` in numbers."""

    a: float
    b: float
    c: float
    high: float
    """Added for the 95th percentile."""
    sees: bool = False

    def p95_s(self, job: Job) -> float:
        """Seconds to the first token that nearly all such prompts stay below; infinite: it cannot do that."""
        if job.images and not self.sees:
            return float("inf")
        return self.a + self.b * job.tokens + self.c * job.images + self.high


@dataclass(frozen=True, slots=True)
class Rules:
    """What the wearer allows."""

    policy: Policy = "prefer-quality"
    metered: Literal["allow", "text", "deny"] = "text"
    images: bool = False
    """Whether pictures may leave the device at all."""
    local_only: Collection[Task] = frozenset[Task]({"consolidate"})
    """What is never asked for elsewhere."""


@dataclass(slots=True)
class State:
    """All that a decision rests on, but for the question."""

    rules: Rules
    link: Link
    local: Local
    cloud: Cloud | None = None
    """None: there is no server, or nothing is known of it yet."""
    no_way: str = ""
    """Why ``link`` leads nowhere, where there is more to say than its name does."""
    metered: bool = False
    breaker_open: bool = False
    """Calls failed, and no probe has shown since that the server is back."""
    draining: bool = False
    serves: bool = True
    """Whether the server says that it answers questions of this kind."""
    lacks: str = ""
    """Why it could not take this one, whatever it has to do (``lacks``)."""
    may_hedge: bool = True
    """Whether both sides may be set to work as a rule (``budget.Allowance``)."""
    too_often: bool = False
    """Whether the device had to begin too often lately though the server was expected in time."""
    private: bool = False
    """The wearer said that nothing leaves for now."""
    low_battery: bool = False
    """Works as with ``prefer-battery``."""


@dataclass(slots=True)
class Job:
    """A question, without its words."""

    task: Task
    tokens: int
    """Of the prompt, those that the device has not read yet."""
    text_bytes: int
    images: int = 0
    rungs: tuple[tuple[int, int], ...] = ((-1, 0),)
    """(rung, bytes of the pictures), largest first."""
    background: bool = False
    turns: int = 1
    schema: bool = False
    """Whether the answer obeys one."""


def lacks(offers: Offers | None, job: Job) -> str:
    """Why the server could not take ``job``, whatever it has to do; "": it could, as far as it said."""
    if offers is None:
        return ""
    least = min([size for _, size in job.rungs])
    return offers.lacks(
        schema=job.schema, images=job.images, turns=job.turns, up_bytes=job.text_bytes + least
    )


def keeps(state: State, job: Job) -> str | None:
    """Why nothing of the question may leave the device; None: it may."""
    rules = state.rules
    if rules.policy == "prefer-private" or state.private:
        return "nothing leaves the device"
    if job.background:
        return "nobody waits for it"
    if job.task in rules.local_only:
        return f"the setting keeps {job.task} on the device"
    if job.images and not rules.images:
        return "pictures do not leave the device"
    if state.metered and (rules.metered == "deny" or (job.images and rules.metered == "text")):
        return "the network costs by the byte"
    return None


def stays(state: State, job: Job) -> str | None:
    """Why the question must not leave the device, or cannot; None: it may."""
    if (why := keeps(state, job)) is not None:
        return why
    if not works(state.link):
        return state.no_way or WHY[state.link]
    if state.breaker_open:
        return "the server gave no answer a moment ago"
    if state.draining:
        return "the server ends soon"
    if not state.serves:
        return f"the server has no model for a {job.task}"
    if state.lacks:
        return state.lacks
    if state.too_often:
        return "the server was in time too seldom of late"
    return "nothing is known of the server yet" if state.cloud is None else None


def decide(state: State, job: Job, budget: Budget) -> Decision:
    """Where to answer ``job``, and until when the server is waited for before the device begins too."""
    if (why := stays(state, job)) is not None or state.cloud is None:
        return Decision("local", why or "")
    cloud, within = state.cloud, budget.first_token_s
    local = state.local.p95_s(job)
    latest = within - local - MARGIN_S
    keeps = latest >= 0
    # Where the device cannot keep the budget by itself, waiting for it is no way to keep it either.
    bound = latest if keeps else within
    frugal = state.low_battery or state.rules.policy == "prefer-battery"
    best: tuple[int, int, float, float] | None = None
    for rung, size in job.rungs:
        up = job.text_bytes + size
        middle, high = cloud.forecast(up)
        if high <= bound:
            by = cloud.taken_by(up)
            # A pace that is only hoped for is no reason to begin before the last moment.
            soon = high if cloud.known else bound
            hedge_at = None if local == float("inf") else min(soon, latest) if keeps else soon
            return Decision("cloud", _words(high, within, "within"), hedge_at, by, rung, high, middle)
        if best is None or high < best[3]:
            best = rung, up, middle, high
    assert best is not None
    rung, up, middle, high = best
    if local == float("inf"):
        return Decision("cloud", "the device cannot do that by itself", None, None, rung, high, middle)
    by = cloud.taken_by(up)
    worth = middle <= bound if keeps else middle <= max(within, local)
    if worth and state.may_hedge and not frugal:
        words = _words(middle, within, "as often as not within")
        return Decision("cloud", words, latest if keeps else 0.0, by, rung, high, middle, doubtful=True)
    if worth and not keeps:
        return Decision(
            "cloud", _words(middle, within, "sooner than the device's, in"), high, by, rung, high, middle
        )
    if not worth:
        why = _words(middle, within, "hardly before")
        if keeps:
            why += f"; the device has to begin after {latest:.2f} s to keep that by itself"
    else:
        why = _words(high, within, "maybe only after")
        why += "; trying both costs battery" if frugal else "; both were tried often enough"
    return Decision("local", why)


def sooner(decision: Decision, seconds: float) -> Decision:
    """``decision`` when ``seconds`` of it have passed."""
    if decision.hedge_at is None or seconds <= 0:
        return decision
    return replace(decision, hedge_at=max(decision.hedge_at - seconds, 0.0))


def reads_ahead(state: State, job: Job, budget: Budget) -> tuple[bool, bool]:
    """Who reads while the wearer still speaks: (the device, the server).

    The server, where it would be asked once the device has read, but not over a network that costs. The
    device, unless it keeps the budget with all that it has not read yet, even after the server was waited
    for: reading costs battery, and where both share cores, the server's first word.
    """
    ready = decide(state, replace(job, tokens=min(job.tokens, FRESH)), budget)
    if ready.route == "local":
        return True, False
    decision = decide(state, job, budget)
    latest = budget.first_token_s - state.local.p95_s(job) - MARGIN_S
    sure = state.cloud is not None and state.cloud.known and not decision.doubtful
    spare = sure and decision.cloud_high_s is not None and decision.cloud_high_s <= latest
    return not spare, not state.metered


def _words(seconds: float, within: float, when: str) -> str:
    return f"the server's first word comes {when} {seconds:.2f} s, of {within:.2f} s"
