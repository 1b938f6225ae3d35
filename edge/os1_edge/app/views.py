"""What the wearer has in view: the camera's frames, described one after the other, to look back at."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from os1_edge.app.trace import Observer, tell_failure
from os1_edge.events import Image, SceneFrame
from os1_edge.see.scene import SceneDescription

VIEWS_KEPT = 16
"""Descriptions kept to look back at; a turn needs the newest one before its end."""

FRAMES_AHEAD = 4
"""Frames that may wait to be described, as pictures are large; beyond that the camera waits."""

NOTHING_SEEN = SceneDescription("", (), 0, "dark", False, "no frame has come yet")

Seen = Callable[[float, SceneDescription], Awaitable[None]]
"""Is given each usable description with its frame's session second."""


@dataclass(slots=True)
class View:
    """A scene frame and its description, which may still be in the making."""

    frame_at_s: float
    described: asyncio.Future[SceneDescription]

    async def description(self) -> SceneDescription:
        """Waits for it; nothing seen where it failed."""
        try:
            return await asyncio.shield(self.described)
        except Exception:
            return NOTHING_SEEN


class Views:
    """Takes frames, keeps their descriptions."""

    def __init__(self, look: Callable[[Image], SceneDescription], observer: Observer, seen: Seen) -> None:
        self._look = look
        self._observer = observer
        self._seen = seen
        self._views: deque[View] = deque(maxlen=VIEWS_KEPT)
        self._taken: asyncio.Queue[tuple[SceneFrame, View] | None] = asyncio.Queue(FRAMES_AHEAD)
        self._eyes = ThreadPoolExecutor(1, thread_name_prefix="eyes")

    def close(self) -> None:
        """Ends the worker."""
        self._eyes.shutdown(wait=False)

    def at(self, at_s: float) -> View | None:
        """What was in view at session second ``at_s``."""
        return next((view for view in reversed(self._views) if view.frame_at_s <= at_s), None)

    async def take(self, camera: AsyncIterator[SceneFrame]) -> None:
        """Takes the frames; one is in view from its own time on, however long its description takes."""
        loop = asyncio.get_running_loop()
        async for frame in camera:
            described = loop.run_in_executor(self._eyes, self._look, frame.image)
            view = View(frame.at_s, described)
            self._views.append(view)
            await self._taken.put((frame, view))
        await self._taken.put(None)

    async def note(self) -> None:
        """Tells and remembers what was seen, in the order of the frames."""
        while (taken := await self._taken.get()) is not None:
            frame, view = taken
            try:
                description = await view.described
                self._observer.frame_described(frame, description)
                if description.usable:
                    await self._seen(frame.at_s, description)
            except Exception as e:
                tell_failure(f"the scene frame at {frame.at_s:.1f} s", e)
