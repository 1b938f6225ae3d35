"""The lines of an exported memory (JSON Lines): what each kind of line holds. Rows name each other by uid, so
that two memories can be laid over each other.

The first line is the ``Header``; every other one has its kind under ``row``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Base64Bytes, BaseModel, ConfigDict, Field, TypeAdapter

VERSION = 1
"""Of the format. A reader takes this one and older ones."""

Hex = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Score = Annotated[int, Field(ge=1, le=10)] | None
MadeBy = Literal["rule", "llm", "wearer"]


def _a_time(text: str) -> str:
    time = datetime.fromisoformat(text)  # raises ValueError
    if time.tzinfo is not None:
        raise ValueError(
            "a time has no UTC offset here: it is the wearer's local time, as 2026-03-02T08:30:00"
        )
    return time.isoformat()  # one form of it, for times are compared as text


Time = Annotated[str, AfterValidator(_a_time)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Header(_Line):
    """The first line."""

    os1_memory: Annotated[int, Field(ge=1)]
    device: Hex
    exported: Time
    embedder: str
    vectors: bool
    rows: dict[str, int]


class _Found(_Line):
    """A row that can be searched; ``vector``: packed as in the file (``vectors.pack``), base64."""

    vector: Base64Bytes | None = None


class EventLine(_Found):
    """A daily event."""

    row: Literal["event"]
    uid: Hex
    start_time: Time
    end_time: Time
    location: str
    activity: str
    summary: str
    summary_by: MadeBy
    contexts: Annotated[int, Field(ge=0)]
    importance: Score = None


class ContextLine(_Line):
    """A real-time context."""

    row: Literal["context"]
    uid: Hex
    at_s: float
    time: Time
    scene: str
    utterance: str
    location: str
    activity: str
    event: Hex | None = None


class TurnLine(_Found):
    """A turn; one with a ``superseded_by`` is history."""

    row: Literal["turn"]
    uid: Hex
    origin: str
    turn_id: str
    revision: int
    session_id: str
    time: Time
    speaker: str
    heard: str
    reply: str
    location: str
    importance: Score = None
    superseded_by: Hex | None = None


class SummaryLine(_Found):
    """What a session was about."""

    row: Literal["summary"]
    uid: Hex
    session_id: str
    start_time: Time
    end_time: Time
    text: str
    text_by: MadeBy
    turns: Annotated[int, Field(ge=0)]
    importance: Score = None


class ProfileLine(_Found):
    """One thing known about the wearer; one with a ``valid_to`` or ``superseded_by`` is history."""

    row: Literal["profile"]
    uid: Hex
    kind: Literal["personality", "preference", "social background", "habit", "health"]
    text: str
    confidence: Annotated[float, Field(ge=0, le=1)]
    learned: Time
    valid_from: Time
    valid_to: Time | None = None
    evidence: Annotated[int, Field(ge=0)]
    made_by: MadeBy
    source_turn: str = ""
    superseded_by: Hex | None = None


class KeyLine(_Found):
    """An index key of a memory."""

    row: Literal["key"]
    target_kind: Literal["turn", "event", "summary", "profile"]
    target: Hex
    dimension: Literal["temporal", "spatial", "semantic"]
    text: str


class SourceLine(_Line):
    """The words that a profile line rests on."""

    row: Literal["source"]
    profile: Hex
    source_kind: Literal["turn", "event", "summary"]
    source: Hex
    time: Time
    quote: str


class ForgottenLine(_Line):
    """A row that was forgotten on the device that exported."""

    row: Literal["forgotten"]
    uid: Hex
    time: Time


Line = Annotated[
    EventLine | ContextLine | TurnLine | SummaryLine | ProfileLine | KeyLine | SourceLine | ForgottenLine,
    Field(discriminator="row"),
]

LINE: TypeAdapter[Any] = TypeAdapter(Line)


def check_utf8(text: str) -> None:
    """Whether ``text``, read with ``surrogateescape``, was UTF-8.

    Raises:
        ValueError: it was not.
    """
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise ValueError(f"not UTF-8 at letter {e.start + 1}") from None
