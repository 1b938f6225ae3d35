"""The plain sequence that voice assistants are first built as: wait for 0.8 s of silence, recognise in
whisper.cpp's whole 30 s window, write the whole reply, speak the whole of it. The libraries are used as their
READMEs do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import os1_models
from os1_edge import clock
from os1_edge.config import Config
from os1_edge.converse.guard import fault
from os1_edge.converse.reply import Asked, Replier
from os1_edge.device.replay import microphone_blocks, seed_memory
from os1_edge.device.session import Session
from os1_edge.events import RATE, TurnEnded
from os1_edge.faculties import Faculties
from os1_edge.framing import frames
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.hear.vad import SileroVad
from os1_edge.native import let_threads_sleep
from os1_edge.offload.engine import Message
from os1_edge.offload.router import Router
from os1_edge.see.image import load_image

SILENCE_S = 0.8


@dataclass(frozen=True, slots=True)
class PlainTurn:
    """Where the time of one turn went, seconds."""

    ended: TurnEnded
    heard: str
    reply: str
    asr_s: float
    reply_s: float
    """Recall, prompt, and all of the reply's text."""
    speech_s: float

    @property
    def work_s(self) -> float:
        """From the end of the turn to the first sample of speech."""
        return self.asr_s + self.reply_s + self.speech_s


class Plain:
    """The same models, one after the other."""

    def __init__(self, config: Config) -> None:
        """Loads whisper.cpp and llama.cpp anew, with their defaults but for the threads."""
        let_threads_sleep()
        from llama_cpp import Llama
        from pywhispercpp.model import Model

        self._config = config
        self._whisper: Any = Model(
            str(os1_models.path(config.hear.asr_model)),
            n_threads=config.hear.threads,
            print_progress=False,
            print_realtime=False,
            redirect_whispercpp_logs_to=None,
        )
        threads = config.converse.threads
        self._llama: Any = Llama(
            str(os1_models.path(config.converse.model)),
            n_ctx=config.converse.context_tokens,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
        self._vad = SileroVad(os1_models.path("silero-vad"))

    def close(self) -> None:
        """Frees the language model."""
        self._llama.close()

    async def turns(self, session: Session, faculties: Faculties) -> list[PlainTurn]:
        """Every turn of ``session``, answered. ``faculties`` gives memory, eyes and voice; its memory is
        written to."""
        here = Router(faculties.llm, None, clock.Clock())  # its prompts are used, not its replies
        replier = Replier(self._config, here, faculties.memory)
        stills = sorted(session.file.frame, key=lambda f: f.at_s)
        self._write([Message("system", "You are a helpful companion."), Message("user", "Hello.")])  # warm
        answered = []
        for ended in self._ended(session):
            end_s = ended.end / RATE
            seen = [f for f in stills if f.at_s <= end_s]
            scene = faculties.eyes.look(load_image(session.path(seen[-1].file))).sentence if seen else ""
            now = session.calendar.at(end_s)
            answered.append(await self._turn(ended, replier, now, scene, faculties))
        return answered

    async def _turn(
        self, ended: TurnEnded, replier: Replier, now: datetime, scene: str, faculties: Faculties
    ) -> PlainTurn:
        began = perf_counter()
        heard = "".join(s.text for s in self._whisper.transcribe(ended.audio)).strip()
        asr = perf_counter()
        asked: Asked = await replier.prepare(heard, now, scene)
        reply = asked.plan.fixed or self._write(asked.prompt)
        if fault(reply, heard, asked.plan.health) is not None:
            reply = asked.plan.fallback
        written = perf_counter()
        faculties.voice.say(reply)
        spoken = perf_counter()
        replier.keep(asked, reply, whole=True)
        await faculties.memory.keep_turn(ended.turn_id, 0, now, heard, reply, "")
        return PlainTurn(ended, heard, reply, asr - began, written - asr, spoken - written)

    def _write(self, prompt: list[Message]) -> str:
        chat = [{"role": m.role, "content": m.text} for m in prompt]
        most = self._config.converse.max_tokens
        answer = self._llama.create_chat_completion(chat, temperature=0.0, max_tokens=most)
        return str(answer["choices"][0]["message"]["content"])

    def _ended(self, session: Session) -> Iterator[TurnEnded]:
        hear = self._config.hear
        rules = TurnRules(hear.start_above, hear.stop_below, silence=round(SILENCE_S * RATE))
        turns = TurnDetector(rules)
        self._vad.reset()
        for frame in frames(microphone_blocks(session)):
            event = turns.step(frame, self._vad.probability(frame.samples))
            if isinstance(event, TurnEnded):
                yield event
        if (last := turns.close()) is not None:
            yield last


def plain_turns(session: Session, config: Config, key: bytes) -> list[PlainTurn]:
    """Loads everything, answers ``session`` in a memory of its own that begins with the session's seed."""
    from os1_edge.faculties import load

    with tempfile.TemporaryDirectory() as folder:
        faculties = load(config, Path(folder) / "memory.db", key)
        plain = Plain(config)

        async def go() -> list[PlainTurn]:
            for number, (time, text) in enumerate(seed_memory(session), 1):
                await faculties.memory.keep_turn(f"seed{number:04d}", 0, time, text, "", "")
            return await plain.turns(session, faculties)

        try:
            return clock.run(go(), virtual=False)
        finally:
            plain.close()
            faculties.close()
