"""Speech synthesis by Piper."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np
import onnxruntime

from os1_edge.events import Samples
from os1_edge.speak.align import phoneme_runs, place_words
from os1_edge.speak.clauses import clauses_of
from os1_edge.speak.heard import AUDIBLE, Word
from os1_edge.speak.spoken import spoken
from os1_edge.speak.voicefile import with_durations

if TYPE_CHECKING:
    from piper.voice import AudioChunk

LEAD_S = 0.02
"""Silence kept before the first audible sample: a soft consonant begins under the threshold."""

PAUSES_S = {".": 0.32, "!": 0.32, "?": 0.32, "…": 0.4, ":": 0.25, ";": 0.25, ",": 0.14, "—": 0.2, "–": 0.2}
"""Silence after a clause by its last mark. Piper leaves 0.05 to 0.25 s of its own, whatever the mark."""

PAUSE_S = 0.1
"""Silence after a clause without a mark at its end."""

LOUDNESS = 0.1
"""Root mean square of the audible part of a clause: -20 dB under full scale, as speech is recorded. Piper
would bring each sentence's loudest sample to full scale, so that a short "Yes." shouts."""

PEAK = 0.95
"""No sample is louder."""

LONGEST_RUN = 400
"""Characters that the model speaks in one run: about 25 s of speech, 300 MB."""

LOUDEST_GAIN = 4.0
"""A clause that is almost silent is not blown up to noise."""


class NotAVoice(Exception):
    """The model is not a Piper voice; the message says why."""


@dataclass(frozen=True, slots=True)
class Speech:
    """A clause spoken."""

    samples: Samples = field(repr=False)
    """Mono float32 in -1..1, with the pause that belongs behind the clause; empty when there is nothing to
    say."""
    rate: int
    words: tuple[Word, ...] | None
    """Where the words lie, if the voice tells."""


class Synthesiser(Protocol):
    """A voice. Blocking; call it in a worker thread, one call at a time."""

    rate: int
    """Samples a second."""
    rtf: float
    """Seconds that a second of speech takes to make, lately."""

    def speak(self, clause: str) -> Speech:
        """Speaks one clause as written: numbers, markup and emoji are seen to."""
        ...


class Piper:
    """One loaded voice, a ``Synthesiser``. The first call is as fast as the next: loading speaks once.

    Raises:
        NotAVoice: the file, or the ``.json`` beside it, is not a Piper voice that can be used here.
    """

    def __init__(
        self, model: Path, speed: float = 1.0, seed: int = 1, threads: int = 2, *, lean: bool = False
    ) -> None:
        """``lean``: 60 MB less, and a sixth slower."""
        from piper import PiperVoice, SynthesisConfig
        from piper.config import PiperConfig

        try:
            settings = json.loads(Path(f"{model}.json").read_text("utf-8"))
            config = PiperConfig.from_dict(settings)
        except OSError:
            raise NotAVoice(f"{model}: not a Piper voice (no settings at {model}.json)") from None
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise NotAVoice(f"{model}: not a Piper voice ({model.name}.json: {_why(e)})") from None
        # The voice draws random numbers; a fixed seed makes a replay's speech repeatable.
        onnxruntime.set_seed(seed)
        try:
            session = _session(with_durations(model.read_bytes()), threads, lean)
            self._voice = PiperVoice(config=config, session=session)
            self._settings = SynthesisConfig(length_scale=1.0 / speed, normalize_audio=False)
            self._english = config.espeak_voice.startswith("en")
            self.rate: int = config.sample_rate
            self.rtf = 0.0
            self.speak("Yes.")
        except Exception as e:
            raise NotAVoice(f"{model}: not a Piper voice that works here ({_why(e)})") from None

    def speak(self, clause: str) -> Speech:
        """See ``Synthesiser``. One clause is one run of the model; its length is the caller's to bound."""
        text = spoken(clause) if self._english else spoken(clause, numbers=False)
        if not text:
            return Speech(np.zeros(0, np.float32), self.rate, ())
        began = perf_counter()
        parts: list[Samples] = []
        runs, told, length = [], True, 0
        for chunk in self._chunks(text):
            if chunk.phoneme_alignments is None:
                told = False
            else:
                lengths = [(a.phoneme, int(a.num_samples)) for a in chunk.phoneme_alignments]
                runs += phoneme_runs(lengths, length)
            parts.append(chunk.audio_float_array)
            length += len(parts[-1])
        raw = np.concatenate([*parts, np.zeros(0, np.float32)]).astype(np.float32)
        samples, cut = _trimmed(_levelled(raw), self.rate, text)
        words = place_words(clause, text, runs) if told else None
        if words is not None:
            words = tuple(
                Word(w.text_end, *(min(max(at - cut, 0), len(samples)) for at in (w.begin, w.end)))
                for w in words
            )
        if len(samples):
            self.rtf = 0.8 * self.rtf + 0.2 * (perf_counter() - began) / (len(samples) / self.rate)
        return Speech(samples, self.rate, words)

    def _chunks(self, text: str) -> Iterator[AudioChunk]:
        """Piper's chunks of ``text``; figures can make a short clause long, and memory goes with length."""
        for piece in wrap(text, LONGEST_RUN, break_long_words=False, break_on_hyphens=False):
            yield from self._voice.synthesize(piece, self._settings, include_alignments=True)

    def say(self, text: str) -> Samples:
        """The sound of ``speak``, for a text of any length."""
        return np.concatenate([*self.stream(text), np.zeros(0, np.float32)])

    def stream(self, text: str) -> Iterator[Samples]:
        """Speaks ``text`` clause by clause, so that memory does not grow with its length."""
        for clause in clauses_of(text):
            yield self.speak(clause).samples


