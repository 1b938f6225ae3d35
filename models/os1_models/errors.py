"""Everything that can go wrong with a model, as one family. The text of each is for a person to read."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class ModelError(Exception):
    """Base of the family: catch this to catch all of them."""


class UnknownModel(ModelError):
    """The manifest has no model of this name."""

    def __init__(self, name: str, close: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(close)}?" if close else "; see: os1 models list"
        super().__init__(f"no model is called {name!r}{hint}")
        self.name = name
        self.close = tuple(close)


class ModelMissing(ModelError):
    """The model, or a file of it, is not in the store."""

    def __init__(self, name: str, why: str = "is not here yet") -> None:
        super().__init__(f"model {name} {why}; run: os1 models pull {name}")
        self.name = name


class WrongHash(ModelError):
    """Bytes that are not the promised ones. They have been deleted."""


class FetchFailed(ModelError):
    """One download did not work."""


class Unreachable(FetchFailed):
    """The far side gave no answer at all, so asking it again right away is pointless."""


class DiskFull(ModelError):
    """Too little space where the models live."""

    def __init__(self, directory: Path, needed: int | None, free: int) -> None:
        wanted = f"{needed} bytes needed" if needed is not None else "the disk ran full"
        super().__init__(f"no space for models: {wanted}, {free} bytes free in {directory}")
        self.directory = directory
        self.needed = needed
        self.free = free


@dataclass(frozen=True, slots=True)
class Attempt:
    """A source that was tried, and why it did not do."""

    source: str
    error: ModelError


class SourceFailed(ModelError):
    """No source of a model worked; the message has a line for each."""

    def __init__(self, name: str, attempts: Sequence[Attempt]) -> None:
        lines = [f"  {attempt.source}: {attempt.error}" for attempt in attempts]
        super().__init__("\n".join([f"no source of {name} worked:", *lines]))
        self.name = name
        self.attempts = tuple(attempts)


FULL_DISK_CODES = frozenset({errno.ENOSPC, errno.EDQUOT})
