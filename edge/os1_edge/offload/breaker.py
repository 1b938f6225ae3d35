"""Whether to ask the server at all. Pure: after failures it is left alone for a while, longer each time.

Without it each turn of an outage would wait for its budget to pass (home-assistant/core#108001: reconnect
storms and 10,000 warnings), and wearers who lost one server would all come back in the same moment.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to leave a server alone; seconds."""

    first_s: float = 1.0
    most_s: float = 30.0
    jitter: float = 0.3
    """Each wait is up to this share shorter or longer."""

    def wait_s(self, failures: int, chance: random.Random) -> float:
        """After the ``failures``-th failure in a row, counted from 0."""
        wait = min(self.first_s * 2.0 ** min(failures, 20), self.most_s)
        return wait * (1 + self.jitter * (2 * chance.random() - 1))


class Breaker:
    """Closed while the server answers in time; open for a time after calls that failed or came too late.

    Half open it lets nothing pass but a probe: a question is somebody's turn. A server that says that it is
    full has answered; that makes its queue longer, and opens nothing.
    """

    FAILURES = 3
    """Calls in a row that ended without an answer."""

    LAST = 10
    """Calls looked back at; opened when most of them came too late."""

    def __init__(self, chance: random.Random, rules: BackOff = BackOff()) -> None:  # frozen
        self._rules, self._chance = rules, chance
        self._late: deque[bool] = deque(maxlen=self.LAST)
        self._failures = self._opened = 0
        self._until: float | None = None

    @property
    def open(self) -> bool:
        """Whether no question may be asked."""
        return self._until is not None

    def probe_due(self, now: float) -> bool:
        """Whether it is half open: a probe may show that the server is back."""
        return self._until is not None and now >= self._until

    def failed(self, now: float) -> None:
        """A call ended without an answer: the link broke, or the server did."""
        self._failures += 1
        if self._failures >= self.FAILURES:
            self._open(now)

    def answered(self, now: float, *, late: bool) -> None:
        """A call was answered, within its budget or ``late``."""
        self._failures = 0
        self._late.append(late)
        if not late:
            self._opened = 0
        elif sum(self._late) > self.LAST // 2:
            self._open(now)

    def probed(self, now: float, *, good: bool) -> None:
        """What a half-open breaker's probe found."""
        if self._until is None:
            return
        if good:
            self._until = None
            self._failures = 0
            self._late.clear()
        elif now >= self._until:
            self._open(now)

    def _open(self, now: float) -> None:
        self._until = now + self._rules.wait_s(self._opened, self._chance)
        self._opened += 1
        self._late.clear()