def _session(model: bytes, threads: int, lean: bool) -> onnxruntime.InferenceSession:
    # From a file of memory, not from the bytes: onnxruntime keeps those for as long as the session lives.
    handle = os.memfd_create("voice")
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(model)
        path = f"/proc/self/fd/{handle}"
        return onnxruntime.InferenceSession(path, _options(threads, lean), providers=["CPUExecutionProvider"])
    finally:
        os.close(handle)


def _options(threads: int, lean: bool) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning threads burn the time that the recogniser and the language model need; see native.py.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Every clause has another length. A plan of memory kept for each is 200 MB after a dozen of them.
    options.enable_mem_pattern = False
    # An arena does not fit lengths that always differ: it grows to 60 MB more, for a sixth of the time.
    options.enable_cpu_mem_arena = not lean
    options.log_severity_level = 3
    return options


def _levelled(samples: Samples) -> Samples:
    """``samples`` at ``LOUDNESS``, without a sample over ``PEAK`` and without any that is not a number."""
    samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    loud = samples[np.abs(samples) > AUDIBLE]
    if not len(loud):
        return samples
    gain = min(LOUDNESS / float(np.sqrt(np.mean(loud**2))), LOUDEST_GAIN)
    gain = min(gain, PEAK / float(np.abs(loud).max()))
    return np.asarray(samples * np.float32(gain), np.float32)


def _trimmed(samples: Samples, rate: int, text: str) -> tuple[Samples, int]:
    """``samples`` with the pause that belongs behind ``text``, and how many were cut off at the beginning."""
    loud = np.flatnonzero(np.abs(samples) > AUDIBLE)
    if not len(loud):
        return samples, 0
    begin = max(0, int(loud[0]) - round(LEAD_S * rate))
    mark = text.rstrip("\"'”’)]")[-1:]
    pause = round(PAUSES_S.get(mark, PAUSE_S) * rate)
    end = int(loud[-1]) + 1
    tail = samples[end : end + pause]  # a sound dies away under the threshold
    silence = np.zeros(pause - len(tail), np.float32)
    return np.concatenate([samples[begin:end], tail, silence]), begin


def _why(error: Exception) -> str:
    return (
        f"{type(error).__name__}: {str(error).splitlines()[0][:200]}" if str(error) else type(error).__name__
    )
