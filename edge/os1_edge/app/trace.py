"""What a turn leaves behind, and who is told of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from os1_edge.events import PartialTranscript, SeenFrame, TurnEnded
from os1_edge.remember.recall import Hit
from os1_edge.see.scene import SceneDescription

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TurnTrace:
    """All that happened in one turn. Durations are wall seconds; what ends in ``_at_s`` is a session second.

    Work on a turn begins at its first short pause, so the durations overlap with the wait for its end; only
    ``final_text_s`` and the session seconds tell what the wearer waits for.
    """

    ended: TurnEnded
    heard: str = ""
    took_up: str = ""
    """An earlier turn that this one goes on with: it was cut off too early; its words stand in ``heard``."""
    reply: str = ""
    """The words that reached the wearer's ear."""
    interrupted: bool = False
    """The wearer spoke before the reply was over; the rest of it is nowhere."""
    route: Literal["local", "cloud", "rule", "fallback"] = "local"
    route_reason: str = ""
    scene: str = ""
    looked_at: str = ""
    """What the wearer's gaze rested on, where that is known."""
    hits: list[Hit] = field(default_factory=list)
    paused_at: int | None = None
    """Sample at which the pause was noticed at which work on this answer began."""
    asr_s: float | None = None
    final_text_s: float | None = None
    """End of turn -> the final text was there; 0 when it was there before."""
    recall_s: float | None = None
    inline: tuple[str, ...] = ()
    """Agents' work that was done while the wearer waited."""
    agents: tuple[str, ...] = ()
    """Why each of it was, or was not."""
    first_token_s: float | None = None
    first_clause_s: float | None = None
    """First token -> the first clause was complete."""
    first_audio_s: float | None = None
    spoke_at_s: float | None = None
    spoken_s: float = 0.0
    spoken_file: str | None = None
    """Where a replay's speaker wrote the reply."""
    failed: str | None = None
    """Why the turn was not answered."""


class Observer(Protocol):
    """Is told what happened: a report, a page, a log. Must return at once."""

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        """A scene frame was described, or words were read in it; the picture itself is not handed on."""
        ...

    def partly_heard(self, partial: PartialTranscript) -> None:
        """What the wearer has said so far, as far as it can be told."""
        ...

    def being_said(self, trace: TurnTrace, clauses: Sequence[str]) -> None:
        """``clauses`` are what is said in answer to ``trace.heard`` so far; the newest sounds next."""

    def turn_answered(self, trace: TurnTrace) -> None:
        """A turn was answered and the reply has been heard, or it failed (``trace.failed`` says why)."""
        ...

    def forgot(self) -> None:
        """The wearer had something forgotten, taken back or corrected: words of before are shown no more."""


def tell_failure(what: str, error: BaseException) -> None:
    """Logs that ``what`` failed. Only the error's type: its message may hold what was said."""
    log.error("%s failed: %s", what, type(error).__name__)
    log.debug("%s failed", what, exc_info=error)
