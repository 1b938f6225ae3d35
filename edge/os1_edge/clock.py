"""Injected time: the same asyncio code on the wall clock, or on a virtual clock.

Everything in the runtime waits with plain ``asyncio.sleep`` and reads ``Clock.now()``. On the virtual
loop a sleep costs nothing: when every task waits for a later time and no worker thread is computing,
time jumps to the next timer. While a worker thread computes, virtual time stands still, so native work
takes zero virtual seconds and a result never depends on how fast the machine is.

The idea is LiveKit's virtual-time test loop; here it is also how ``os1 replay --fast`` runs.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class _VirtualSelector(selectors.DefaultSelector):
    """Instead of sleeping until the next timer, moves its loop's time there."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self.loop.jobs_running or timeout is None:
            return super().select(None)
        self.loop.jump(timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` starts at 0 and jumps from timer to timer."""

    def __init__(self) -> None:
        self._virtual_now = 0.0
        self.jobs_running = 0
        """Worker-thread jobs in flight; time stands still while there are any."""
        self._threads: ThreadPoolExecutor | None = None
        selector = _VirtualSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual_now

    def jump(self, seconds: float) -> None:
        """Moves time on by ``seconds``."""
        self._virtual_now += seconds

    def run_in_executor(  # type: ignore[override]  # typeshed's overload varies between Python releases
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        job = (executor or self._own_threads()).submit(func, *args)
        self.jobs_running += 1
        future = asyncio.wrap_future(job, loop=self)
        # Counted on the job, not on the future: a cancelled future's thread may still be computing. Added
        # after wrap_future's own callback, so that the result is there before time may go on.
        job.add_done_callback(self._job_done_in_its_thread)
        return future

    def _own_threads(self) -> Executor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(thread_name_prefix="virtual")
            self.set_default_executor(self._threads)
        return self._threads

    def _job_done_in_its_thread(self, _job: object) -> None:
        with suppress(RuntimeError):  # the loop is closed; nobody waits for its time any more
            self.call_soon_threadsafe(self._job_done)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Waits for the threads, however long: a timeout (Python 3.12 gives one) would be over at once."""
        await super().shutdown_default_executor()

    def _job_done(self) -> None:
        self.jobs_running -= 1


def run(main: Coroutine[Any, Any, T], *, virtual: bool) -> T:
    """Runs ``main`` to its end on the virtual loop, or on the ordinary one."""
    with asyncio.Runner(loop_factory=VirtualLoop if virtual else None) as runner:
        return runner.run(main)


class Clock:
    """Seconds since the session began, read from the running loop."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Session second 0 is now."""
        self._origin = asyncio.get_running_loop().time()

    def now(self) -> float:
        """Session seconds."""
        return asyncio.get_running_loop().time() - self._origin

    async def sleep_until(self, at_s: float) -> None:
        """Returns at session second ``at_s``, or at once when that has passed."""
        await asyncio.sleep(max(0.0, at_s - self.now()))


class Calendar:
    """The wearer's date and time at a session second.

    A recording may be cut: at a cut's session second the calendar jumps to the cut's time and goes on.
    """

    def __init__(self, start: datetime, cuts: tuple[tuple[float, datetime], ...] = ()) -> None:
        self._pieces = ((0.0, start), *sorted(cuts))

    def at(self, session_s: float) -> datetime:
        """The local date and time at ``session_s``."""
        from_s, time = next((p for p in reversed(self._pieces) if p[0] <= session_s), self._pieces[0])
        return time + timedelta(seconds=session_s - from_s)


class WallCalendar(Calendar):
    """Today's date and time, whatever the session's seconds: a device that slept, or whose clock was set, is
    right again at once."""

    def __init__(self, clock: Clock, read: Callable[[], datetime] = datetime.now) -> None:
        """``read`` gives the local time."""
        super().__init__(read())
        self._clock, self._read = clock, read

    def at(self, session_s: float) -> datetime:
        """See ``Calendar``."""
        return self._read() - timedelta(seconds=self._clock.now() - session_s)
