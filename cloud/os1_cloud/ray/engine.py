"""Engines that run elsewhere: `Engine`, `Recognizer` and `Voice` by a Serve handle.

pool makes them. Which replica answers is Serve's choice (see deploy); here is only what a lost one means.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import grpc
from ray.exceptions import RayError
from ray.serve.exceptions import BackPressureError, RayServeException

from os1_cloud.engines import EngineBusy, EngineLost, Finished, Piece, Prompt
from os1_cloud.ray.parcels import Parcel, again, lost, read_end, write_prompt
from os1_cloud.ray.routing import Trip

RETRY_S = 0.5
"""When to come back after a replica was lost or all were full: another one is found within milliseconds."""
BUSY_S = 0.2
"""Before the second try where all were full: for that long Serve looks for the replicas of a node that is
gone."""
WAIT_S = 10.0
"""Longest wait for a place that other front doors' questions have: about one answer. In a minute, all would
wait a minute."""
Pressure = tuple[str, int, int]
"""See pressure."""
_END = object()


class _Elsewhere:
    """One deployment as a front door sees it."""

    def __init__(self, name: str, handle: Any, facts: dict[str, Any]) -> None:
        """Args:
        name: what clients know the model by.
        handle: of the deployment (`ray.serve.handle.DeploymentHandle`).
        facts: from a replica.
        """
        self.name, self.per_replica, self.replicas = name, int(facts["slots"]), 1
        self.pressure: Callable[[], Pressure] = lambda: ("", 0, 0)
        self._handle = handle.options(
            stream=True, request_serialization="pickle", response_serialization="pickle"
        )

    @property
    def slots(self) -> int:
        """Prompts that all replicas take at a time. One where there is no replica: whoever asks learns it."""
        return max(1, self.replicas) * self.per_replica

    def close(self) -> None:
        """Leaves the deployment running: other front doors use it."""

    async def _second(self, lost: EngineLost, until: float) -> float:
        """Until when a second try may wait for its place; where all were full, a moment later.

        Raises:
            EngineBusy: there is no time for one.
        """
        if not isinstance(lost, EngineBusy):
            return _now() + WAIT_S
        if until - _now() <= BUSY_S:
            raise lost
        await asyncio.sleep(BUSY_S)
        return until

    async def _ask(self, method: str, session: str, until: float, *args: Any) -> AsyncGenerator[Parcel, None]:
        """What a replica answers, without its signs of life.

        Args:
            method: of the replica.
            session: what it knows of is used again.
            until: when a place is of no use any more, seconds of the event loop.
            args: of the method.

        Raises:
            EngineLost: there is none, or it is gone or silent.
            EngineBusy: all have as many questions as they take, and as many wait, or this one waited too
                long.
        """
        if not self.replicas:
            raise EngineLost(f"{self.name}: no replica runs", RETRY_S)
        trip = Trip(until)
        with trip.begins():
            handle = self._handle.options(method_name=method, session_id=session)
            response = handle.remote(*args, self.pressure())
        try:
            while True:
                async with trip.patience():
                    parcel: Any = await anext(response, _END)
                if parcel is _END:
                    raise EngineLost(f"{self.name}: its replica broke off", RETRY_S)
                if isinstance(parcel, tuple) and lost(parcel):
                    trip.avoid()  # it is there, but what it runs is not: the second try goes elsewhere
                if parcel is not None:
                    yield parcel
                if isinstance(parcel, tuple):
                    return
        except BackPressureError as e:
            raise EngineBusy(f"{self.name}: all its replicas are busy", RETRY_S) from e
        except TimeoutError as e:
            if trip.replica is None:
                raise EngineBusy(f"{self.name}: no place came free in time", RETRY_S) from e
            trip.avoid()
            raise EngineLost(f"{self.name}: its replica is silent", RETRY_S) from e
        except (RayError, RayServeException, RuntimeError, grpc.RpcError) as e:
            # Only the kind: Ray's words hold addresses and traces.
            raise EngineLost(f"{self.name}: its replica is gone ({type(e).__name__})", RETRY_S) from e
        except asyncio.CancelledError as e:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            # Not ours: a replica that is stopped hands on that its own work was cancelled.
            raise EngineLost(f"{self.name}: its replica was stopped", RETRY_S) from e
        finally:
            response.cancel()  # gRPC never collects a call that was only dropped (grpc#43462)


def _now() -> float:
    return asyncio.get_running_loop().time()


class RayEngine(_Elsewhere):
    """A language model on other machines."""

    def __init__(self, name: str, handle: Any, facts: dict[str, Any]) -> None:
        """See `_Elsewhere`."""
        super().__init__(name, handle, facts)
        self.context_tokens, self.vision = int(facts["context_tokens"]), bool(facts["vision"])

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """See `Engine.generate`. An answer whose replica is lost goes on at another one, once, behind the
        text that is there already; `EngineLost` where that cannot be."""
        said: list[str] = []
        until = _now() + (min(WAIT_S, prompt.total_s / 2) if prompt.total_s else WAIT_S)
        try:
            async with aclosing(self._once(prompt, until)) as parts:
                async for part in parts:
                    if isinstance(part, Piece):
                        said.append(part.text)
                    yield part
            return
        except EngineLost as e:
            if (rest := again(prompt, said, self.vision)) is None:
                raise
            until = await self._second(e, until)
        async with aclosing(self._once(rest, until)) as parts:
            async for part in parts:
                if isinstance(part, Finished):
                    part = replace(part, answer_tokens=part.answer_tokens + len(said))
                yield part

    async def _once(self, prompt: Prompt, until: float) -> AsyncGenerator[Piece | Finished, None]:
        async with aclosing(self._ask("generate", prompt.session, until, write_prompt(prompt))) as parcels:
            async for parcel in parcels:
                if isinstance(parcel, str):
                    yield Piece(parcel)
                elif isinstance(parcel, tuple) and (finished := read_end(parcel)) is not None:
                    yield finished


class RayRecognizer(_Elsewhere):
    """A speech recogniser on other machines."""

    async def transcribe(self, pcm: bytes, language: str) -> str:
        """See `Recognizer.transcribe`. Nothing was heard of a lost try, so another is made, once."""
        until = _now() + WAIT_S
        try:
            return await self._once(pcm, language, until)
        except EngineLost as e:
            return await self._once(pcm, language, await self._second(e, until))

    async def _once(self, pcm: bytes, language: str, until: float) -> str:
        words: list[str] = []
        async with aclosing(self._ask("transcribe", "", until, pcm, language)) as parcels:
            async for parcel in parcels:
                if isinstance(parcel, str):
                    words.append(parcel)
                elif isinstance(parcel, tuple):
                    read_end(parcel)
        return " ".join(words)


class RayVoice(_Elsewhere):
    """A voice on other machines."""

    def __init__(self, name: str, handle: Any, facts: dict[str, Any]) -> None:
        """See `_Elsewhere`."""
        super().__init__(name, handle, facts)
        self.rate = int(facts["rate"])

    async def speak(self, text: str, speed: float) -> AsyncGenerator[bytes, None]:
        """See `Voice.speak`. What was spoken is not spoken again: a voice that is lost in the middle
        fails."""
        spoken, until = False, _now() + WAIT_S
        for attempt in (1, 2):
            try:
                async with aclosing(self._ask("speak", "", until, text, speed)) as parcels:
                    async for parcel in parcels:
                        if isinstance(parcel, bytes):
                            spoken = True
                            yield parcel
                        elif isinstance(parcel, tuple):
                            read_end(parcel)
                return
            except EngineLost as e:
                if spoken or attempt == 2:
                    raise
                until = await self._second(e, until)
