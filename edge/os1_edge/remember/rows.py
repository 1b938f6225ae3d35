"""The rows of the memory file as values, and the wearer's local time as a number."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

WEARER, OS1, OTHER = "wearer", "os1", "other:"
"""Who speaks; another person is ``other:NAME``."""

Kind = Literal["turn", "event", "summary", "profile", "key"]
Dimension = Literal["temporal", "spatial", "semantic"]
MadeBy = Literal["rule", "llm", "wearer"]

_EPOCH = datetime(1970, 1, 1)


def seconds(time: datetime) -> float:
    """The wearer's local clock as seconds since 1970, read as if it stood in Greenwich; a zone is dropped."""
    return (time.replace(tzinfo=None) - _EPOCH).total_seconds()


def moment(at: float) -> datetime:
    """The local time, without a zone, of which ``seconds`` made ``at``."""
    return _EPOCH + timedelta(seconds=at)


def searched(speaker: str, heard: str) -> str:
    """The text under which a turn is found, and of which its embedding is made: who else speaks is named."""
    return f"{speaker.removeprefix(OTHER)}: {heard}" if speaker.startswith(OTHER) else heard


def readable(text: str) -> str:
    """``text`` as the file takes it: SQL functions see nothing behind a NUL, and half a surrogate pair is no
    text at all. What was said must neither hide from "forget" nor be lost for a stray letter."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode(errors="replace").decode()
    return text.replace("\0", " ")


def now() -> datetime:
    """This machine's local time, without a zone: for what the wearer does by hand, outside any session."""
    return datetime.now(UTC).astimezone().replace(tzinfo=None, microsecond=0)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """Something that was said, and the reply."""

    id: int
    turn_id: str
    time: datetime
    heard: str
    reply: str
    location: str
    revision: int = 0
    speaker: str = WEARER
    session_id: str = ""
    importance: int | None = None


@dataclass(frozen=True, slots=True)
class StoredContext:
    """A real-time context."""

    id: int
    at_s: float
    time: datetime
    scene: str
    utterance: str
    location: str
    activity: str
    event_id: int | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A daily event; ``id`` 0: not stored yet."""

    id: int
    start: datetime
    end: datetime
    location: str
    activity: str
    summary: str
    summary_by: MadeBy
    contexts: int
    importance: int | None = None


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """What a session was about; ``id`` 0: not stored yet."""

    id: int
    session_id: str
    start: datetime
    end: datetime
    text: str
    text_by: MadeBy
    turns: int
    importance: int | None = None


@dataclass(frozen=True, slots=True)
class IndexKey:
    """One of the phrases by which a memory is found (paper 3.2.3); ``id`` 0: not stored yet."""

    id: int
    target_kind: Kind
    target_id: int
    dimension: Dimension
    text: str


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One thing known about the wearer; ``id`` 0: not stored yet."""

    id: int
    kind: str
    text: str
    confidence: float
    learned: datetime
    source_turn: str
    valid_from: datetime | None = None
    """Since when it has been true; ``None`` in a new entry: since it was learned."""
    valid_to: datetime | None = None
    evidence: int = 1
    made_by: MadeBy = "rule"
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A row that a profile entry rests on, with the very words."""

    kind: Literal["turn", "event", "summary"]
    id: int
    time: datetime
    quote: str


@dataclass(frozen=True, slots=True)
class Job:
    """Work on a row that goes on after a restart until it is done."""

    id: int
    kind: str
    target_kind: str
    target_id: int
    attempts: int
