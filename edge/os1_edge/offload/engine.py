"""What every language engine offers, near or far."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    text: str


class EngineError(Exception):
    """The engine could not answer."""


class LanguageEngine(Protocol):
    """Streams an answer."""

    name: str

    def stream(self, messages: Sequence[Message], max_tokens: int) -> AsyncGenerator[str, None]:
        """Text as it is written. Closing the iterator stops the work.

        Raises:
            EngineError: no answer, or none beyond what was already given.
        """
        ...
