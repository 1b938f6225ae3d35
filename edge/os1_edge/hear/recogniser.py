"""The seat of speech recognition: what every engine offers, and which engines there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from os1_edge.events import Samples

Engine = Literal["whisper", "sherpa"]
"""``whisper``: whisper.cpp. ``sherpa``: Moonshine on sherpa-onnx, the extra of that name."""

ENGINES: tuple[Engine, ...] = get_args(Engine)

Cancelled = Callable[[], bool]
"""Asked between the steps of a pass, in the thread that runs it. Once it has answered True the pass is
abandoned and the transcript is empty: nobody waits for it any more."""


class UnknownEngine(Exception):
    """No engine has that name; the message lists those there are."""


class EngineMissing(Exception):
    """The engine's package is not installed; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a transcript; seconds from the start of the audio."""

    start_s: float
    end_s: float
    text: str


class Recogniser(Protocol):
    """One loaded model. Blocking; call it in one worker thread, one call at a time.

    The same audio gives the same words, whatever was heard before.
    """

    def segments(self, audio: Samples, cancelled: Cancelled | None = None) -> list[Segment]:
        """Transcribes ``audio``: mono float32 at 16 kHz, shape (n,), up to 30 s, in -1..1.

        Samples that are not numbers count as silence. Silence, noise and what an engine invents over them
        give no segment; nor does a pass that was cancelled.
        """
        ...

    def text(self, audio: Samples, cancelled: Cancelled | None = None) -> str:
        """The words in ``audio``; empty where there are none, or when cancelled."""
        ...


def make_recogniser(engine: str, model: Path, language: str = "en", threads: int = 2) -> Recogniser:
    """Loads ``model``, the main file of a model for ``engine``.

    Raises:
        UnknownEngine: there is no such engine.
        EngineMissing: the engine is an extra that is not installed.
        NotWhisper, NotMoonshine: the file is no model of that engine.
        UnknownLanguage: the model has no such language.
    """
    if engine == "whisper":
        from os1_edge.hear.asr import Whisper

        return Whisper(model, language, threads)
    if engine == "sherpa":
        from os1_edge.hear.sherpa import SherpaMoonshine

        return SherpaMoonshine(model, language, threads)
    raise UnknownEngine(f'no speech recognition engine is called "{engine}"; there are: {", ".join(ENGINES)}')
