"""Ears and a mouth of paper: typed words are heard as they are, and what is said takes no time.

Everything else is the wearer's own: memory, language model, eyes where there is something to see.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np

import os1_models
from os1_edge.config import Config, See
from os1_edge.events import RATE, Samples
from os1_edge.faculties import Faculties
from os1_edge.hear.endpoint import SmartTurn
from os1_edge.hear.recogniser import Recogniser
from os1_edge.hear.vad import SileroVad
from os1_edge.offload.engine import Message, Schema, Task
from os1_edge.offload.local import LocalLlama
from os1_edge.offload.opening import default_file
from os1_edge.offload.remote import RemoteEngine
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import rules_of
from os1_edge.remember.store import Store
from os1_edge.see.cli import load_eyes
from os1_edge.see.scene import SceneDescriber
from os1_edge.speak.tts import Piper, Speech

SAMPLES_A_LETTER = 2
"""Of what is "said": a sentence is over within a hundredth of a second, and still has its words in order."""

LINES_KEPT = 16
"""Typed lines that may wait to be heard; one at a time is."""

CALLS_KEPT = 64
"""Calls of the language model kept for ``--trace`` until they are printed."""


class Typed:
    """A recogniser: sound is a number, which says what was typed."""

    def __init__(self) -> None:
        self._lines: deque[tuple[int, str]] = deque(maxlen=LINES_KEPT)
        self._number = 0

    def sound(self, line: str) -> Samples:
        """The sound that stands for ``line``."""
        self._number += 1
        self._lines.append((self._number, line))
        return np.full(1, self._number, np.float32)

    def text(self, audio: Samples, cancelled: Callable[[], bool] | None = None) -> str:
        """See ``Recogniser``."""
        wanted = int(audio[0]) if len(audio) else 0
        return next((line for number, line in self._lines if number == wanted), "")


class NoSound:
    """A voice activity detector that no frame ever reaches."""

    def reset(self) -> None:
        """See ``SileroVad``."""

    def probability(self, chunk: Samples) -> float:
        """See ``SileroVad``."""
        return 0.0


class Mute:
    """A voice without a sound worth hearing."""

    rtf = 0.0
    rate = RATE

    def speak(self, clause: str) -> Speech:
        """See ``Piper.speak``."""
        return Speech(np.zeros(SAMPLES_A_LETTER * len(clause), np.float32), RATE, None)


class Eyes:
    """Eyes that open when there is something to see."""

    def __init__(self, see: See) -> None:
        self._see = see
        self._open: SceneDescriber | None = None

    def __getattr__(self, name: str) -> Any:
        if self._open is None:
            self._open = load_eyes(self._see.threads, self._see.read_text)
        return getattr(self._open, name)


@dataclass(slots=True)
class Call:
    """One call of the language model."""

    task: Task
    background: bool
    letters: int
    """Of the prompt."""
    messages: int
    first_s: float | None = None
    total_s: float | None = None
    answer: str = ""


class Overheard:
    """A language model whose calls are kept for who wants to know."""

    def __init__(self, engine: LocalLlama) -> None:
        self._engine = engine
        self.name = engine.name
        self.calls: deque[Call] = deque(maxlen=CALLS_KEPT)

    async def prime(self, messages: Sequence[Message]) -> None:
        """See ``LanguageEngine``."""
        await self._engine.prime(messages)

    async def open(self, messages: Sequence[Message]) -> float | None:
        """See ``LocalLlama``."""
        return await self._engine.open(messages)

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine``."""
        call = Call(task, background, sum(len(m.text) for m in messages), len(messages))
        self.calls.append(call)
        began = perf_counter()
        stream = self._engine.stream(messages, max_tokens, schema=schema, background=background, task=task)
        try:
            async with aclosing(stream):
                async for text in stream:
                    if call.first_s is None:
                        call.first_s = perf_counter() - began
                    call.answer += text
                    yield text
        finally:
            call.total_s = perf_counter() - began

    def close(self) -> None:
        """Frees the model."""
        self._engine.close()


def load(config: Config, memory_file: Path, key: bytes, far: RemoteEngine | None) -> Faculties:
    """Loads the language model and opens the memory. Blocking, a second or two.

    Raises:
        os1_models.ModelMissing: a model has not been pulled.
        BadMemory: the memory file cannot be opened.
    """
    model = os1_models.path(config.converse.model)
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    llm = LocalLlama(model, config.converse.threads, config.converse.context_tokens, default_file())
    store = Store(memory_file, key, embedder=embedder.name)
    remember = config.remember
    memory = Memory(
        store, embedder, rules_of(remember), remember.event_threshold, config.converse.session_gap_s
    )
    return Faculties(
        vad=cast(SileroVad, NoSound()),
        end_of_turn=cast(SmartTurn | None, None),
        asr=cast(Recogniser, Typed()),
        eyes=cast(SceneDescriber, Eyes(config.see)),
        memory=memory,
        llm=cast(LocalLlama, Overheard(llm)),
        far=far,
        voice=cast(Piper, Mute()),
    )
