"""What every language engine offers, near or far."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Schema = Mapping[str, object]
"""A JSON schema."""

Task = Literal["reply", "caption", "context", "plan", "consolidate"]
"""What an answer is for: decides where it may be made, and how long it may take."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[bytes, ...] = field(default=(), repr=False)
    """Encoded pictures (JPEG or PNG) that the text is about; faces are gone from them."""
    likely: str = field(default="", repr=False, compare=False)
    """How its answer may begin, word for word: no part of the prompt. An engine that checks several tokens
    at once writes such an answer faster, prefers it to one that is as likely, and writes any other as it
    would have."""


class EngineError(Exception):
    """The engine could not answer."""


class LanguageEngine(Protocol):
    """Streams an answer."""

    name: str

    def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """Text as it is written. Closing the iterator stops the work, also while the prompt is being read.

        Args:
            messages: the prompt.
            max_tokens: the answer's bound.
            schema: the answer is one JSON value that obeys it.
            task: what the answer is for.
            background: nobody waits. The state that the conversation rests on is left alone, and a call that
                somebody waits for goes first: this one then raises ``Preempted``.

        Raises:
            EngineError: no answer, or none beyond what was already given.
        """
        ...

    async def prime(self, messages: Sequence[Message]) -> None:
        """Reads the prompt ahead of a ``stream`` that begins with the same text. Cancel it to stop."""
        ...


class Preempted(EngineError):
    """A background call made way for one that somebody waits for; ask again later."""
