"""Speech recognition by whisper.cpp through pywhispercpp's bindings. Not through its ``Model``, whose module
brings a downloader: 10 MB and a tenth of a second."""

from __future__ import annotations

import atexit
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from os1_edge.events import RATE, Samples
from os1_edge.hear.ghosts import Evidence, clean, judge, too_quiet
from os1_edge.hear.recogniser import Cancelled, Segment
from os1_edge.hear.window import END_SLACK_S, Heard, Pass, doubt, passes, sound_end_s
from os1_edge.native import let_threads_sleep

__all__ = ["NotWhisper", "Segment", "UnknownLanguage", "Whisper"]

GGML = b"lmgg"
"""The first bytes of a whisper.cpp model; given anything else, whisper.cpp ends the process."""

SHORTEST = 11 * RATE // 10
"""whisper.cpp refuses less than 100 ms and does badly on less than a second: shorter audio is filled up."""

RETRY = 0.4
"""Steps of temperature, to 1, in which the last pass is tried again: three tries. whisper.cpp's own five let
a loop keep the processor for ten seconds."""

TICK_S = 0.02
"""Seconds that one of Whisper's time tokens stands for."""


class NotWhisper(Exception):
    """The model named for speech recognition is not one; the message names its file."""


class UnknownLanguage(Exception):
    """A language code that Whisper does not have."""


@dataclass(slots=True)
class _Piece:
    """Tokens between two times of Whisper's."""

    start_s: float
    end_s: float | None = None
    spelling: bytes = b""
    words: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)


@cache
def _silence(native: Any) -> None:
    """Keeps whisper.cpp off the terminal, until the interpreter ends and takes the callback with it."""
    native.whisper_log_set(lambda *_: None)
    atexit.register(native.whisper_log_set, None)


