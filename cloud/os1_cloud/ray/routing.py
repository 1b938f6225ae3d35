"""Serve's consistent-hash router, which says how far it is with a question and goes round a silent replica.

It runs in the front door's event loop (see pool), so engine hears of each step at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter

from os1_cloud.ray.parcels import SILENCE_S

AVOID_S = 5.0
"""A replica that is silent or out of reach is not asked for so long; then one question tries it. Ray itself
takes a minute to give a node up (10 s where it is told to ask each second)."""
_TRIP: ContextVar[Trip | None] = ContextVar("os1_trip", default=None)
"""Of the task in which Serve routes one question."""


class Trip:
    """One question on its way. While it waits at Serve's router for a place it has the time it was given;
    a replica that was sent it has `SILENCE_S` for each sign of life."""

    def __init__(self, until: float) -> None:
        """`until`: when a place is of no use any more, seconds of the event loop."""
        self.replica: Any = None
        """That has the question, or was sent it (`ray.serve._private.common.ReplicaID`)."""
        self._until = self._due = until
        self._heard = False
        self._router: Router | None = None
        self._task: asyncio.Task[Any] | None = None
        self._clock: asyncio.Timeout | None = None

    @contextmanager
    def begins(self) -> Iterator[None]:
        """What Serve's handle is asked inside is this trip."""
        token = _TRIP.set(self)
        try:
            yield
        finally:
            _TRIP.reset(token)

    @asynccontextmanager
    async def patience(self) -> AsyncIterator[None]:
        """Around the wait for one parcel.

        Raises:
            TimeoutError: no place came free, or `replica` is silent.
        """
        if self._heard:  # from now on: whoever reads may have been busy since
            self._due = asyncio.get_running_loop().time() + SILENCE_S
        try:
            async with asyncio.timeout_at(self._due) as self._clock:
                yield
        finally:
            self._clock = None
        self._heard = True

    def avoid(self) -> None:
        """Its replica is silent: others are not sent there now."""
        if self._router is not None and self.replica is not None:
            self._router.on_replica_actor_unavailable(self.replica)

    def sent(self, router: Router, replica: Any) -> None:
        """To a replica, which has not answered yet, or has taken it."""
        self._router, self.replica, self._task = router, replica, asyncio.current_task()
        self._wait(asyncio.get_running_loop().time() + SILENCE_S)

    def queued(self) -> None:
        """That replica is full or gone: it waits for another."""
        if self._task is asyncio.current_task():  # else Serve looks for another question's place
            self.replica = None
            self._wait(self._until)

    def _wait(self, due: float) -> None:
        self._due = due
        if self._clock is not None and not self._clock.expired():
            self._clock.reschedule(due)


class Router(ConsistentHashRouter):  # type: ignore[misc]
    """A session goes to one replica, and to the next on the ring when that is full, gone or silent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See `RequestRouter`."""
        super().__init__(*args, **kwargs)
        self._avoided: dict[Any, float] = {}
        """Until when. Of replicas that there are: see update_replicas."""

    async def choose_replicas(
        self, candidate_replicas: list[Any], pending_request: Any = None
    ) -> list[list[Any]]:
        """See `RequestRouter`: candidates, the first first."""
        ranks: list[list[Any]] = await super().choose_replicas(candidate_replicas, pending_request)
        if not self._avoided:
            return ranks
        now = time.monotonic()
        if (first := ranks[0][0].replica_id if ranks else None) and self._avoided.get(first, now) < now:
            self._avoided[first] = now + AVOID_S  # this question tries it, others do not yet
            return ranks
        return [rank for rank in ranks if rank[0].replica_id not in self._avoided] or ranks

    def update_replicas(self, replicas: list[Any]) -> None:
        """See `RequestRouter`."""
        super().update_replicas(replicas)
        self._avoided = {each: until for each, until in self._avoided.items() if each in self.curr_replicas}

    def on_send_request(self, replica_id: Any) -> None:
        """See `RequestRouter`."""
        super().on_send_request(replica_id)
        if trip := _TRIP.get():
            trip.sent(self, replica_id)

    def on_new_queue_len_info(self, replica_id: Any, num_ongoing_requests: int) -> None:
        """The replica has answered whether it takes the question; `on_request_routed` follows if so."""
        super().on_new_queue_len_info(replica_id, num_ongoing_requests)
        if trip := _TRIP.get():
            trip.queued()

    def on_request_routed(self, pending_request: Any, replica_id: Any, result: Any) -> None:
        """See `RequestRouter`."""
        super().on_request_routed(pending_request, replica_id, result)
        self._avoided.pop(replica_id, None)
        if trip := _TRIP.get():
            trip.sent(self, replica_id)

    def on_replica_actor_unavailable(self, replica_id: Any) -> None:
        """It is not asked for `AVOID_S`, and after that only if it says how busy it is."""
        super().on_replica_actor_unavailable(replica_id)
        self._avoided[replica_id] = time.monotonic() + AVOID_S
        if trip := _TRIP.get():
            trip.queued()

    def on_replica_actor_died(self, replica_id: Any) -> None:
        """See `RequestRouter`."""
        super().on_replica_actor_died(replica_id)
        if trip := _TRIP.get():
            trip.queued()
