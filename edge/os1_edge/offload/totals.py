"""What became of all questions since the start, in counts and quantiles. No word of any."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from os1_edge.offload.estimate import Quantiles
from os1_edge.offload.taken import Taken


class Totals:
    """Counts by task; bounded, as tasks and sides are few."""

    def __init__(self) -> None:
        self.since = ""
        """Date and time of the first question (ISO 8601)."""
        self._routes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._answered: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._late: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._links: Counter[str] = Counter()
        self._first_of_both: Counter[str] = Counter()
        self._first: dict[str, Quantiles] = {}
        self._regret = Quantiles(0.0, 0.0, 0.0)
        self._expected: Counter[bool] = Counter()

    def note(self, taken: Taken) -> None:
        """One more question, when it has come to its end."""
        self.since = self.since or taken.at
        side = taken.answered or "nobody"
        self._routes[taken.task][taken.route] += 1
        self._answered[taken.task][side] += 1
        self._links[taken.link] += 1
        if taken.regret_s is not None:
            self._regret.add(taken.regret_s)
        if taken.first_s is None:
            return
        first = "cloud" if side == "both" else side  # the device only went on
        if taken.both:
            self._first_of_both[first] += 1
        self._late[taken.task][first] += taken.first_s > taken.within_s
        self._first.setdefault(f"{taken.task}, {first}", Quantiles(0.0, 0.0, 0.0)).add(taken.first_s)
        if first == "local" and taken.route == "local" and taken.local_s is not None:
            self._expected[taken.first_s <= taken.local_s] += 1

    def told(self) -> dict[str, Any]:
        """For people and programs; seconds."""
        seen = self._expected.total()
        return {
            "since": self.since,
            "routes": {task: dict(count) for task, count in self._routes.items()},
            "answered": {task: dict(count) for task, count in self._answered.items()},
            "late": {task: dict(count) for task, count in self._late.items()},
            "links": dict(self._links),
            "both_at_work": dict(self._first_of_both),
            "first_s": {
                kind: {"p50": round(q.p50, 3), "p95": round(q.p95, 3), "count": q.count}
                for kind, q in self._first.items()
            },
            "regret_s": {"p50": round(self._regret.p50, 3), "p95": round(self._regret.p95, 3)},
            "device_inside": round(self._expected[True] / seen, 3) if seen else None,
        }
