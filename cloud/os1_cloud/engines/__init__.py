"""What writes the answers: the `Engine` protocol and the engines behind it.

Knows neither gRPC nor queues; core and cli import it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an engine is asked to continue."""

    turns: tuple[Turn, ...]
    max_tokens: int
    json_schema: str = ""
    """A JSON schema that the answer obeys; empty: free text."""
    session: str = ""
    """State kept from a prompt may serve a later one only if both have the same, non-empty session."""


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


class EngineError(Exception):
    """The engine failed; the same prompt may work later."""


class TooLong(Exception):
    """Prompt and answer do not fit the model's context."""


class BadSchema(Exception):
    """The schema is not one that the engine can obey."""


class Engine(Protocol):
    """A loaded model. One prompt at a time: the caller sees to it."""

    name: str
    context_tokens: int
    """Tokens of prompt and answer together."""

    def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """Pieces as they are written, then `Finished`.

        Closing the iterator stops the work and returns once the engine is free.

        Raises:
            EngineError, TooLong, BadSchema: see there. The last two come before any work.
        """
        ...

    def close(self) -> None:
        """Frees the model."""
        ...
