"""Time: virtual time jumps and stands still, the calendar follows a recording's cuts."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from os1_edge.clock import Calendar, Clock, VirtualLoop, run


def test_an_hour_passes_at_once_on_the_virtual_clock() -> None:
    async def main() -> float:
        clock = Clock()
        await asyncio.sleep(3600)
        return clock.now()

    began = time.monotonic()
    assert run(main(), virtual=True) == pytest.approx(3600)
    assert time.monotonic() - began < 60


def test_sleepers_wake_in_the_order_of_their_times() -> None:
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *waits: float) -> None:
        for wait in waits:
            await asyncio.sleep(wait)
            woken.append((name, round(asyncio.get_running_loop().time(), 6)))

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleeper("a", 5, 5))
            tasks.create_task(sleeper("b", 1, 2, 4))
            tasks.create_task(sleeper("c", 0.001))

    run(main(), virtual=True)
    assert woken == [("c", 0.001), ("b", 1), ("b", 3), ("a", 5), ("b", 7), ("a", 10)]


def test_time_stands_still_while_a_worker_computes() -> None:
    """A sleeper of 1000 s must not wake while a thread is busy, however long that takes."""

    async def main() -> tuple[float, bool]:
        loop = asyncio.get_running_loop()
        release, woke = threading.Event(), []
        with ThreadPoolExecutor(1) as pool:
            job = loop.run_in_executor(pool, release.wait, 10)
            sleeper = asyncio.create_task(asyncio.sleep(1000))
            sleeper.add_done_callback(woke.append)
            threading.Timer(0.05, release.set).start()
            assert await job
            at_end, early = loop.time(), bool(woke)
            await sleeper
        assert loop.time() == pytest.approx(1000)
        return at_end, early

    assert run(main(), virtual=True) == (0.0, False)


def test_words_handed_over_by_a_worker_arrive_while_time_stands_still() -> None:
    """As the language model streams: call_soon_threadsafe from inside a job."""

    async def main() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[int] = asyncio.Queue()
        with ThreadPoolExecutor(1) as pool:

            def work() -> None:
                for i in range(3):
                    loop.call_soon_threadsafe(parts.put_nowait, i)

            job = loop.run_in_executor(pool, work)
            got = [(await parts.get(), loop.time()) for _ in range(3)]
            await job
        return got

    assert run(main(), virtual=True) == [(0, 0.0), (1, 0.0), (2, 0.0)]


def test_a_job_refused_by_a_closed_worker_does_not_stop_time() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        with pytest.raises(RuntimeError):
            loop.run_in_executor(pool, time.time)
        assert isinstance(loop, VirtualLoop)
        assert loop.jobs_running == 0
        await asyncio.wait_for(asyncio.sleep(5), 10)
        return loop.time()

    assert run(main(), virtual=True) == pytest.approx(5)


def test_a_failing_job_lets_time_go_on() -> None:
    async def main() -> float:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        await asyncio.sleep(7)
        return asyncio.get_running_loop().time()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(main(), virtual=True) == pytest.approx(7)


def test_the_real_loop_keeps_real_time() -> None:
    async def main() -> tuple[bool, float]:
        clock = Clock()
        began = time.monotonic()
        await clock.sleep_until(0.05)
        return isinstance(asyncio.get_running_loop(), VirtualLoop), time.monotonic() - began

    virtual, passed = run(main(), virtual=False)
    assert not virtual
    assert passed >= 0.045


def test_a_past_second_is_not_waited_for_and_a_restart_is_second_zero() -> None:
    async def main() -> list[float]:
        clock = Clock()
        await asyncio.sleep(10)
        await clock.sleep_until(3)
        seen = [clock.now()]
        clock.restart()
        seen.append(clock.now())
        await clock.sleep_until(2)
        return [*seen, clock.now()]

    assert run(main(), virtual=True) == pytest.approx([10, 0, 2])


def test_a_calendar_jumps_at_a_cut_and_goes_on_from_there() -> None:
    eight, nine = datetime(2026, 3, 2, 8), datetime(2026, 3, 2, 9, 30)
    calendar = Calendar(eight, ((60.0, nine),))
    assert calendar.at(0) == eight
    assert calendar.at(59.5) == datetime(2026, 3, 2, 8, 0, 59, 500_000)
    assert calendar.at(60) == nine
    assert calendar.at(90) == datetime(2026, 3, 2, 9, 30, 30)


def test_cuts_may_be_given_in_any_order_and_midnight_is_no_wall() -> None:
    calendar = Calendar(
        datetime(2026, 12, 31, 23, 59), ((20.0, datetime(2027, 1, 2)), (10.0, datetime(2027, 1, 1)))
    )
    assert calendar.at(15) == datetime(2027, 1, 1, 0, 0, 5)
    assert calendar.at(25) == datetime(2027, 1, 2, 0, 0, 5)
    assert Calendar(datetime(2026, 12, 31, 23, 59)).at(120) == datetime(2027, 1, 1, 0, 1)


def test_a_thread_still_busy_at_the_end_is_waited_for_in_real_time() -> None:
    """Python gives it five minutes; virtual ones would be over at once, with a warning."""
    done = []

    def busy() -> None:
        time.sleep(0.1)
        done.append(True)

    async def main() -> None:
        task = asyncio.create_task(asyncio.to_thread(busy))
        await asyncio.sleep(0)
        task.cancel()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(main(), virtual=True)
    assert done


def test_time_stands_still_for_a_thread_whose_waiter_was_cancelled() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(None, time.sleep, 0.2)
        await asyncio.sleep(0)
        job.cancel()
        began = time.perf_counter()
        await asyncio.sleep(100)
        return time.perf_counter() - began, loop.time()

    waited, virtual = run(main(), virtual=True)
    assert waited > 0.1
    assert virtual == pytest.approx(100)
