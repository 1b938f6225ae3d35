"""What a replay writes down: the schema of ``report.json``.

A field that a part of the system does not produce yet is absent from the JSON, never invented: fields are
optional here and ``write`` leaves out every ``None``.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class SessionInfo(_Part):
    """The session that was replayed."""

    title: str
    start: datetime
    seconds: float
    """Length of the recording, session seconds."""
    mode: Literal["realtime", "fast"]


class ModelFile(_Part):
    """The main file of a model that was used."""

    file: str
    sha256: str


class Recalled(_Part):
    """One memory that the reply was given."""

    kind: Literal["turn", "profile", "event", "summary"]
    text: str
    score: float


class Latency(_Part):
    """Where the time of one turn went; seconds of wall time."""

    pause_s: float | None = None
    """Last speech sample -> work on the answer began, held back until the turn was over (session seconds)."""
    endpoint_s: float | None = None
    """Last speech sample -> the turn was held to be over (session seconds)."""
    asr_s: float | None = None
    final_text_s: float | None = None
    """The turn was held to be over -> its final text was there; 0 when it was there before."""
    recall_s: float | None = None
    first_token_s: float | None = None
    """Prompt handed to the language model -> its first token."""
    first_clause_s: float | None = None
    """First token -> the first clause of the reply complete, so that it can be spoken."""
    first_audio_s: float | None = None
    """First clause of the reply complete -> its first sample of speech made."""
    voice_to_voice_s: float | None = None
    """Last speech sample of the wearer, measured against the input -> first sample handed to the speaker.
    Only in a real-time replay."""


class Turn(_Part):
    """One thing that the wearer said, and what came of it."""

    turn_id: str
    revision: int = 0
    time: datetime
    """The wearer's date and time at ``start_s``."""
    start_s: float
    end_s: float
    """First and last speech sample, session seconds."""
    heard: str
    reference: str | None = None
    reply: str
    route: Literal["local", "cloud", "fallback", "rule"]
    """Where the reply was made; "rule": by rule, with no model."""
    route_reason: str
    failed: str | None = None
    """Why the turn was not, or not wholly, answered; else absent. ``heard`` and ``reply`` hold what there
    was, and without a ``route_reason`` no route was chosen."""
    took_up: str | None = None
    """The turn before it, that was cut off too early: its words stand in ``heard``."""
    interrupted: bool | None = None
    """The wearer spoke before the reply was over; ``reply`` holds the words that were heard."""
    scene: str | None = None
    looked_at: str | None = None
    """What the wearer's gaze rested on while they spoke, where that is clear."""
    recalled: list[Recalled]
    reply_file: str | None = None
    """Path of the spoken reply below the output folder."""
    reply_s: float | None = None
    """Length of the spoken reply, seconds."""
    reply_start_s: float | None = None
    """Session second of the first sample handed to the speaker; only in a real-time replay."""
    latency: Latency


class Frame(_Part):
    """One scene frame that was taken and told something new."""

    at_s: float
    time: datetime
    file: str
    scene: str
    usable: bool
    why: str | None = None
    """Why it was taken."""
    looked_at: str | None = None
    motion: Literal["still", "moving"] | None = None
    """Whether the picture held still, where a frame just before it tells."""
    thumbnail: str | None = Field(default=None, exclude=True)
    """A data: URL for the page; never in the JSON, and only where the session allows it."""


class Eye(_Part):
    """What was made of the eye camera."""

    frames: int
    pupils: int
    """Frames that gave a gaze."""
    fixations: int
    blinks: int
    skipped: int
    """Frames that came too late or could not be used."""

    @property
    def told(self) -> str:
        """In words."""
        return f"gaze in {self.pupils} of {self.frames} frames; it rested {self.fixations} times"


class Context(_Part):
    """A real-time context C = {scene, utterance, location, activity} (paper 3.2.2)."""

    at_s: float
    time: datetime
    scene: str
    utterance: str
    location: str
    activity: str


class Event(_Part):
    """A daily event: contiguous contexts of one place and activity (paper 3.2.3)."""

    start: datetime
    end: datetime
    location: str
    activity: str
    summary: str
    contexts: int


class Summary(_Part):
    """What one conversation was about."""

    start: datetime
    end: datetime
    text: str


class ProfileLine(_Part):
    """One thing known about the wearer."""

    kind: str
    text: str
    confidence: float
    learned: datetime
    source_turn: str


class Resources(_Part):
    """What the replay cost."""

    rss_max_mb: float
    cpu_s: float
    wall_s: float


class Report(_Part):
    """The whole of ``report.json``."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    os1_version: str
    session: SessionInfo
    machine: dict[str, str | int | float]
    models: dict[str, ModelFile]
    turns: list[Turn]
    frames: list[Frame]
    eye: Eye | None = None
    """Absent where the session has no eye camera."""
    contexts: list[Context]
    events: list[Event]
    summaries: list[Summary] | None = None
    profile: list[ProfileLine]
    resources: Resources
    word_error_rate: float | None = None
    """Words wrong, missing or too many per word of reference: 0 is faultless, and it may pass 1. Every
    reference counts, heard or not, and all that was heard, said or not. Absent without references."""
    unheard: list[str] | None = None
    """References that no turn heard a word of; absent where there are none."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def write(self, path: Path) -> None:
        """Writes the JSON to ``path``."""
        path.write_text(self.model_dump_json(indent=1, by_alias=True, exclude_none=True) + "\n", "utf-8")
