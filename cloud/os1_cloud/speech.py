"""Hears and speaks: the queue before a recogniser and before a voice, whatever the transport.

Knows no gRPC; servicer puts it on the wire. All times are seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from os1_cloud.admission import Budget, Refused, deadline_s, late_at_its_turn, refusal
from os1_cloud.engines import EngineError, Recognizer, Voice, slots
from os1_cloud.failing import refused_by
from os1_cloud.places import Places
from os1_cloud.wearers import Wearers

RATE = 16_000
"""Samples a second that recognisers take."""
BYTES_S = 2 * RATE
AUDIO_S = 60
"""Seconds of one call: a turn ends after 30 s on the glasses. Two megabytes."""
PARTIAL_S = 1.0
"""New sound before another guess: each costs a recognition of all of it so far."""
CHARACTERS = 4000
"""Of one text to be spoken: about four minutes."""
QUEUE = 4
"""Calls that may wait for each place of a recogniser or a voice."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Words, and the sound that they cover."""

    text: str
    audio_s: float
    took_s: float
    final: bool


class _Desk:
    """Admission to one engine of speech."""

    def __init__(
        self,
        task: Literal["transcribe", "synthesize"],
        engine: object,
        wearers: Wearers,
        now: Callable[[], float],
    ) -> None:
        self.places = Places(slots(engine), QUEUE * slots(engine))
        self.draining = False
        self._task, self._wearers, self._now = task, wearers, now

    @contextmanager
    def _call(self, caller: str, budget: Budget) -> Iterator[None]:
        """Counts one call from its admission to its end.

        Raises:
            Refused: it is not admitted.
        """
        load = self.places.load(self._task)
        no = refusal(budget, load, self.places.room("reply"), self.draining)
        no = no or self._wearers.admit(caller, self._now())
        if no is not None:
            raise no
        try:
            yield
        finally:
            self._wearers.release(caller)

    def _deadline(self, budget: Budget) -> float:
        return asyncio.get_running_loop().time() + deadline_s(budget, "reply")


class Ears(_Desk):
    """One recogniser and the queue before it."""

    def __init__(
        self, recognizer: Recognizer, wearers: Wearers, now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__("transcribe", recognizer, wearers, now)
        self.recognizer = recognizer

    async def recognize(
        self, caller: str, budget: Budget, language: str, partials: bool, sound: AsyncIterator[bytes]
    ) -> AsyncGenerator[Heard, None]:
        """Guesses while `sound` comes in, if `partials`, and what was said at its end.

        Raises:
            Refused: on arrival, for too much sound, or when the recogniser fails.
        """
        with self._call(caller, budget):
            heard, covered, source = bytearray(), 0, aiter(sound)
            step = asyncio.ensure_future(_next(source))
            guess: asyncio.Task[Heard] | None = None
            try:
                while True:
                    waited = [task for task in (step, guess) if task is not None]
                    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                    if guess is not None and guess.done():
                        yield guess.result()
                        guess = None
                    if not step.done():
                        continue
                    if not (chunk := step.result()):
                        break
                    heard += chunk
                    if len(heard) > AUDIO_S * BYTES_S:
                        raise Refused("bad_request", f"a call takes {AUDIO_S} s of sound at most")
                    step = asyncio.ensure_future(_next(source))
                    # A guess never waits, and never lets anybody wait for long: it gives way at the end.
                    fresh = len(heard) - covered >= PARTIAL_S * BYTES_S
                    if partials and fresh and guess is None and self.places.free:
                        covered = len(heard)
                        guess = asyncio.ensure_future(self._words(bytes(heard), language, budget, False))
                await _end(guess)
                yield await self._words(bytes(heard), language, budget, True)
            finally:
                await _end(guess)
                await _end(step)

    async def _words(self, pcm: bytes, language: str, budget: Budget, final: bool) -> Heard:
        began = self._now()
        try:
            async with (
                asyncio.timeout(max(0.0, budget.total_s)),
                self.places.place(self.places.enter("reply", self._deadline(budget))),
            ):
                text = await self.recognizer.transcribe(pcm, language) if pcm else ""
        except TimeoutError as e:
            raise Refused("expired", "the budget ran out before the words were there") from e
        except EngineError as e:
            raise refused_by(e) from e
        took = self._now() - began
        if final:
            self.places.learn("transcribe", took, took)
        return Heard(text, len(pcm) / BYTES_S, took, final)


class Mouth(_Desk):
    """One voice and the queue before it."""

    def __init__(self, voice: Voice, wearers: Wearers, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__("synthesize", voice, wearers, now)
        self.voice = voice
        self._talking: dict[tuple[str, str], asyncio.Task[Any]] = {}

    async def synthesize(
        self, caller: str, request_id: str, budget: Budget, text: str, speed: float
    ) -> AsyncGenerator[bytes, None]:
        """The sound of `text`, sentence by sentence.

        Raises:
            Refused: on arrival, at its turn, or when the voice fails.
        """
        began, key, me = self._now(), (caller, request_id), asyncio.current_task()
        first: float | None = None
        with self._call(caller, budget):
            if me is not None:
                self._talking[key] = me
            try:
                async with (
                    asyncio.timeout(max(0.0, budget.total_s)),
                    self.places.place(self.places.enter("reply", self._deadline(budget))),
                ):
                    placed = self._now()
                    if (late := late_at_its_turn(budget, placed - began)) is not None:
                        raise late
                    async with aclosing(self.voice.speak(text, speed)) as chunks:
                        async for chunk in chunks:
                            first = self._now() if first is None else first
                            yield chunk
                    ended = self._now()
                    self.places.learn("synthesize", (first or ended) - placed, ended - placed)
            except TimeoutError as e:
                raise Refused("expired", "the budget ran out before all was said") from e
            except EngineError as e:
                raise refused_by(e) from e
            finally:
                self._talking.pop(key, None)

    def cancel(self, caller: str, request_id: str) -> bool:
        """Stops what is being said; whether it was."""
        task = self._talking.get((caller, request_id))
        return task is not None and task.cancel()


async def _next(source: AsyncIterator[bytes]) -> bytes:
    """The next sound, b"" at the end."""
    async for chunk in source:
        if chunk:
            return chunk
    return b""


async def _end(task: asyncio.Task[Any] | None) -> None:
    """Stops a task and waits until it has let go of what it held."""
    if task is not None:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # fetched, so that asyncio does not report it as lost
