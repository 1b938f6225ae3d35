"""Speech recognition by whisper.cpp through pywhispercpp."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from os1_edge.events import RATE, Samples
from os1_edge.native import let_threads_sleep

WINDOW = 1500
"""Encoder positions of Whisper's whole 30 s window, 50 a second."""

MIN_CONTEXT = 512
"""Encoder positions at least: with fewer, clips of 1.5-3 s fall into repetition loops."""

CONTEXT_STEP = 256
"""Encoder positions come in multiples of this: with flash attention and another number, a transcript
depends on the utterance before it."""

NON_SPEECH = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|♪[^♪]*♪?")
"""Tags such as [Music] or (wind blowing) that Whisper writes where nobody speaks."""


GGML = b"lmgg"
"""The first bytes of a whisper.cpp model; given anything else, whisper.cpp ends the process."""


class NotWhisper(Exception):
    """The model named for speech recognition is not one; the message names its file."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a transcript; seconds from the start of the audio."""

    start_s: float
    end_s: float
    text: str


def encoder_positions(seconds: float) -> int:
    """How much of Whisper's 30 s window to compute for ``seconds`` of audio; 0 means all of it."""
    needed = math.ceil(seconds * 50) + 64
    positions = max(MIN_CONTEXT, math.ceil(needed / CONTEXT_STEP) * CONTEXT_STEP)
    return 0 if positions >= WINDOW else positions


def clean(text: str) -> str:
    """The words of a transcript, without non-speech tags."""
    return " ".join(NON_SPEECH.sub(" ", text).split())


class UnknownLanguage(Exception):
    """A language code that Whisper does not have."""


class Whisper:
    """One loaded Whisper model. Blocking; call it in a worker thread, one call at a time."""

    def __init__(self, model: Path, language: str = "en", threads: int = 2) -> None:
        """Loads ``model``.

        Raises:
            NotWhisper: it is no whisper.cpp model.
            UnknownLanguage: ``language`` is neither "auto" nor one of Whisper's codes.
        """
        let_threads_sleep()
        from pywhispercpp.model import Model

        with model.open("rb") as file:
            if file.read(len(GGML)) != GGML:
                raise NotWhisper(f"{model}: not a Whisper model")
        if language != "auto" and language not in Model.available_languages():
            raise UnknownLanguage(
                f'Whisper knows no language "{language}"; give a code such as en or de, or auto'
            )
        self._model = Model(
            str(model),
            n_threads=threads,
            print_progress=False,
            print_realtime=False,
            print_timestamps=False,
            redirect_whispercpp_logs_to=None,
        )
        self._language = language

    def segments(self, audio: Samples) -> list[Segment]:
        """Transcribes ``audio`` (mono float32, 16 kHz, any length)."""
        seconds = len(audio) / RATE
        if seconds == 0:
            return []
        # whisper.cpp refuses less than 100 ms and does badly on less than a second.
        padded = np.pad(audio, (0, max(0, RATE * 11 // 10 - len(audio))))
        # No cap on tokens: it would end a repetition loop before Whisper's own entropy check sees it and
        # decodes again ("five five" became fifteen fives).
        found: list[Any] = self._model.transcribe(
            np.ascontiguousarray(padded, np.float32),
            language=self._language,
            no_context=True,
            suppress_nst=True,
            audio_ctx=encoder_positions(len(padded) / RATE),
        )
        cleaned = (Segment(s.t0 / 100, min(s.t1 / 100, seconds), clean(s.text)) for s in found)
        return [s for s in cleaned if s.text]

    def text(self, audio: Samples, cancelled: Any = None) -> str:
        """The words in ``audio``; empty when there are none."""
        return " ".join(s.text for s in self.segments(audio))
