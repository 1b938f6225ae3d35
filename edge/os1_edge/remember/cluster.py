"""Daily events out of real-time contexts (paper 3.2.3). Pure and incremental.

The paper embeds each context's place and activity and selects, in the sequence of a day, the longest
contiguous subsequence for which

1. its first context is below the threshold to the subsequence before it,
2. all its contexts are above the threshold to each other, and
3. its last context is below the threshold to the subsequence after it.

Condition 2 compares pair by pair, so "below the threshold to a subsequence" is its negation: to at least one
of its contexts. Then there is at most one way to cut a day so that all three hold at every cut, and reading
on while every pair stays alike finds it: were the run cut earlier, the context after the cut would be alike
to all before it, against 1; later, against 2. Where a day drifts (a context is alike to its last neighbour
but not to the first of the run) no cut can meet 3; 1 and 2 still hold, and ``Cut.DRIFT`` says so. Only the
open run is compared with, one comparison for each distinct place and activity in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from os1_edge.events import UNKNOWN_LOCATION, RealtimeContext
from os1_edge.remember.sessions import small_talk
from os1_edge.remember.vectors import Vector

THRESHOLD = 0.75
"""Cosine similarity of "location, activity" above which two contexts belong to one event."""

LONGEST_GAP_S = 1800.0
"""Contexts further apart than this are not contiguous: nothing is known of the time between them."""

UNKNOWN_GAP_S = 300.0
"""The same where the place is unknown: that "somewhere" is like "somewhere" is no evidence of one place."""

LONGEST_RUN = 20_000
"""Contexts of one event: a whole day at one in 4.3 s. What comes beyond is a new event."""

QUOTES = 5
"""Utterances that an event quotes."""


class Cut(Enum):
    """Why an event ended before a context."""

    BORDER = "the three conditions hold"
    DRIFT = "it is unlike an earlier context of the event, though like the last"
    DAY = "a new day began"
    GAP = "too long a time lies between"
    FULL = "the event is as long as one can be"


@dataclass(frozen=True, slots=True)
class DailyEvent:
    """A run of alike contexts: when, where, doing what."""

    start: datetime
    end: datetime
    location: str
    activity: str
    contexts: int
    said: tuple[str, ...] = ()
    members: tuple[int, ...] = ()
    """What ``EventClusterer.add`` was given as ``ref`` of each context."""
    text: str = ""
    """A summary written by a language model or the wearer, where there is one."""

    @property
    def summary(self) -> str:
        """One line; made without a language model where none has written one."""
        if self.text:
            return self.text
        doing = f", {self.activity}" if self.activity else ""
        telling = next((words for words in self.said if not small_talk(words)), None)
        words = f'; you said: "{telling}"' if telling else ""
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.location}{doing}{words}"


def place_key(location: str, activity: str) -> str:
    """The text whose embedding stands for a context's place and activity."""
    return f"{location}, {activity}" if activity else location


def alike(vector: Vector, run: Sequence[Vector], threshold: float) -> bool:
    """Whether ``vector`` is above the threshold to all of ``run`` (condition 2). Its contrary, to be below it
    to one at least, is what conditions 1 and 3 ask."""
    return all(float(vector @ other) >= threshold for other in run)


@dataclass(slots=True)
class EventClusterer:
    """Takes contexts in the order of time; keeps the open run. Given the contexts of an open run anew, it is
    in the same state as before."""

    threshold: float = THRESHOLD
    last_cut: Cut | None = None
    """Why the last event that ``add`` returned had ended."""
    _run: list[tuple[RealtimeContext, datetime, int]] = field(default_factory=list)
    _kinds: dict[str, Vector] = field(default_factory=dict)
    """The run's distinct places and activities: repeats need no second comparison."""

    def add(
        self, context: RealtimeContext, time: datetime, vector: Vector, ref: int = 0
    ) -> DailyEvent | None:
        """Takes the next context; returns the event that it closes.

        Args:
            context: what was seen and said.
            time: the wearer's local time, not before that of the context added last.
            vector: the embedding of its ``place_key``.
            ref: returned as one of the event's ``members``.
        """
        closed = None
        if (cut := self.cut_before(context, time, vector)) is not None:
            closed, self.last_cut = self.close(), cut
        self._run.append((context, time, ref))
        self._kinds.setdefault(place_key(context.location, context.activity), vector)
        return closed

    def cut_before(self, context: RealtimeContext, time: datetime, vector: Vector) -> Cut | None:
        """Why the open run ends before ``context``; ``None``: it goes on."""
        if not self._run:
            return None
        last, last_time, _ = self._run[-1]
        longest = UNKNOWN_GAP_S if context.location == UNKNOWN_LOCATION else LONGEST_GAP_S
        if time.date() != last_time.date():
            return Cut.DAY
        if (time - last_time).total_seconds() > longest:
            return Cut.GAP
        if not alike(vector, list(self._kinds.values()), self.threshold):
            neighbour = self._kinds[place_key(last.location, last.activity)]
            return Cut.DRIFT if alike(vector, [neighbour], self.threshold) else Cut.BORDER
        return Cut.FULL if len(self._run) >= LONGEST_RUN else None

    def last_time(self) -> datetime | None:
        """The time of the open run's last context."""
        return self._run[-1][1] if self._run else None

    def close(self) -> DailyEvent | None:
        """Ends the open run; its event, or ``None`` when there is no run."""
        event = self.open_event()
        self._run, self._kinds = [], {}
        return event

    def open_event(self) -> DailyEvent | None:
        """The event that the open run would be if it ended now."""
        if not self._run:
            return None
        counts: dict[str, int] = {}
        for context, _, _ in self._run:
            key = place_key(context.location, context.activity)
            counts[key] = counts.get(key, 0) + 1
        typical = max(self._run, key=lambda member: counts[place_key(member[0].location, member[0].activity)])
        return DailyEvent(
            start=self._run[0][1],
            end=self._run[-1][1],
            location=typical[0].location,
            activity=typical[0].activity,
            contexts=len(self._run),
            said=tuple(context.utterance for context, _, _ in self._run if context.utterance)[:QUOTES],
            members=tuple(ref for _, _, ref in self._run),
        )
