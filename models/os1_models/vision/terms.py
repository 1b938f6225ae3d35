"""What goes into a vision model and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

MOST_TOKENS = 512
"""Tokens of an answer at most (OS-1 paper: max_new_tokens)."""


class VisionError(Exception):
    """The model could not be loaded, or could not answer. The text quotes no prompt."""


class TooLong(VisionError):
    """Prompt and answer do not fit the model's context; nothing was read."""


class BadSchema(VisionError):
    """The schema is not one that an answer can be made to obey; nothing was read."""


class Stopped(Exception):
    """``stop`` said so. What was read so far stays known."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue, its pictures before its text."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[bytes, ...] = field(default=(), repr=False)
    """JPEG or PNG files."""


@dataclass(frozen=True, slots=True)
class Piece:
    """More of the answer: whole characters, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete: the model had no more to say, or a bound was reached."""

    why: Literal["stop", "length"]
    prompt_tokens: int
    """Text and pictures together."""
    answer_tokens: int
