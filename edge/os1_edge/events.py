"""The typed events that flow between stages. Frozen; times are session seconds unless named otherwise.

Every artefact of a turn carries ``(turn_id, revision)``: when the wearer speaks on, the revision moves, and
whatever bears an old one is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
"""Samples a second of all audio inside the runtime."""

CHUNK = 512
"""Samples of one audio frame: 32 ms, what Silero takes."""

Samples = NDArray[np.float32]
"""Mono audio, float32 in -1..1."""

Image = NDArray[np.uint8]
"""A picture, uint8 of shape (height, width, 3), BGR."""


UNKNOWN_LOCATION = "somewhere"
"""The location of a context that nothing tells of."""


def turn_ids(now: Callable[[], datetime] = datetime.now) -> Callable[[], str]:
    """Ids of turns that no other run has: the run's beginning and a number."""
    run, numbers = now().strftime("%Y%m%dT%H%M%S"), count(1)
    return lambda: f"{run}-{next(numbers):04d}"


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """32 ms of microphone."""

    start: int
    """Index of the first sample since the session began."""
    samples: Samples = field(repr=False)
    """Shape (CHUNK,)."""


@dataclass(frozen=True, slots=True)
class SceneFrame:
    """One picture of the scene camera."""

    at_s: float
    source: str
    """File or device that it came from."""
    image: Image = field(repr=False)


@dataclass(frozen=True, slots=True)
class EyeFrame:
    """One picture of the near-eye camera."""

    at_s: float
    source: str
    """File or device that it came from."""
    image: NDArray[np.uint8] = field(repr=False)
    """Grey (height, width) or BGR (height, width, 3)."""


@dataclass(frozen=True, slots=True)
class SeenFrame:
    """A scene frame that has been described; the picture itself is gone."""

    at_s: float
    source: str
    why: str
    """Why it was taken."""
    thumbnail: bytes | None = field(default=None, repr=False)
    """A small JPEG without faces, where one was asked for."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The wearer began to speak."""

    turn_id: str
    at: int
    """Sample index of the first speech sample, as far as the detector can tell."""


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """A first short pause: the turn may be over. Work on it may start now, held back until ``TurnEnded``."""

    turn_id: str
    revision: int
    """Counts the pauses of the turn that speech went on after; ``TurnEnded`` of the same revision means that
    nothing more was said."""
    start: int
    """Sample index of the first speech sample."""
    end: int
    """Sample index one after the last speech sample so far."""
    decided: int
    """Sample index at which the pause was noticed."""
    audio: Samples = field(repr=False)
    """The speech so far, with pre-roll and what there is of the pause."""
    audio_start: int
    """Sample index of the audio's first sample."""


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The wearer speaks on after a ``SpeechPaused``: what was made of the revision before is void."""

    turn_id: str
    revision: int
    """The new revision."""
    at: int
    """Sample index at which speech went on."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The wearer has finished speaking."""

    turn_id: str
    revision: int
    start: int
    """Sample index of the first speech sample."""
    end: int
    """Sample index one after the last speech sample, by the detector."""
    decided: int
    """Sample index at which the end was decided."""
    reason: str
    audio: Samples = field(repr=False)
    """The speech with pre-roll and a short tail."""
    audio_start: int
    """Sample index of the audio's first sample."""


@dataclass(frozen=True, slots=True)
class PartialTranscript:
    """What the wearer has said so far, while they speak."""

    turn_id: str
    revision: int
    stable: str
    """Words that successive hypotheses agree on; within a revision they are never taken back."""
    tentative: str
    """The newest hypothesis' words behind them."""


@dataclass(frozen=True, slots=True)
class RealtimeContext:
    """C = {scene, utterance, location, activity} (paper 3.2.2)."""

    at_s: float
    scene: str
    utterance: str
    location: str
    activity: str


@dataclass(frozen=True, slots=True)
class Gaze:
    """Where the wearer looks, on the scene picture."""

    at_s: float
    x: float
    """Pixels of the scene picture from its left; may lie outside it."""
    y: float
    """Pixels from its top."""
    confidence: float
    """Probability that the gaze is within five degrees of this point, 0..1."""
    error_deg: float
    """Median error to be expected, in degrees: the size of a crop follows it."""


@dataclass(frozen=True, slots=True)
class Fixation:
    """The gaze rested."""

    start_s: float
    end_s: float
    x_deg: float
    """Mean direction, degrees right of the scene camera's axis."""
    y_deg: float
    """Degrees below it."""


@dataclass(frozen=True, slots=True)
class Blink:
    """The eye was closed for a moment."""

    start_s: float
    end_s: float
