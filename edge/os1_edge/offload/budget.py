"""How long an answer may take, by what it is for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from os1_edge.offload.engine import Task


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds from the question's being ready."""

    first_token_s: float
    """Until the first text."""
    total_s: float
    """Until the whole answer; a call to the server ends here, whatever there is."""


def budgets(reply_first_token_s: float = 0.6) -> Mapping[Task, Budget]:
    """The budgets. A wearer waits for a reply; who asks for the others goes on meanwhile."""
    return {
        "reply": Budget(reply_first_token_s, 30.0),
        "caption": Budget(3.0, 10.0),
        "context": Budget(2.0, 8.0),
        "plan": Budget(2.0, 8.0),
        "consolidate": Budget(10.0, 60.0),
    }


RACES = 0.12
"""Share of the questions on which both sides may work."""


class Allowance:
    """How often both sides may work on one question: a token bucket.

    Every question earns a part of a second start, so the second starts stay below that part of the questions,
    plus what the bucket holds. One that the promise of an answer needs is never refused; it is owed.
    """

    def __init__(self, share: float = RACES, most: float = 3.0) -> None:
        """``share`` of the questions; at most ``most`` saved up, or owed."""
        self._share, self._most = share, most
        self.left = most

    @property
    def allows(self) -> bool:
        """Whether a second start may be planned."""
        return self.left >= 1.0

    @property
    def owed(self) -> bool:
        """Whether second starts that no plan foresaw came so often that the server is better left alone."""
        return self.left <= 1.0 - self._most

    def asked(self) -> None:
        """One more question."""
        self.left = min(self.left + self._share, self._most)

    def spent(self) -> None:
        """A second side was started."""
        self.left = max(self.left - 1.0, -self._most)
