"""What becomes of an answer that breaks off in the middle: ``mend(broken, state, job, offers)``. Pure.

What was given may have been spoken, so the answer is never begun anew and nothing of it is said twice: the
server that has it goes on, else one that is told what was said goes on behind it, else the device does. Who
has the next word first goes on, as at the beginning of an answer; an answer of which nothing was given yet
(``Broken.whole``) may be begun anew by anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from os1_edge.offload.far import Failure
from os1_edge.offload.offers import PREFIX, RESUME, Offers
from os1_edge.offload.route import MARGIN_S, NOTICE_S, Job, State, keeps

SILENCE_S = 1.0
"""The next word is due so long after the answer broke off: the wearer still hears the last clause."""

MENDED = 2
"""Times that one answer is mended: two servers that restart in turn."""

Way = Literal["resume", "again"]
"""Pick it up where it lies; ask again, with what was said."""

WAYS: dict[Failure, tuple[Way, ...]] = {
    "unreachable": ("resume", "again"),
    "ending": ("again",),
    "lost": ("again",),
    "gone": ("again",),
}
"""What may help. An engine that failed would fail again; a server that refuses would refuse."""


@dataclass(slots=True)
class Broken:
    """An answer that ended before its end."""

    fault: Failure
    left_s: float
    """Until the whole answer is due."""
    whole: bool = False
    """It is read as a whole: nothing of it was given."""
    pictures: bool = False
    times: int = 1
    """How often it broke off, this time included."""


@dataclass(frozen=True, slots=True)
class Mend:
    """What to do, with the reason in words."""

    ways: tuple[Way, ...]
    """To be tried in this order; none: the device goes on alone."""
    reason: str
    resume_s: float = SILENCE_S
    """For how long picking it up is tried."""
    device_at: float | None = 0.0
    """Seconds after which the device begins as well; None: not before the server failed."""
    patience_s: float | None = None
    """After this the server has failed; None: after all that is left of its time."""


def mend(broken: Broken, state: State, job: Job, offers: Offers | None) -> Mend:
    """Who goes on.

    Args:
        broken: the answer.
        state: as it is now: that nothing may leave any more counts at once.
        job: the question, with what was said as its last message.
        offers: what the server said that it is; None: nothing, and it is not sent what it may not know.
    """
    if (why := keeps(state, job)) is not None:
        return Mend((), why)
    if broken.times > MENDED:
        return Mend((), "it broke off too often")
    if broken.left_s <= MARGIN_S:
        return Mend((), "its time is over")
    local, cloud = state.local.p95_s(job), state.cloud
    if not (ways := WAYS.get(broken.fault, ())):
        return Mend((), f"that cannot be mended ({broken.fault})")
    if offers is not None and RESUME not in offers.features:
        ways = tuple(way for way in ways if way != "resume")
    why = _not_again(broken, state, job, offers)
    if why:
        ways = tuple(way for way in ways if way != "again")
    if not ways:
        return Mend((), why)
    # TCP, TLS, the call: what a connection that is made anew takes.
    back = 3 * cloud.srtt_s + 4 * cloud.rttvar_s + NOTICE_S if cloud is not None else SILENCE_S
    reason = "the server may have it still" if "resume" in ways else "another may go on behind what was said"
    resume_s = min(back, SILENCE_S) if "again" in ways else SILENCE_S
    if local == float("inf"):
        return Mend(ways, reason, resume_s, None)
    if state.low_battery or state.rules.policy == "prefer-battery":
        return Mend(ways, reason, resume_s, None, SILENCE_S)
    # Where the device cannot keep that by itself, waiting until the server should be back is no loss.
    return Mend(ways, reason, resume_s, max(SILENCE_S - local - MARGIN_S, min(back, SILENCE_S)))


def _not_again(broken: Broken, state: State, job: Job, offers: Offers | None) -> str:
    """Why nobody else can be asked to go on; "": somebody can."""
    if not broken.whole and broken.pictures:
        return "a model that looks at pictures goes on with no answer that others began"
    if not broken.whole and (offers is None or PREFIX not in offers.features):
        return "the server is not known to go on with an answer that others began"
    local = state.local.p95_s(job)
    if state.cloud is None:
        return "nothing is known of the server"
    if local != float("inf") and state.cloud.forecast(job.text_bytes)[0] > max(SILENCE_S, local):
        return "the server would go on later than the device"
    return ""
