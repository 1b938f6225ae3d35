"""An optional wake word: microWakeWord on its own TensorFlow Lite, 10 ms of features at a time.

Off by default: OS-1 is always on. Needs the extra ``wake``; the models lie inside its wheel.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from os1_edge.events import RATE, AudioFrame
from os1_edge.hear.interrupt import alike
from os1_edge.hear.phrases import tokens

PHRASES = {
    "okay nabu": "OKAY_NABU",
    "hey jarvis": "HEY_JARVIS",
    "hey mycroft": "HEY_MYCROFT",
    "alexa": "ALEXA",
}
"""What can be a wake word, and the name of its model."""

REFRACTORY = 2 * RATE
"""After a wake word the next 2 s are none: its probability stays high for some frames
(wyoming-satellite#23, linux-voice-assistant)."""


class NoWakeWord(Exception):
    """The wake word cannot be listened for; the message says what to do."""


def problem() -> str | None:
    """Why no wake word can be listened for here; None when one can. Loads nothing."""
    try:
        found = importlib.util.find_spec("pymicro_wakeword") is not None
    except ImportError:
        found = False
    return None if found else "pymicro-wakeword is not installed: pip install 'os1[wake]'"


class WakeWord:
    """Listens for one phrase in one stream. For one thread."""

    def __init__(self, phrase: str) -> None:
        """Raises:
        NoWakeWord: no such phrase, or the extra is not installed, or not for this machine.
        """
        self.phrase = " ".join(phrase.lower().replace("_", " ").split())
        if self.phrase not in PHRASES:
            raise NoWakeWord(f'"{phrase}" cannot be the wake word; take one of: {", ".join(PHRASES)}')
        if (reason := problem()) is not None:
            raise NoWakeWord(reason)
        try:
            import pymicro_wakeword as micro

            self._features_of: Any = micro.MicroWakeWordFeatures
            self._model: Any = micro.MicroWakeWord.from_builtin(micro.Model[PHRASES[self.phrase]])
        except (ImportError, OSError, AttributeError, ValueError) as e:
            raise NoWakeWord(f"pymicro-wakeword 2 does not load: {str(e).splitlines()[0]}") from e
        self._features: Any = self._features_of()
        self._deaf_until = 0
        self._fresh = True

    def reset(self) -> None:
        """Forgets what was heard, for a gap or mute."""
        if not self._fresh:  # the library reads its model again: not for nothing
            self._model.reset()
            self._features = self._features_of()
            self._fresh = True

    def heard(self, frame: AudioFrame) -> bool:
        """Takes the next frame; whether the wake word ended in it, or up to a quarter of a second ago."""
        self._fresh = False
        samples = np.nan_to_num(frame.samples, nan=0.0, posinf=0.0, neginf=0.0)
        pcm = np.round(np.clip(samples, -1.0, 1.0) * 32767).astype(np.int16).tobytes()
        found = False
        for features in self._features.process_streaming(pcm):
            found |= bool(self._model.process_streaming(features))
        if not found or frame.start < self._deaf_until:
            return False
        self._deaf_until = frame.start + REFRACTORY
        return True


def without_phrase(text: str, phrase: str) -> str:
    """``text`` without a wake word, or the end of one, at its beginning: the gate opens a little before the
    wake word was noticed. "Jarvis, what time is it?" → "what time is it?"."""
    wanted = tokens(phrase)
    words = text.split()
    for n in range(len(wanted), 0, -1):
        said = tokens(" ".join(words[:n]))
        if len(said) == n and all(alike(a, b) for a, b in zip(said, wanted[-n:], strict=True)):
            return " ".join(words[n:])
    return text
