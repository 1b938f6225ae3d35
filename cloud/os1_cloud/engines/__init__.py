"""What does the work: the `Engine`, `Recognizer` and `Voice` protocols, and what is behind them.

Knows neither gRPC nor queues; core and cli import it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue, its pictures before its text."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[bytes, ...] = field(default=(), repr=False)
    """JPEG or PNG files."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an engine is asked to continue."""

    turns: tuple[Turn, ...]
    max_tokens: int
    json_schema: str = ""
    """A JSON schema that the answer obeys; empty: free text."""
    session: str = ""
    """State kept from a prompt may serve a later one only if both have the same, non-empty session."""
    prefix: str = ""
    """What the answer begins with already; pieces go on behind it."""
    total_s: float = 0.0
    """Seconds in which the answer is of use, for engines that ask another server; 0: not told."""


@dataclass(frozen=True, slots=True)
class Piece:
    """More of the answer: whole characters, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete: the model had no more to say, or a bound was reached."""

    why: Literal["stop", "length"]
    prompt_tokens: int
    answer_tokens: int
    cached_tokens: int = 0
    """Tokens of the prompt that had been read before."""


class EngineError(Exception):
    """The engine failed; the same prompt may work later."""


class EngineLost(EngineError):
    """What ran the engine is gone, and with it the answer; another can answer the same prompt now."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class EngineBusy(EngineLost):
    """The engine, which others use too, takes no more now."""


class TooLong(Exception):
    """Prompt and answer do not fit the model's context."""


class BadSchema(Exception):
    """The schema is not one that the engine can obey."""


class BadImage(Exception):
    """A picture that the engine cannot read."""


class Engine(Protocol):
    """A loaded language model. At most `slots` prompts at a time: the caller sees to it.

    `slots` (1) and `vision` (False: it is shown no pictures) are optional attributes, and so are
    ``async start()``, which loads it, and ``async check()``: see `check`.
    """

    name: str
    context_tokens: int
    """Tokens of prompt and answer together."""

    def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """Pieces as they are written, then `Finished`.

        Closing the iterator stops the work, also while the prompt is being read, and returns once the engine
        is free.

        Raises:
            EngineError, TooLong, BadSchema, BadImage: see there. All but the first come before any work.
        """
        ...

    def close(self) -> None:
        """Frees the model."""
        ...


class Recognizer(Protocol):
    """A loaded speech recogniser. One call at a time."""

    name: str

    async def transcribe(self, pcm: bytes, language: str) -> str:
        """The words in `pcm`: signed 16-bit little-endian samples, mono, 16,000 a second.

        Cancelling stops the work.

        Args:
            pcm: the sound.
            language: BCP 47; empty: the model's own.

        Raises:
            EngineError: it failed.
        """
        ...

    def close(self) -> None:
        """Frees the model."""
        ...


class Voice(Protocol):
    """A loaded voice. One call at a time."""

    name: str
    rate: int
    """Samples a second."""

    def speak(self, text: str, speed: float) -> AsyncGenerator[bytes, None]:
        """Signed 16-bit little-endian mono samples, sentence by sentence. Closing the iterator stops it.

        Raises:
            EngineError: it failed.
        """
        ...

    def close(self) -> None:
        """Frees the voice."""
        ...


def slots(engine: object) -> int:
    """How many prompts, or calls, `engine` takes at a time."""
    return int(getattr(engine, "slots", 1))


async def check(engine: object) -> None:
    """Whether `engine` could answer now; asks nothing of a model.

    Raises:
        EngineError: it could not, though it is not merely busy.
    """
    if hasattr(engine, "check"):
        await engine.check()


def sees(engine: Engine) -> bool:
    """Whether `engine` may be shown pictures."""
    return bool(getattr(engine, "vision", False))
