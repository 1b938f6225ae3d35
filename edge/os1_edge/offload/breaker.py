"""Whether to ask the server at all. Pure: after a failure it is left alone for a while, longer each time.

Without it each turn of an outage would wait for its budget to pass (home-assistant/core#108001: reconnect
storms and 10,000 warnings), and wearers who lost one server would all come back in the same moment.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to leave a server alone; seconds."""

    first_s: float = 1.0
    most_s: float = 60.0
    jitter: float = 0.3
    """Each wait is up to this share shorter or longer."""


class Breaker:
    """Closed while the server answers; open for a time after each failure."""

    def __init__(self, rules: BackOff = BackOff(), seed: int | None = None) -> None:  # frozen
        self._rules = rules
        self._random = random.Random(seed)
        self._failures = 0
        self._until = 0.0

    @property
    def out(self) -> bool:
        """Whether the last call failed."""
        return self._failures > 0

    def allows(self, now: float) -> bool:
        """Whether a call may be made at ``now``, any clock's seconds."""
        return now >= self._until

    def failed(self, now: float) -> bool:
        """A call failed; whether an outage begins with it."""
        wait = min(self._rules.first_s * 2.0 ** min(self._failures, 20), self._rules.most_s)
        self._until = now + wait * (1 + self._rules.jitter * (2 * self._random.random() - 1))
        self._failures += 1
        return self._failures == 1

    def answered(self) -> bool:
        """A call was answered; whether an outage ends with it."""
        ended, self._failures, self._until = self._failures > 0, 0, 0.0
        return ended
