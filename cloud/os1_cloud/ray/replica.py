"""What a replica runs: the engine that a server on one machine would have, and nothing that decides.

deploy makes deployments of these classes. Methods are generators of parcels (see parcels).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from os1_cloud.engines import Engine, EngineError, Recognizer, Voice, check, sees, slots
from os1_cloud.ray.parcels import BEAT_S, DONE, Parcel, read_prompt, write_failure, write_part
from os1_cloud.ray.pressure import Pressures

log = logging.getLogger(__name__)
START_S = 600.0
"""For an engine that is started to answer."""
WAIT_S = 2.0
"""Between two looks whether it does."""
_END = object()


class _Replica:
    """Loads an engine before the first question, frees it at the end."""

    kind: str
    """As deploy.Kind."""

    def __init__(self, make: Callable[[], Any]) -> None:
        """`make`: the engine, not loaded yet. Called in the replica's own process."""
        self._engine, self._loaded = make(), False
        self._pressures = Pressures()

    async def reconfigure(self, config: dict[str, Any]) -> None:
        """Called by Serve before the first question, and when its `user_config` changes (nothing is set so:
        it is the hook that may await).

        Raises:
            EngineError: the engine cannot be loaded, or does not answer within `START_S`.
        """
        if self._loaded:
            return
        if hasattr(self._engine, "start"):
            await self._engine.start()
        # Serve gives up a deployment whose first replicas fail a few times, and an upstream server may come
        # later.
        end = asyncio.get_running_loop().time() + START_S
        while not self._loaded:
            try:
                await check(self._engine)
                self._loaded = True
            except EngineError as e:
                if asyncio.get_running_loop().time() > end:
                    raise
                log.warning("%s; waits for it", e)
                await asyncio.sleep(WAIT_S)

    async def check_health(self) -> None:
        """Called by Serve every two seconds; after three failures in a row it replaces the replica.

        Raises:
            EngineError: the engine cannot answer, though it is not merely busy.
        """
        await check(self._engine)

    async def facts(self) -> dict[str, Any]:
        """What a front door has to know."""
        engine = self._engine
        return {"kind": self.kind, "name": engine.name, "slots": slots(engine), "pid": os.getpid()}

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Called by Serve's autoscaler; see scaling."""
        return self._pressures.read(asyncio.get_running_loop().time())

    def __del__(self) -> None:
        if hasattr(self, "_engine"):  # it could be made
            self._engine.close()

    def _told(self, pressure: tuple[str, int, int]) -> None:
        self._pressures.tell(pressure, asyncio.get_running_loop().time())


class LanguageReplica(_Replica):
    """A language model."""

    kind = "language"
    _engine: Engine

    async def facts(self) -> dict[str, Any]:
        """See `_Replica.facts`."""
        more = {"context_tokens": self._engine.context_tokens, "vision": sees(self._engine)}
        return await super().facts() | more

    async def generate(
        self, question: dict[str, Any], pressure: tuple[str, int, int]
    ) -> AsyncIterator[Parcel]:
        """One answer."""
        self._told(pressure)
        async with aclosing(self._parts(question)) as parts:
            async for parcel in beating(parts):
                yield parcel

    async def _parts(self, question: dict[str, Any]) -> AsyncGenerator[Parcel, None]:
        try:
            async with aclosing(self._engine.generate(read_prompt(question))) as parts:
                async for part in parts:
                    yield write_part(part)
        except Exception as e:
            yield write_failure(e)


class RecognizerReplica(_Replica):
    """A speech recogniser."""

    kind = "recognizer"
    _engine: Recognizer

    async def transcribe(
        self, pcm: bytes, language: str, pressure: tuple[str, int, int]
    ) -> AsyncIterator[Parcel]:
        """The words in `pcm`."""
        self._told(pressure)
        async with aclosing(self._words(pcm, language)) as parts:
            async for parcel in beating(parts):
                yield parcel

    async def _words(self, pcm: bytes, language: str) -> AsyncGenerator[Parcel, None]:
        try:
            yield await self._engine.transcribe(pcm, language)
            yield (DONE,)
        except Exception as e:
            yield write_failure(e)


class VoiceReplica(_Replica):
    """A voice."""

    kind = "voice"
    _engine: Voice

    async def facts(self) -> dict[str, Any]:
        """See `_Replica.facts`."""
        return await super().facts() | {"rate": self._engine.rate}

    async def speak(self, text: str, speed: float, pressure: tuple[str, int, int]) -> AsyncIterator[Parcel]:
        """The sound of `text`."""
        self._told(pressure)
        async with aclosing(self._sound(text, speed)) as parts:
            async for parcel in beating(parts):
                yield parcel

    async def _sound(self, text: str, speed: float) -> AsyncGenerator[Parcel, None]:
        try:
            async with aclosing(self._engine.speak(text, speed)) as chunks:
                async for chunk in chunks:
                    yield chunk
            yield (DONE,)
        except Exception as e:
            yield write_failure(e)


async def beating(
    parts: AsyncGenerator[Parcel, None], beat_s: float = BEAT_S
) -> AsyncGenerator[Parcel, None]:
    """`parts`, and None whenever they are silent for `beat_s`. Closing it stops the step under way and waits
    for its end: only then is the engine free."""
    step: asyncio.Future[Any] | None = None
    try:
        while True:
            step = asyncio.ensure_future(_next(parts))
            while not (await asyncio.wait({step}, timeout=beat_s))[0]:
                yield None
            if (parcel := step.result()) is _END:
                return
            yield parcel
    finally:
        if step is not None and not step.done():
            step.cancel()
            await asyncio.wait({step})


async def _next(parts: AsyncGenerator[Parcel, None]) -> Any:
    return await anext(parts, _END)
