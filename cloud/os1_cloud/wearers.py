"""What one wearer may ask: calls at once, asks a minute, asks a day.

core imports it. All times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from os1_cloud.admission import Refused

DAY_S = 86_400.0
OPEN = 4
"""Open calls for each that may be at work: a link that breaks leaves its calls behind until the keepalive
notices, and meanwhile their answers are picked up with new ones."""
WEARERS = 10_000
"""Wearers remembered; beyond them the one who was heard of longest ago is met anew."""


@dataclass(frozen=True, slots=True)
class WearerLimits:
    """Bounds of one wearer; 0: none."""

    calls: int = 4
    """At work or waiting at once: a reply, a caption, a hedge and the night's work."""
    asks_per_minute: int = 120
    asks_per_day: int = 0


@dataclass(slots=True)
class _Wearer:
    calls: int = 0
    tokens: float = 0.0
    filled_at: float = 0.0
    day: int = 0
    asked: int = 0


class Wearers:
    """Counts per wearer. Only in memory: a restart begins anew."""

    def __init__(self, limits: WearerLimits) -> None:
        self.limits = limits
        self._known: dict[str, _Wearer] = {}  # bounded by WEARERS
        self._open: dict[str, int] = {}  # bounded by the server's calls at once

    def __len__(self) -> int:
        return len(self._known)

    def entered(self, who: str) -> Refused | None:
        """Counts one open call of `who`, whatever it asks, or says why it may not be."""
        count = self._open.get(who, 0)
        if self.limits.calls and count >= OPEN * self.limits.calls:
            return Refused("too_many", f"{count} calls of this wearer are open", 0.5)
        self._open[who] = count + 1
        return None

    def left(self, who: str) -> None:
        """One open call of `who` has ended."""
        self._open[who] -= 1
        if not self._open[who]:
            del self._open[who]

    def admit(self, who: str, now: float) -> Refused | None:
        """Counts one ask of `who` and its call, or says why it may not be."""
        wearer = self._wearer(who, now)
        limits = self.limits
        if limits.calls and wearer.calls >= limits.calls:
            return Refused("too_many", f"{wearer.calls} calls of this wearer are at work", 0.5)
        day = int(now // DAY_S)
        if day != wearer.day:
            wearer.day, wearer.asked = day, 0
        if limits.asks_per_day and wearer.asked >= limits.asks_per_day:
            return Refused("quota", "this wearer's quota of the day is used up", DAY_S - now % DAY_S)
        if limits.asks_per_minute:
            rate = limits.asks_per_minute / 60
            most = self._burst()
            wearer.tokens = min(most, wearer.tokens + (now - wearer.filled_at) * rate)
            wearer.filled_at = now
            if wearer.tokens < 1:
                return Refused("too_often", "this wearer asks too often", (1 - wearer.tokens) / rate)
            wearer.tokens -= 1
        wearer.calls += 1
        wearer.asked += 1
        return None

    def release(self, who: str) -> None:
        """One call of `who` has ended."""
        if who in self._known:
            self._known[who].calls = max(0, self._known[who].calls - 1)

    def _burst(self) -> float:
        """Asks in one moment: a few seconds' worth, and at least as many as may be at work."""
        return max(1.0, float(self.limits.calls), self.limits.asks_per_minute / 6)

    def _wearer(self, who: str, now: float) -> _Wearer:
        found = self._known.pop(who, None)
        if found is None:
            found = _Wearer(tokens=self._burst(), filled_at=now, day=int(now // DAY_S))
            if len(self._known) >= WEARERS:
                idle = next((name for name, w in self._known.items() if not w.calls), None)
                if idle is not None:
                    del self._known[idle]
        self._known[who] = found  # the newest last
        return found
