"""From the microphone's frames to what the wearer does: begins to speak, pauses, goes on, is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from os1_edge.app.trace import tell_failure
from os1_edge.events import RATE, AudioFrame, Samples, SpeechPaused, SpeechResumed, SpeechStarted, TurnEnded
from os1_edge.hear.capture import Capture, GateChange
from os1_edge.hear.interrupt import Onset
from os1_edge.hear.turn import TurnDetector

log = logging.getLogger(__name__)

FRAMES_STOP_S = 0.8
"""A microphone that gives nothing for so long, in the middle of a turn, has stopped: the turn is over within
a second of its last frame (pipecat#4124)."""

FRAMES_WAITING = 64
"""Frames (2 s) that may wait for the detector; beyond that the oldest is dropped, as live sound goes on."""


class Vad(Protocol):
    """See ``hear.vad.SileroVad``."""

    def reset(self) -> None: ...

    def probability(self, chunk: Samples) -> float: ...


class EndOfTurn(Protocol):
    """See ``hear.endpoint.SmartTurn``."""

    def complete(self, audio: Samples) -> float: ...


class Listener(Protocol):
    """Is told what the wearer does. Must return at once."""

    @property
    def answering(self) -> bool:
        """Whether a turn is being answered, or its reply heard."""
        ...

    def speech_started(self, event: SpeechStarted) -> None: ...

    def speech_paused(self, event: SpeechPaused) -> None: ...

    def speech_resumed(self, event: SpeechResumed) -> None: ...

    def speech_goes_on(self, turns: TurnDetector) -> None:
        """Another frame of an open turn in which nothing else happened."""
        ...

    def turn_ended(self, event: TurnEnded) -> None: ...

    def turn_discarded(self) -> None:
        """The open turn was thrown away: the wearer muted the microphone."""
        ...


class Listening:
    """Runs the capture stage, the voice activity detector and the turn detector over one microphone."""

    def __init__(
        self,
        capture: Capture,
        vad: Vad,
        turns: TurnDetector,
        end_of_turn: EndOfTurn | None,
        listener: Listener,
    ) -> None:
        """``end_of_turn`` is asked at every pause whether the turn is over; without one silence decides."""
        self.capture = capture
        self._vad = vad
        self.turns = turns
        self._end_of_turn = end_of_turn
        self._listener = listener
        self._onset = Onset()
        self._frames: asyncio.Queue[AudioFrame | None] = asyncio.Queue()  # bounded by FRAMES_WAITING
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="end-of-turn")
        self._verdicts: set[asyncio.Task[None]] = set()
        """Bounded: a pause begins one, and the worker takes a few hundredths of a second for it."""

    @property
    def speaking(self) -> bool:
        """Whether a turn is open."""
        return self.turns.speaking

    def close(self) -> None:
        """Ends the worker."""
        self._worker.shutdown(wait=False)

    async def run(self, microphone: AsyncIterator[AudioFrame]) -> None:
        """Listens until the microphone ends; an open turn ends with it."""
        pump = asyncio.create_task(self._pump(microphone))
        try:
            while (frame := await self._next()) is not None:
                for heard in self.capture.step(frame):
                    self._take(heard)
            await pump  # a microphone that broke says so
        finally:
            pump.cancel()
        self._close()
        await asyncio.gather(*self._verdicts)

    def gate_changed(self, change: GateChange) -> None:
        """The capture stage lets frames pass from now on, or no longer. What waits in front of it is dropped
        with it when the microphone was muted."""
        if change.discard:
            self._drop_waiting()
            self._vad.reset()
            if self.turns.close() is not None:
                self._listener.turn_discarded()
        elif not change.passing:
            self._close()
        else:
            self._vad.reset()  # what it heard before the gate opened is another stream

    def _drop_waiting(self) -> None:
        waiting = [self._frames.get_nowait() for _ in range(self._frames.qsize())]
        if waiting and waiting[-1] is None:
            self._frames.put_nowait(None)  # the microphone's end is no sound

    def played(self, samples: Samples, at_s: float) -> None:
        """The speaker plays mono ``samples`` at 16 kHz, the first of them at session second ``at_s``."""
        self.capture.played(samples, RATE, round(at_s * RATE))

    async def _pump(self, microphone: AsyncIterator[AudioFrame]) -> None:
        late = False
        try:
            async for frame in microphone:
                if self._frames.qsize() >= FRAMES_WAITING:
                    self._frames.get_nowait()
                    if not late:
                        log.warning(
                            "more than %d frames wait for the detector; some are lost", FRAMES_WAITING
                        )
                    late = True
                else:
                    late = False
                self._frames.put_nowait(frame)
        finally:
            self._frames.put_nowait(None)

    async def _next(self) -> AudioFrame | None:
        while True:
            try:
                patience = FRAMES_STOP_S if self.turns.speaking else None
                return await asyncio.wait_for(self._frames.get(), patience)
            except TimeoutError:
                log.info("no frames came for %.1f s in the middle of a turn", FRAMES_STOP_S)
                self._close()

    def _take(self, frame: AudioFrame) -> None:
        if self.turns.speaking or self._listener.answering:
            self.capture.stay_open()  # no turn is cut, and who follows up need not wake it again
        probability = self._vad.probability(frame.samples)
        onset = self._onset.step(len(frame.samples), probability, self.capture.echo)
        event = self.turns.step(frame, onset.probability)
        if isinstance(event, SpeechStarted):
            self._listener.speech_started(event)
        elif isinstance(event, SpeechPaused):
            self._ask(event)
            self._listener.speech_paused(event)
        elif isinstance(event, SpeechResumed):
            self._listener.speech_resumed(event)
        elif isinstance(event, TurnEnded):
            self._listener.turn_ended(event)
        elif self.turns.speaking:
            self._listener.speech_goes_on(self.turns)

    def _close(self) -> None:
        if (ended := self.turns.close()) is not None:
            self._listener.turn_ended(ended)

    def _ask(self, paused: SpeechPaused) -> None:
        if self._end_of_turn is not None:
            task = asyncio.create_task(self._judge(self._end_of_turn, paused))
            self._verdicts.add(task)
            task.add_done_callback(self._verdicts.discard)

    async def _judge(self, model: EndOfTurn, paused: SpeechPaused) -> None:
        loop = asyncio.get_running_loop()
        try:
            complete = await loop.run_in_executor(self._worker, model.complete, paused.audio[-8 * RATE :])
        except Exception as e:
            tell_failure(f"the end-of-turn model in turn {paused.turn_id}", e)
            return
        self.turns.judge(paused.turn_id, paused.revision, complete)
