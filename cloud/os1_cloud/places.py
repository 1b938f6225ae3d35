"""The places at one engine and the queue before them: the earliest deadline goes first.

core and speech import it. All times are seconds of the event loop.
"""

from __future__ import annotations

import asyncio
import bisect
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from os1_cloud.admission import Class, Estimate, Load, Task, has_room


@dataclass(slots=True, order=True)
class Waiter:
    """Who waits for a place, or has one."""

    deadline: float
    number: int
    kind: Class = field(compare=False)
    turn: asyncio.Future[None] = field(compare=False)


class Places:
    """`slots` questions are at work, at most `queue` wait. Admission (`room`) and waiting are apart: whoever
    was admitted is let in whatever comes later."""

    def __init__(self, slots: int, queue: int) -> None:
        self.slots, self.queue = slots, queue
        self._queue_each = queue / slots
        self._busy: Counter[Class] = Counter()
        self._waiting: list[Waiter] = []
        """By deadline. Bounded by `queue`: the caller asks `room` before it waits."""
        self._number = 0
        self.changes = 0
        """Grows with whatever changes the load."""
        self._answer = Estimate()
        self._first: dict[Task, Estimate] = {}

    @property
    def busy(self) -> int:
        """Questions at work."""
        return sum(self._busy.values())

    @property
    def free(self) -> bool:
        """Whether there is a place that nobody has."""
        return self.busy < self.slots

    def resize(self, slots: int) -> None:
        """An engine on other machines has more or fewer places now, and room to wait for each as before.
        Those at work stay."""
        self.slots, self.queue = slots, round(self._queue_each * slots)
        self._let_in()

    @property
    def waiting(self) -> dict[Class, int]:
        """Questions that wait, by class."""
        return dict(Counter(w.kind for w in self._waiting))

    def room(self, kind: Class) -> bool:
        """Whether one more may wait."""
        return has_room(kind, self.waiting, self.queue)

    @property
    def night(self) -> int:
        """Background questions at work: they make way for a reply."""
        return self._busy["background"]

    def load(self, task: Task = "reply", deadline: float | None = None, *, first: bool = False) -> Load:
        """How busy it is for a question with this deadline (None: behind all others).

        Args:
            task: what it is for.
            deadline: of the event loop's time.
            first: whether the night's work makes way for it.
        """
        before = len(self._waiting)
        if deadline is not None:
            before = bisect.bisect_right(self._waiting, deadline, key=lambda w: w.deadline)
        estimate = self._first.get(task) or Estimate()
        return Load(
            self.busy - self.night if first else self.busy,
            before,
            self._answer.mean_s,
            estimate.mean_s,
            self.slots,
            estimate.deviation_s,
        )

    def learn(self, task: Task, first_token_s: float, answer_s: float) -> None:
        """Takes the times of one complete answer into account."""
        self.changes += 1
        self._first.setdefault(task, Estimate()).take(first_token_s)
        self._answer.take(answer_s)

    def enter(self, kind: Class, deadline: float) -> Waiter:
        """Counts from now on. Whoever is admitted enters at once, so that the next in that moment sees it;
        `place` or `leave` must follow."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        waiter = Waiter(deadline, self._number, kind, turn)
        bisect.insort(self._waiting, waiter)
        self._let_in()
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """It is as if it never came, or its place is free."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        elif not waiter.turn.cancelled():
            self._busy[waiter.kind] -= 1
        self._let_in()

    @asynccontextmanager
    async def place(self, waiter: Waiter) -> AsyncIterator[None]:
        """Waits for the place and keeps it until the block ends."""
        try:
            await waiter.turn
            yield
        finally:
            self.leave(waiter)

    def _let_in(self) -> None:
        self.changes += 1  # whoever comes, leaves or ends calls this
        while self.busy < self.slots:
            # One place is never given to the night's work, so that a reply has not to wait for it.
            full = self.slots > 1 and self._busy["background"] >= self.slots - 1
            for waiter in self._waiting:
                if not (full and waiter.kind == "background"):
                    break
            else:
                return
            self._waiting.remove(waiter)
            if not waiter.turn.done():
                self._busy[waiter.kind] += 1
                waiter.turn.set_result(None)
