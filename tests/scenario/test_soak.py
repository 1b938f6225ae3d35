"""A short piece of the day that `python -m os1_edge.bench.soak` lives whole."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from os1_edge import clock
from os1_edge.bench import soak as bench
from os1_edge.bench.soak import Soaked, faults, sizes, soak
from os1_edge.remember.cluster import EventClusterer


def test_minutes_of_talk_with_real_ears_leave_every_queue_within_its_bound(
    tmp_path: Path, pulled: Callable[..., Path]
) -> None:
    pulled("silero-vad")
    pulled("smart-turn-v3.2")
    lines: list[str] = []
    found = clock.run(soak(tmp_path, 0.05, lines.append), virtual=True)
    assert found.turns >= 4
    assert found.memories >= found.turns - found.interrupted - 1
    assert found.frames > 20
    assert (found.failed, found.over) == (0, {})
    assert len(lines) >= 14


def test_whatever_holds_more_than_it_may_is_named() -> None:
    class Room:
        def __init__(self) -> None:
            self.free: deque[int] = deque(range(bench.MOST + 1))
            self.kept = deque(range(3), maxlen=3)
            self.queue: asyncio.Queue[int] = asyncio.Queue(2)
            self.queue.put_nowait(1)
            self.clusterer = EventClusterer(0.5)

    Room.__module__ = "os1_edge.room"
    found = sizes(Room())
    assert found["os1.free"] == (bench.MOST + 1, bench.MOST)
    assert found["os1.kept"] == (3, 3)
    assert found["os1.queue"] == (1, 2)
    assert "os1.clusterer._run" in found
    good = Soaked(1.0, 1.0, 10, 0, 1, 5, 5, 100.0, 104.0, 4.0, {}, {})
    assert faults(good) == []
    assert faults(replace(good, over={"os1.free": "9 of 8"})) == ["os1.free held 9 of 8"]
    assert len(faults(replace(good, growth_percent=5.1, failed=1))) == 2