class Whisper:
    """One loaded Whisper model, a `Recogniser`. Blocking; call it in a worker thread, one call at a time."""

    def __init__(self, model: Path, language: str = "en", threads: int = 2) -> None:
        """Loads ``model``.

        Raises:
            NotWhisper: it is no whisper.cpp model.
            UnknownLanguage: ``language`` is neither "auto" nor one of Whisper's codes.
        """
        let_threads_sleep()
        import _pywhispercpp as native

        with model.open("rb") as file:
            if file.read(len(GGML)) != GGML:
                raise NotWhisper(f"{model}: not a Whisper model")
        if language != "auto" and language not in map(
            native.whisper_lang_str, range(native.whisper_lang_max_id() + 1)
        ):
            raise UnknownLanguage(
                f'Whisper knows no language "{language}"; give a code such as en or de, or auto'
            )
        self._native: Any = native
        _silence(native)
        context: Any = native.whisper_init_from_file_with_params(
            str(model), native.whisper_context_default_params()
        )
        self._context = context
        greedy = native.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY
        self._settings: Any = native.whisper_full_default_params(greedy)
        self._set(n_threads=threads, print_progress=False, print_realtime=False, print_timestamps=False)
        self._set(no_context=True, suppress_nst=True)
        self._first_time = int(native.whisper_token_beg(context))
        self._end_of_text = int(native.whisper_token_eot(context))
        english_only = not native.whisper_is_multilingual(context)
        if english_only and language not in ("en", "auto"):
            raise UnknownLanguage(f'{model} knows English only, not "{language}"; choose whisper-base')
        self._language = "en" if english_only else language

    def segments(self, audio: Samples, cancelled: Cancelled | None = None) -> list[Segment]:
        """Transcribes ``audio``; see `Recogniser.segments`."""
        audio = np.nan_to_num(np.asarray(audio, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        if too_quiet(audio):
            return []
        seconds, end_s = len(audio) / RATE, sound_end_s(audio)
        padded = np.ascontiguousarray(np.pad(audio, (0, max(0, SHORTEST - len(audio)))))
        pieces: list[_Piece] = []
        for how in passes(len(padded) / RATE):
            if (found := self._run(padded, how, end_s, cancelled)) is None:
                return []
            pieces = found
            if how.last or not doubt(self._heard(pieces), how, end_s):
                break
        return self._believed(pieces, seconds)

    def text(self, audio: Samples, cancelled: Cancelled | None = None) -> str:
        """The words in ``audio``; see `Recogniser.text`."""
        return " ".join(s.text for s in self.segments(audio, cancelled))

    @staticmethod
    def _believed(pieces: list[_Piece], seconds: float) -> list[Segment]:
        found = []
        for piece in pieces:
            text = clean(piece.spelling.decode("utf-8", "replace"))
            stop = min(seconds if piece.end_s is None else piece.end_s, seconds)
            start = min(piece.start_s, stop)
            evidence = Evidence(stop - start, _mean_log(piece.chances))
            if text and judge(text, evidence).kept:
                found.append(Segment(start, stop, text))
        return found

    def _run(
        self, audio: Samples, how: Pass, end_s: float, cancelled: Cancelled | None
    ) -> list[_Piece] | None:
        """One pass; None when it was cancelled."""
        stopped = False

        def stop() -> bool:
            nonlocal stopped
            stopped = stopped or (cancelled is not None and cancelled())
            return stopped

        if stop():
            return None
        # A closing time at or after ``duration_ms`` ends the decoding: without it, a window cut close
        # says the same sentence again. It bounds no audio: the window does.
        close_after = 0 if how.last else max(120, int(1000 * (end_s - END_SLACK_S)))
        self._set(
            language=self._language,
            audio_ctx=how.positions,
            max_tokens=how.max_tokens,
            single_segment=not how.last,
            duration_ms=close_after,
            temperature_inc=RETRY if how.last else 0.0,
        )
        self._native.assign_abort_callback(self._settings, None if cancelled is None else stop)
        self._native.whisper_full(self._context, self._settings, audio, len(audio))
        return None if stopped else self._pieces()

    def _set(self, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self._settings, name, value)

    def _pieces(self) -> list[_Piece]:
        native, context, pieces = self._native, self._context, list[_Piece]()
        for i in range(native.whisper_full_n_segments(context)):
            # Times inside a segment count from its window's start.
            base = native.whisper_full_get_segment_t0(context, i) / 100
            origin: float | None = None
            current = _Piece(base)
            for j in range(native.whisper_full_n_tokens(context, i)):
                token = native.whisper_full_get_token_id(context, i, j)
                if token >= self._first_time:
                    at = (token - self._first_time) * TICK_S
                    if origin is None:
                        # A segment that goes on where another ended brings no time of its beginning: its
                        # first is that of its end.
                        end = native.whisper_full_get_segment_t1(context, i) / 100
                        origin = (end if current.words else base) - at
                    if current.words:
                        current.end_s = max(origin + at, current.start_s)
                        pieces.append(current)
                    current = _Piece(max(origin + at, 0.0))
                elif token < self._end_of_text:
                    current.words.append(token)
                    current.spelling += native.whisper_token_to_bytes(context, token)
                    current.chances.append(native.whisper_full_get_token_p(context, i, j))
            if current.words:
                current.end_s = native.whisper_full_get_segment_t1(context, i) / 100
                pieces.append(current)
        return pieces

    def _heard(self, pieces: list[_Piece]) -> Heard:
        native, context = self._native, self._context
        count = sum(
            native.whisper_full_n_tokens(context, i) for i in range(native.whisper_full_n_segments(context))
        )
        words = tuple(w for p in pieces for w in p.words)
        closed = pieces[-1].end_s if pieces else None
        return Heard(words, count, _mean_log([c for p in pieces for c in p.chances]), closed)


def _mean_log(chances: list[float]) -> float:
    return sum(math.log(max(c, 1e-9)) for c in chances) / len(chances) if chances else 0.0
