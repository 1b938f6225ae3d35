"""Speech recognition by Moonshine on sherpa-onnx: the extra ``sherpa``, English only.

Moonshine (Jeffries et al. 2024, arXiv:2410.15608) computes as much as there is sound, no fixed window.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from os1_edge.events import RATE, Samples
from os1_edge.hear.ghosts import Evidence, clean, judge, too_quiet
from os1_edge.hear.recogniser import Cancelled, EngineMissing, Segment

DECODER, TOKENIZER = "decoder_model_merged.ort", "tokenizer.bin"
"""What lies beside the encoder, the model's main file."""

SHORTEST = RATE // 2
"""Shorter audio is filled up with silence: the encoder's first layers need some."""


class NotMoonshine(Exception):
    """The model named for sherpa-onnx is not Moonshine; the message says what is missing."""


class SherpaMoonshine:
    """One loaded Moonshine model, a `Recogniser`. Blocking; call it in a worker thread, one call at a time.

    A pass cannot be stopped midway (sherpa-onnx has no call for it); what it gave is thrown away.
    """

    def __init__(self, encoder: Path, language: str = "en", threads: int = 2) -> None:
        """Loads the model whose main file is ``encoder``.

        Raises:
            EngineMissing: sherpa-onnx is not installed.
            NotMoonshine: it is no Moonshine model, or not asked for English.
        """
        try:
            import sherpa_onnx
        except ModuleNotFoundError:
            raise EngineMissing("sherpa-onnx is not installed; run: pip install 'os1[sherpa]'") from None
        if language not in ("en", "auto"):
            raise NotMoonshine(f'Moonshine knows English only, not "{language}"; set hear.engine = "whisper"')
        folder = encoder.parent
        if encoder.suffix != ".ort" or not all((folder / name).is_file() for name in (DECODER, TOKENIZER)):
            raise NotMoonshine(f"{encoder}: not a Moonshine model")  # sherpa-onnx would end the process
        with TemporaryDirectory() as scratch:
            tokens = Path(scratch, "tokens.txt")
            tokens.write_text("".join(_table((folder / TOKENIZER).read_bytes())), "ascii")
            self._recognizer: Any = sherpa_onnx.OfflineRecognizer.from_moonshine_v2(
                encoder=str(encoder), decoder=str(folder / DECODER), tokens=str(tokens), num_threads=threads
            )

    def segments(self, audio: Samples, cancelled: Cancelled | None = None) -> list[Segment]:
        """Transcribes ``audio`` as one segment; see `Recogniser.segments`."""
        audio = np.nan_to_num(np.asarray(audio, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        if too_quiet(audio) or (cancelled is not None and cancelled()):
            return []
        seconds = len(audio) / RATE
        stream = self._recognizer.create_stream()
        stream.accept_waveform(RATE, np.pad(audio, (0, max(0, SHORTEST - len(audio)))))
        self._recognizer.decode_stream(stream)
        text = clean(stream.result.text)
        if cancelled is not None and cancelled():
            return []
        return [Segment(0.0, seconds, text)] if text and judge(text, Evidence(seconds)).kept else []

    def text(self, audio: Samples, cancelled: Cancelled | None = None) -> str:
        """The words in ``audio``; see `Recogniser.text`."""
        return " ".join(s.text for s in self.segments(audio, cancelled))


def _table(tokenizer: bytes) -> Iterator[str]:
    """Moonshine's token list as the lines of a table that sherpa-onnx reads.

    Each token is its length (one byte, or two when it is 128 or more: low seven bits first), then its bytes;
    follows sherpa-onnx, scripts/moonshine/v2.
    """
    at = number = 0
    while at < len(tokenizer):
        length, at = tokenizer[at], at + 1
        if length >= 128:
            length, at = tokenizer[at] * 128 + length - 128, at + 1
        yield f"{base64.b64encode(tokenizer[at : at + length]).decode()} {number}\n"
        at, number = at + length, number + 1
