"""Three days on the virtual clock: nothing in the companion grows."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, deque
from collections.abc import AsyncIterator, Sized
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from companion import Companion, Engine, Voice

from os1_edge.app import Os1
from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.events import RATE, AudioFrame, SceneFrame
from os1_edge.framing import frames

HOURS = 72
EVERY_S = 600
"""An utterance and a frame every ten minutes; in between the microphone gives nothing."""


class ThreeDays(Companion):
    """A wearer who says one thing every ten minutes, is interrupted or muted now and then."""

    async def _microphone(self, ticking: Clock) -> AsyncIterator[AudioFrame]:
        for n in range(HOURS * 3600 // EVERY_S):
            start = n * EVERY_S * RATE
            sound = np.zeros(4 * RATE, np.float32)
            sound[RATE // 2 : 3 * RATE // 2] = 0.5
            if n % 5 == 0:
                sound[2 * RATE : 9 * RATE // 4] = 0.5  # over the reply
            for frame in frames([sound]):
                await ticking.sleep_until((start + frame.start + 512) / RATE)
                yield AudioFrame(start + frame.start, frame.samples)

    async def _camera(self, ticking: Clock) -> AsyncIterator[SceneFrame]:
        for n in range(HOURS * 3600 // EVERY_S):
            await ticking.sleep_until(n * EVERY_S)
            yield SceneFrame(n * EVERY_S, f"frame-{n}", np.zeros((2, 2, 3), np.uint8))


def sizes(root: object) -> dict[str, int]:
    """Length of every queue, list, deque, dict and set that hangs on ``root`` inside the runtime."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [("os1", root)]
    while todo:
        name, thing = todo.pop()
        if id(thing) in seen or isinstance(
            thing, ModuleType | FunctionType | type | str | bytes | np.ndarray
        ):
            continue
        seen.add(id(thing))
        if isinstance(thing, asyncio.Queue):
            found[name] = thing.qsize()
        elif isinstance(thing, list | deque | dict | set) and isinstance(thing, Sized):
            found[name] = len(thing)
        if not type(thing).__module__.startswith("os1_edge"):
            continue
        slots = [s for c in type(thing).__mro__ for s in getattr(c, "__slots__", ())]
        members = dict(getattr(thing, "__dict__", {})) | {s: getattr(thing, s, None) for s in slots}
        todo += [(f"{name}.{key}", value) for key, value in members.items()]
    return found


@pytest.mark.timeout(240)
def test_seventy_two_hours_leave_every_queue_and_list_within_its_bound(tmp_path: Path) -> None:
    """pipecat#3750, #3116; livekit/agents#2980, #5590: it grows by the hour, even in silence."""
    told = ThreeDays(
        tmp_path,
        Engine(lambda _: "That is good to know. I will think of it all day long."),
        Voice(letters_per_s=15),
        config=Config.model_validate({"converse": {"session_gap_s": 30_000}}),
    )
    told.recognised_as({0: "Nothing new."})
    told._said, told._shown = [(0.5, 1.0, "Nothing new.")], [(0.0, "A cup.")]
    grown: list[dict[str, int]] = []
    objects: list[Counter[str]] = []

    def look(os1: Os1) -> None:
        grown.append(sizes(os1))
        gc.collect()
        kinds = (type(o) for o in gc.get_objects())
        objects.append(Counter(k.__name__ for k in kinds if str(k.__module__).startswith("os1_edge")))

    for hour in (12, 24, 48, HOURS - 1):
        told.do(hour * 3600 + 300.0, look)
    told.live()
    # What the test itself keeps of each turn is not the runtime's.
    kept = {"os1._observer"}
    first, last = grown[1], grown[-1]
    bigger = {n: (first.get(n, 0), size) for n, size in last.items() if size > first.get(n, 0)}
    assert not {n: s for n, s in bigger.items() if not any(n.startswith(k) for k in kept)}
    assert len(last) > 20
    assert max(s for n, s in last.items() if not any(n.startswith(k) for k in kept)) <= 64
    # The test keeps each turn's trace with its end and its hits, partial transcripts and prompts.
    mine = {"TurnTrace", "TurnEnded", "Hit", "PartialTranscript", "Message"}
    assert {kind: n for kind, n in (objects[-1] - objects[1]).items() if kind not in mine and n > 64} == {}
