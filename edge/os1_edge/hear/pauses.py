"""How long a silence must last to end a turn, and what is learned of the wearer's pauses. Pure.

A fixed bound is wrong twice. Short, it cuts off who thinks in mid-sentence; long, everybody waits for it:

```
0.5 s rule   "what is the ─────0.6 s───── capital of France"
                          └─ cut off here: answered half a question
             "what is the capital of France" ──0.5 s── answer
                                             └─ heard to be finished after 0.2 s: 0.3 s waited for nothing

here         "what is the ·0.16 s· (0.02: not finished) ── waits up to 1.0 s ── capital of France"
             "what is the capital of France" ·0.16 s· (0.98: finished) ─ 0.35 s ─ answer
```

The model that hears the pause (``endpoint``) cannot know how long *this* wearer pauses inside a sentence; one
breathes for 0.2 s, another for 0.9. So the bounds stretch and shrink with a length that covers most of the
wearer's own pauses inside turns. A pause that was wrongly taken for the end is seen too: the wearer goes on
at once. Without it, a bound that is too short would never see the longer pauses and would stay too short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from os1_edge.events import RATE


@dataclass(frozen=True, slots=True)
class Bound:
    """The silence that ends a turn, and why."""

    samples: int
    reason: str


@dataclass(frozen=True, slots=True)
class Band:
    """The silence asked for at a verdict; seconds. ``usual_s`` for a wearer of usual pauses."""

    least_s: float
    usual_s: float
    most_s: float


@dataclass(frozen=True, slots=True)
class BoundRules:
    """From the verdict to the silence, chosen with ``bench.turns``; in whole frames of 32 ms, as a decision
    waits for one anyway. What is at least likely finished never waits 0.5 s, however the wearer pauses."""

    finished: float = 0.97
    """Probability from which the turn counts as finished."""
    likely: float = 0.88
    """Probability from which it is likely finished."""
    likely_if_short: float = 0.6
    """The same after a word or two: of "stop" or "call Tom" the model is never sure."""
    short_s: float = 1.0
    """Speech up to this long is a word or two."""
    when_finished: Band = Band(0.2, 0.352, 0.416)
    when_likely: Band = Band(0.3, 0.48, 0.48)
    when_unfinished: Band = Band(0.7, 1.0, 1.6)


BOUNDS = BoundRules()
"""The bounds that are used."""


def silence_bound(p_complete: float, reach_s: float, spoken_s: float, rules: BoundRules = BOUNDS) -> Bound:
    """The silence that ends a turn of ``spoken_s`` so far whose pause was judged ``p_complete`` (0..1), for a
    wearer whose pauses inside turns mostly last up to ``reach_s``."""
    likely = rules.likely_if_short if spoken_s <= rules.short_s else rules.likely
    if p_complete >= rules.finished:
        band, verdict = rules.when_finished, "finished"
    elif p_complete >= likely:
        band, verdict = rules.when_likely, "likely finished"
    else:
        band, verdict = rules.when_unfinished, "may go on"
    seconds = min(max(band.usual_s * reach_s / USUAL_S, band.least_s), band.most_s)
    return Bound(round(seconds * RATE), f"{verdict} ({p_complete:.2f})")


USUAL_S = 0.6
"""The pause that covers most of a usual wearer's: where learning starts."""

REACH_S = (0.3, 1.2)
"""Floor and ceiling of what is learned: nobody is cut off at a breath, nobody waits for ever."""

COVERED = 0.8
"""The share of the wearer's pauses that the learned length covers."""

FIRST_STEP, LAST_STEP = 0.3, 0.06
"""Relative size of a learning step, at first and after some pauses: a habit shows in a few turns, and one odd
day is forgotten in a few dozen pauses."""

COUNTED = 1000
"""Where the count of pauses stops: it only sizes the step."""


class Pauses:
    """Learns the length that covers most of a wearer's pauses inside turns.

    A running quantile: up by ``COVERED`` steps at a longer pause, down by the rest of one at a shorter; where
    both balance, that share of the pauses is shorter. Two numbers of state.
    """

    def __init__(self, reach_s: float = USUAL_S, seen: int = 0) -> None:
        self._reach_s = min(max(reach_s, REACH_S[0]), REACH_S[1])
        self._seen = min(max(seen, 0), COUNTED)

    @property
    def reach_s(self) -> float:
        """Seconds that cover most of the wearer's pauses inside turns."""
        return self._reach_s

    def learn(self, samples: int) -> None:
        """Notes a pause of ``samples`` after which the wearer went on."""
        step = max(LAST_STEP, FIRST_STEP / (self._seen + 1))
        longer = samples / RATE > self._reach_s
        reach_s = self._reach_s * math.exp(step * (COVERED if longer else COVERED - 1))
        self._reach_s = min(max(reach_s, REACH_S[0]), REACH_S[1])
        self._seen = min(self._seen + 1, COUNTED)

    def to_dict(self) -> dict[str, float]:
        """What to keep of it."""
        return {"reach_s": round(self._reach_s, 4), "seen": self._seen}

    @classmethod
    def from_dict(cls, kept: Mapping[str, object]) -> Pauses:
        """What was kept; where that cannot be read, learning starts anew."""
        reach_s, seen = kept.get("reach_s"), kept.get("seen")
        if not isinstance(reach_s, (int, float)) or not isinstance(seen, (int, float)):
            return cls()
        if not math.isfinite(reach_s) or not math.isfinite(seen):
            return cls()
        return cls(float(reach_s), int(seen))
