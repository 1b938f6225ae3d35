"""whisper.cpp in a worker process, through pywhispercpp."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from os1_cloud.engines import EngineError
from os1_cloud.engines.child import Stop
from os1_cloud.engines.frames import Frame

RATE = 16_000
GGML = b"lmgg"
"""The first bytes of a whisper.cpp model; given anything else, whisper.cpp ends the process."""
SHORTEST = 11 * RATE // 10
"""whisper.cpp refuses less than 100 ms and does badly on less than a second: shorter sound is filled up."""
QUIET = 0.002
"""Loudest sample (of 1) below which there is nothing to hear: Whisper would make something up."""


class WhisperModel:
    """One Whisper model in ggml format."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Loads `spec["model"]` with `spec["threads"]`.

        Raises:
            EngineError: it is no Whisper model.
        """
        from pywhispercpp.model import Model

        with Path(spec["model"]).open("rb") as file:
            if file.read(len(GGML)) != GGML:
                raise EngineError("it is no Whisper model in ggml format")
        self._model: Any = Model(
            spec["model"],
            n_threads=spec["threads"],
            print_progress=False,
            print_realtime=False,
            print_timestamps=False,
            redirect_whispercpp_logs_to=None,
        )
        self._languages = set(Model.available_languages())
        self.facts: dict[str, Any] = {}

    def do(self, job: dict[str, Any], blob: bytes, stop: Stop) -> Iterator[Frame]:
        """One ``{"text"}`` for the samples in `blob` (signed 16-bit little-endian, mono, 16,000 a second)."""
        samples = np.frombuffer(blob, "<i2").astype(np.float32) / 32768
        if not len(samples) or float(np.abs(samples).max()) < QUIET:
            yield {"text": ""}, b""
            return
        padded = np.ascontiguousarray(np.pad(samples, (0, max(0, SHORTEST - len(samples)))))
        language = job["language"].partition("-")[0].lower()
        segments = self._model.transcribe(
            padded,
            abort_callback=stop,
            language=language if language in self._languages else "auto",
            no_context=True,
            suppress_nst=True,
        )
        if not stop():
            yield {"text": " ".join(text for s in segments if (text := s.text.strip()))}, b""
