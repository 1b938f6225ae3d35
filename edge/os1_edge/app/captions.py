"""What a vision model says of the newest view, written ahead of the question: nobody ever waits for it.

The model on the device, where one is chosen, works only while all is quiet; else the server is asked, where
the wearer lets pictures leave. What is not written when a turn ends is not in its prompt.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from os1_edge.app.trace import tell_failure
from os1_edge.offload.engine import EngineError, LanguageEngine
from os1_edge.offload.route import stays
from os1_edge.offload.router import Router
from os1_edge.offload.vision import CAPTION_TOKENS, caption_request
from os1_edge.see.crop import Box, holds_middle
from os1_edge.see.scene import SceneDescription

KEPT = 4
"""Captions kept: of the newest view's picture and of the places in it that were looked at."""

LONGEST = 240
"""Characters of a caption in the prompt: two sentences."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A picture to be captioned: all of a frame, or what was looked at in it."""

    at_s: float
    box: Box | None
    jpeg: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Caption:
    at_s: float
    box: Box | None
    text: str


class Captions:
    """The captions of one run. Use it in one loop."""

    def __init__(self, vision: LanguageEngine | None = None, router: Router | None = None) -> None:
        """``vision`` is the device's own model; without it, ``router`` asks the server."""
        self._vision, self._router = vision, router
        self._made: deque[_Caption] = deque(maxlen=KEPT)
        self._next: _Asked | None = None
        """The newest picture; one that nobody came to is replaced."""
        self._now: _Asked | None = None
        self._task: asyncio.Task[None] | None = None
        self._quiet = True

    def close(self) -> None:
        """Ends what is being written."""
        self._next = None
        if self._task is not None:
            self._task.cancel()

    def forget(self) -> None:
        """No picture waits, and nothing that was written is held."""
        self.close()
        self._made.clear()

    def pause(self) -> None:
        """The wearer speaks: the device's cores are for them."""
        self._quiet = False
        if self._vision is not None and self._task is not None:
            self._next = self._next or self._now
            self._task.cancel()

    def rest(self) -> None:
        """Nobody needs the machine."""
        self._quiet = True
        self._go()

    def wants(self, seen: SceneDescription) -> bool:
        """Whether a picture of ``seen`` would be captioned: there is a model, and it has none yet."""
        if not seen.usable or seen.at_s is None:
            return False
        known = [(one.at_s, one.box) for one in (*self._made, self._next, self._now) if one is not None]
        if any(at_s == seen.at_s and _about(box, seen.crop) for at_s, box in known):
            return False
        return self._vision is not None or self._may_leave()

    def show(self, seen: SceneDescription, jpeg: bytes) -> None:
        """A picture of ``seen`` without faces: of its crop, or of all of it where it has none."""
        assert seen.at_s is not None
        self._next = _Asked(seen.at_s, seen.crop, jpeg)
        self._go()

    def put_in(self, seen: SceneDescription) -> SceneDescription:
        """``seen`` with what is written of it by now."""
        for one in reversed(self._made):
            if one.text and one.at_s == seen.at_s and _about(one.box, seen.crop):
                return replace(seen, caption=one.text)
        return seen

    def _may_leave(self) -> bool:
        if self._router is None or self._router.watch is None:
            return False
        job = self._router.job(caption_request(b""), "caption")
        return stays(self._router.state(job), job) is None

    def _go(self) -> None:
        idle = self._task is None or self._task.done()
        if idle and self._next is not None and (self._quiet or self._vision is None):
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            tell_failure("the caption of a view", error)
        if task is self._task:
            self._task = None
            self._go()  # a picture may have come while it was ending

    async def _work(self) -> None:
        try:
            while self._next is not None:
                self._now, self._next = self._next, None
                asked = self._now
                text = await self._write(asked)
                self._made.append(_Caption(asked.at_s, asked.box, text))
        finally:
            self._now = None

    async def _write(self, asked: _Asked) -> str:
        """A caption; empty where there is none, which is not asked for again."""
        engine, here = self._vision or self._router, self._vision is not None
        assert engine is not None
        try:
            stream = engine.stream(
                caption_request(asked.jpeg), CAPTION_TOKENS, background=here, task="caption"
            )
            async with aclosing(stream):
                return tidy("".join([part async for part in stream]))
        except EngineError as e:
            if here:  # a server that is not there is told of elsewhere
                tell_failure("the caption of a view", e)
            return ""


def _about(box: Box | None, crop: Box | None) -> bool:
    """Is a caption of ``box`` about a view that is looked at in ``crop``? ``None``: all of the picture."""
    return box == crop or (box is not None and crop is not None and holds_middle(box, crop))


def tidy(text: str) -> str:
    """A caption as one line, only whole sentences where there are any, ``LONGEST`` characters at most."""
    line = " ".join(text.split())[:LONGEST]
    end = max(line.rfind(mark) for mark in ".!?")
    return line[: end + 1] if end > 0 else line
