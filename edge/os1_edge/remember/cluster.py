"""Daily events out of real-time contexts (paper 3.2.3): the longest contiguous runs in which every two
contexts are alike in place and activity. Pure and incremental: a context is compared with the open run only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from os1_edge.events import UNKNOWN_LOCATION, RealtimeContext
from os1_edge.remember.store import Vector

THRESHOLD = 0.75
"""Cosine similarity of "location, activity" above which two contexts belong to one event."""


LONGEST_GAP_S = 1800.0
"""Contexts further apart than this are not contiguous: nothing is known of the time between them."""


UNKNOWN_GAP_S = 300.0
"""The same where the place is unknown: that "somewhere" is like "somewhere" is no evidence of one place."""


@dataclass(frozen=True, slots=True)
class DailyEvent:
    """A run of alike contexts: when, where, doing what."""

    start: datetime
    end: datetime
    location: str
    activity: str
    contexts: int
    said: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line made without a language model."""
        doing = f", {self.activity}" if self.activity else ""
        words = f'; you said: "{self.said[0]}"' if self.said else ""
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.location}{doing}{words}"


def place_key(location: str, activity: str) -> str:
    """The text whose embedding stands for a context's place and activity."""
    return f"{location}, {activity}" if activity else location


@dataclass(slots=True)
class EventClusterer:
    """Takes contexts in the order of time; keeps the open run."""

    threshold: float = THRESHOLD
    _run: list[tuple[RealtimeContext, datetime]] = field(default_factory=list)
    _kinds: dict[str, Vector] = field(default_factory=dict)
    """The run's distinct places and activities: repeats need no second comparison."""

    def add(self, context: RealtimeContext, time: datetime, vector: Vector) -> DailyEvent | None:
        """Takes the next context with its ``place_key``'s embedding; returns the event that it closes."""
        longest = UNKNOWN_GAP_S if context.location == UNKNOWN_LOCATION else LONGEST_GAP_S
        contiguous = not self._run or (time - self._run[-1][1]).total_seconds() <= longest
        alike = contiguous and all(float(vector @ other) >= self.threshold for other in self._kinds.values())
        closed = None if alike else self.close()
        self._run.append((context, time))
        self._kinds[place_key(context.location, context.activity)] = vector
        return closed

    def close(self) -> DailyEvent | None:
        """Ends the open run; its event, or ``None`` when there is no run."""
        if not self._run:
            return None
        run, self._run, self._kinds = self._run, [], {}
        places = [place_key(c.location, c.activity) for c, _ in run]
        typical = max(run, key=lambda pair: places.count(place_key(pair[0].location, pair[0].activity)))[0]
        return DailyEvent(
            start=run[0][1],
            end=run[-1][1],
            location=typical.location,
            activity=typical.activity,
            contexts=len(run),
            said=tuple(c.utterance for c, _ in run if c.utterance)[:5],
        )
