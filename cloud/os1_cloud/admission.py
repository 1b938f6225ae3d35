"""Who may ask, and when: pure decisions about budgets and load.

Knows neither gRPC nor engines. All times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Task = Literal["reply", "caption", "context", "plan", "consolidate", "transcribe", "synthesize"]
"""What an answer is for."""
Class = Literal["reply", "routine", "background"]
"""Who goes first."""
Why = Literal[
    "bad_request",
    "no_vision_model",
    "too_long",
    "bad_schema",
    "expired",
    "too_late",
    "queue_full",
    "draining",
    "engine_failed",
    "engine_lost",
    "need_image",
    "bad_image",
    "unknown_request",
    "lost",
    "cancelled",
    "superseded",
    "too_many",
    "too_often",
    "quota",
    "no_such_model",
]
CLASSES: dict[Task, Class] = {
    "reply": "reply",
    "transcribe": "reply",
    "synthesize": "reply",
    "caption": "routine",
    "context": "routine",
    "plan": "routine",
    "consolidate": "background",
}


def class_of(task: Task, background: bool) -> Class:
    """Who a question goes with."""
    return "background" if background else CLASSES[task]


SHARES: dict[Class, float] = {"reply": 0.5, "routine": 0.25, "background": 0.0}
"""Of the queue, kept free for each class. The night's work waits until there is room anyway."""
PATIENCE_S: dict[Class, float] = {"reply": 3.0, "routine": 15.0, "background": 90.0}
"""The deadline of a question that names none. It comes nearer while the question waits, so even the night's
work has its turn in the end."""
LONGEST_S = 120.0
"""The bound of an answer whose budget names none: past two minutes no wearer waits."""
FALLBACK_RETRY_S = 1.0
"""When to come back while nothing is known about how long answers take."""
WEIGHT = 0.25
"""Of the newest answer in the smoothed times: four answers make a new picture."""


class Refused(Exception):
    """A question that is not, or no longer, answered. The message holds nothing that was said."""

    def __init__(
        self, why: Why, message: str, retry_after_s: float = 0.0, expected_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.why, self.retry_after_s, self.expected_s = why, retry_after_s, expected_s


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left of the client's patience when the question arrives. None: no bound."""

    first_token_s: float | None
    total_s: float

    @property
    def bound_s(self) -> float:
        """Until when the first text is of use."""
        return self.total_s if self.first_token_s is None else self.first_token_s


def budget_left(first_ms: int, total_ms: int, elapsed_ms: int, deadline_s: float | None) -> Budget:
    """The budget of a request, with what is spent taken off and the call's own deadline (seconds) applied.

    Zero milliseconds mean that the client names no bound. May be negative.
    """
    spent = elapsed_ms / 1000
    total = total_ms / 1000 - spent if total_ms else LONGEST_S
    total = min(total, LONGEST_S, LONGEST_S if deadline_s is None else deadline_s)
    return Budget(min(first_ms / 1000 - spent, total) if first_ms else None, total)


def deadline_s(budget: Budget, kind: Class) -> float:
    """How soon after its arrival a question wants its place: the earliest goes first."""
    if kind == "background":
        return PATIENCE_S[kind]
    return PATIENCE_S[kind] if budget.first_token_s is None else budget.first_token_s


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an engine is, as a new question sees it. Times are None while nothing is known."""

    busy: int
    waiting: int
    """Those that would go before it."""
    answer_s: float | None
    """Of one answer in the engine, smoothed."""
    first_token_s: float | None
    """From a place in the engine to the first text, smoothed."""
    slots: int = 1
    deviation_s: float = 0.0
    """Of the first text's time, smoothed."""

    @property
    def ahead(self) -> int:
        """Questions that have to end before it has a place; 0: there is one."""
        return 0 if self.busy < self.slots else self.busy - self.slots + 1 + self.waiting

    @property
    def wait_s(self) -> float | None:
        """How long it waits: everybody ahead takes one whole answer, `slots` of them at a time."""
        if not self.ahead:
            return 0.0
        return None if self.answer_s is None else self.ahead * self.answer_s / self.slots


def has_room(kind: Class, waiting: dict[Class, int], queue: int) -> bool:
    """Whether one more of `kind` may wait, so that each other class still finds its share of `queue`."""
    kept = sum(max(0, int(queue * share) - waiting.get(c, 0)) for c, share in SHARES.items() if c != kind)
    return sum(waiting.values()) + kept < queue


def refusal(budget: Budget, load: Load, room: bool, draining: bool) -> Refused | None:
    """Why a question is refused on arrival, or None if it may wait for its place.

    A server with a free place tries whatever it guesses: only a new answer can correct a bad guess.

    Args:
        budget: what is left of it.
        load: how busy the engine is.
        room: whether it may wait.
        draining: whether the server ends soon.
    """
    if draining:
        return Refused("draining", "this server ends soon; ask another")
    if budget.total_s <= 0 or (budget.first_token_s is not None and budget.first_token_s <= 0):
        return Refused("expired", "the budget was spent before the question arrived")
    if not load.ahead:
        return None
    if not room:
        retry = FALLBACK_RETRY_S if load.answer_s is None else load.answer_s / load.slots
        return Refused("queue_full", "as many questions wait as may", retry, load.wait_s)
    if load.wait_s is None:
        return None
    expected = load.wait_s + (load.first_token_s or 0.0)
    if expected > budget.bound_s:
        message = f"the first text is expected in {expected:.1f} s, the budget leaves {budget.bound_s:.1f} s"
        return Refused("too_late", message, load.wait_s, expected)
    return None


def late_at_its_turn(budget: Budget, waited_s: float) -> Refused | None:
    """Why a question that waited is dropped when its turn comes, or None."""
    if waited_s < budget.bound_s:
        return None
    return Refused("expired", f"the budget ran out after {waited_s:.1f} s in the queue")


def smoothed(old: float | None, sample: float) -> float:
    """The smoothed time after one more answer took `sample`."""
    return sample if old is None else old + WEIGHT * (sample - old)


class Estimate:
    """A time and by how much single ones differ from it (RFC 6298, section 2)."""

    def __init__(self) -> None:
        self.mean_s: float | None = None
        self.deviation_s = 0.0

    def take(self, sample_s: float) -> None:
        """One more."""
        if self.mean_s is None:
            self.deviation_s = sample_s / 2
        else:
            self.deviation_s += WEIGHT * (abs(sample_s - self.mean_s) - self.deviation_s)
        self.mean_s = smoothed(self.mean_s, sample_s)
