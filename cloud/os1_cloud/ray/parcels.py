"""What goes between a front door and a replica: plain values, so that both may be of different releases.

A question is a dict whose unknown keys are dropped and missing ones have defaults. An answer is a stream of:
a str, more text; None, a sign of life; a tuple, its end (`DONE` or `FAILED` first). Failures are values, not
exceptions: Ray would log their traces.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final, Literal

from os1_cloud.engines import (
    BadImage,
    BadSchema,
    EngineBusy,
    EngineError,
    EngineLost,
    Finished,
    Piece,
    Prompt,
    TooLong,
    Turn,
)

DONE: Final = "done"
FAILED: Final = "failed"
BEAT_S: Final = 0.3
"""Longest silence of a replica that works, seconds."""
SILENCE_S: Final = 1.5
"""A replica that is silent for so long is taken for lost: five beats, so that one slow one is not."""
Parcel = str | bytes | tuple[Any, ...] | None
_LOST: dict[str, type[EngineLost]] = {c.__name__: c for c in (EngineLost, EngineBusy)}
_FAILURES: dict[str, type[Exception]] = {c.__name__: c for c in (TooLong, BadSchema, BadImage, EngineError)}


def write_prompt(prompt: Prompt) -> dict[str, Any]:
    """A question as a replica takes it."""
    turns = [(turn.role, turn.text, turn.images) for turn in prompt.turns]
    return {f.name: getattr(prompt, f.name) for f in fields(prompt)} | {"turns": turns}


def read_prompt(parcel: dict[str, Any]) -> Prompt:
    """The question in a parcel."""
    known = {f.name: parcel[f.name] for f in fields(Prompt) if f.name in parcel}
    return Prompt(**known | {"turns": tuple(Turn(*turn) for turn in parcel["turns"])})


def write_part(part: Piece | Finished) -> str | tuple[Any, ...]:
    """A piece or the end of an answer."""
    if isinstance(part, Piece):
        return part.text
    return (DONE, part.why, part.prompt_tokens, part.answer_tokens, part.cached_tokens)


def write_failure(failure: Exception) -> tuple[Any, ...]:
    """The end of an answer that failed: its kind, its words, and when to come back where that is known. What
    is not an engine's own exception goes without its words: they may quote the prompt."""
    kind = type(failure).__name__
    if isinstance(failure, EngineLost):
        return (FAILED, kind, str(failure), failure.retry_after_s)
    if kind in _FAILURES:
        return (FAILED, kind, str(failure))
    return (FAILED, EngineError.__name__, f"the replica failed ({kind})")


def read_end(end: tuple[Any, ...]) -> Finished | None:
    """What the last parcel says; None: it is over and there is nothing to say.

    Raises:
        EngineError, EngineLost, EngineBusy, TooLong, BadSchema, BadImage: the answer failed.
    """
    if lost(end):
        raise _LOST[end[1]](*end[2:4])
    if end[0] == FAILED:
        raise _FAILURES.get(end[1], EngineError)(end[2])
    if len(end) == 1:
        return None
    why: Literal["stop", "length"] = end[1]
    return Finished(why, *end[2:5])


def lost(end: tuple[Any, ...]) -> bool:
    """Whether an answer ended since its engine is gone or full: another replica's may have it."""
    return end[0] == FAILED and end[1] in _LOST


def again(prompt: Prompt, said: list[str], vision: bool) -> Prompt | None:
    """The prompt that goes on where a lost replica stopped; None: there is no such prompt.

    Args:
        prompt: as it was asked first.
        said: the pieces so far, at most one token each more than there were.
        vision: whether the model looks at pictures; those know no prefix.
    """
    if not said:
        return prompt
    if prompt.json_schema or vision:
        return None
    left = prompt.max_tokens - len(said)
    return replace(prompt, prefix=prompt.prefix + "".join(said), max_tokens=left) if left > 0 else None
