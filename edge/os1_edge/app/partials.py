"""What the wearer has said so far, while they speak: told, and used to read the prompt ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from os1_edge.app.answer import Answerer, Hearing
from os1_edge.app.trace import Observer, tell_failure
from os1_edge.app.views import NOTHING_SEEN, View
from os1_edge.events import RATE, SpeechPaused
from os1_edge.hear.partials import Stabiliser

EVERY = RATE
"""Speech (1 s) between two hypotheses."""

WORTH_READING = 3
"""Words that a beginning needs before the prompt is read ahead for it."""


LOOKS = "What is this?"
"""Stands for every question about the view: each is given the same facts."""


class Partials:
    """At most one hypothesis in the making; a new one is begun when the one before is done."""

    def __init__(
        self, answerer: Answerer, observer: Observer, view_at: Callable[[float], View | None]
    ) -> None:
        self._answerer = answerer
        self._observer = observer
        self._view_at = view_at
        self._stabiliser = Stabiliser()
        self._next = 0
        """Samples of the turn at which the next hypothesis is due."""
        self._hearing: Hearing | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, at_s: float, *, read: bool) -> None:
        """A turn begins at session second ``at_s``. With ``read``, what is in view is read ahead of its first
        word: of a short question it is most of what there is to read."""
        self.stop()
        self._next = EVERY
        if read:
            self._task = asyncio.create_task(self._look(at_s))

    def due(self, samples: int) -> bool:
        """Whether a hypothesis over ``samples`` of the turn should be made."""
        return samples >= self._next and (self._task is None or self._task.done())

    def make(self, so_far: SpeechPaused) -> None:
        """Makes one of the turn so far; not in a gap, which may be the end: the final words would have to
        wait for it."""
        if so_far.decided > so_far.end:
            return
        self._next = len(so_far.audio) + EVERY
        self._hearing = Hearing(self._answerer, so_far)
        self._task = asyncio.create_task(self._work(so_far, self._hearing))

    def stop(self) -> None:
        """The final words are being looked for, or nobody speaks: a hypothesis is of no more use."""
        if self._hearing is not None:
            self._hearing.void()
        if self._task is not None:
            self._task.cancel()
        self._hearing = self._task = None

    async def _look(self, at_s: float) -> None:
        try:
            if (view := self._view_at(at_s)) is not None:
                await self._answerer.prime(LOOKS, at_s, await view.description())
        except Exception as e:
            tell_failure("reading the view ahead", e)

    async def _work(self, so_far: SpeechPaused, hearing: Hearing) -> None:
        try:
            text = await hearing.text()
            if not text:
                return
            partial = self._stabiliser.add(so_far.turn_id, so_far.revision, text)
            self._observer.partly_heard(partial)
            if len(text.split()) < WORTH_READING:
                return
            at_s = so_far.end / RATE
            view = self._view_at(at_s)
            seen = NOTHING_SEEN if view is None else await view.description()
            await self._answerer.prime(text, at_s, seen)
        except Exception as e:
            tell_failure(f"a partial transcript in turn {so_far.turn_id}", e)
