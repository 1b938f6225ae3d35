"""What the wearer had in view, to look back at: the newest frames' descriptions, and what was looked at."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace

from os1_edge.app.captions import Captions
from os1_edge.config import See
from os1_edge.events import Gaze
from os1_edge.see.gaze.scene_camera import SceneCamera
from os1_edge.see.scene import SceneDescriber, SceneDescription

VIEWS_KEPT = 16
"""Descriptions kept to look back at; a turn needs the newest one before its end."""

VIEW_GOOD_S = 60.0
"""A frame older than this, six usual periods, says nothing of what is in view now."""

NOTHING_SEEN = SceneDescription("", (), 0, "dark", False, "no frame has come yet")


@dataclass(frozen=True, slots=True)
class Aim:
    """Brings a gaze from the scene picture that it is told on to the frames that are described."""

    eyes: SceneDescriber
    scene: SceneCamera
    """The picture that gaze is told on: the camera's own, not turned."""
    see: See

    def on(self, gaze: Gaze | None, width: int, height: int) -> Gaze | None:
        """``gaze`` in pixels of an upright frame of that size."""
        if gaze is None:
            return None
        x, y = gaze.x / self.scene.width, gaze.y / self.scene.height
        turns = self.see.turned_deg // 90
        for _ in range(turns):  # a quarter clockwise: what was the left is the top
            x, y = 1.0 - y, x
        return replace(gaze, x=x * width, y=y * height)

    def at(self, seen: SceneDescription, gaze: Gaze | None) -> SceneDescription:
        """``seen`` with what that gaze rests on; with nothing, where it is not known."""
        return self.eyes.again(seen, self.on(gaze, *seen.size))


@dataclass(frozen=True, slots=True)
class View:
    """A scene frame and its description, which may still be in the making."""

    frame_at_s: float
    described: asyncio.Future[SceneDescription]
    looked_at: Gaze | None = None
    """As the eye camera told it, for the ``aim``; without one: as in the description."""
    captions: Captions | None = None
    """What a vision model wrote of it so far."""
    aim: Aim | None = None

    async def description(self) -> SceneDescription:
        """Waits for it; nothing seen where it failed."""
        try:
            seen = await asyncio.shield(self.described)
        except Exception:
            return NOTHING_SEEN
        seen = seen if self.aim is None else self.aim.at(seen, self.looked_at)
        return seen if self.captions is None else self.captions.put_in(seen)


class Views:
    """The newest views, in the order of their frames."""

    def __init__(self) -> None:
        self._views: deque[View] = deque(maxlen=VIEWS_KEPT)

    def add(self, view: View) -> None:
        """A frame was taken; it is in view from its own time on, however long its description takes."""
        self._views.append(view)

    def at(self, at_s: float) -> View | None:
        """What was in view at session second ``at_s``."""
        found = next((view for view in reversed(self._views) if view.frame_at_s <= at_s), None)
        return found if found is not None and at_s - found.frame_at_s <= VIEW_GOOD_S else None
