"""Speech synthesis by Piper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from os1_edge.events import Samples
from os1_edge.speak.spoken import spoken


class NotAVoice(Exception):
    """The model is not a Piper voice."""


class Piper:
    """One loaded voice. Blocking; call it in a worker thread, one call at a time."""

    def __init__(self, model: Path, speed: float = 1.0, seed: int = 1) -> None:
        from piper import PiperVoice, SynthesisConfig

        if not Path(f"{model}.json").is_file():
            raise NotAVoice(f"{model}: not a Piper voice")
        # The voice draws random numbers; a fixed seed makes a replay's speech repeatable.
        onnxruntime.set_seed(seed)
        self._voice = PiperVoice.load(model)
        self._settings = SynthesisConfig(length_scale=1.0 / speed)
        self.rate: int = self._voice.config.sample_rate
        """Samples a second of what ``say`` returns."""

    def say(self, clause: str) -> Samples:
        """Speaks one clause; mono float32 at ``rate``, empty when there is nothing to say."""
        text = spoken(clause)
        if not text:
            return np.zeros(0, np.float32)
        chunks = [c.audio_float_array for c in self._voice.synthesize(text, self._settings)]
        return np.concatenate([*chunks, np.zeros(0, np.float32)]).astype(np.float32)
