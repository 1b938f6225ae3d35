"""Voice activity by Silero on onnxruntime, one thread.

Follows the reference wrapper of snakers4/silero-vad (MIT): each 512-sample chunk is fed with the 64 samples
before it, and the recurrent state is carried from chunk to chunk.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from os1_edge.events import CHUNK, RATE, Samples

CONTEXT = 64
"""Samples of the chunk before that the model sees again."""

RESET_AFTER_QUIET = 30 * RATE // CHUNK
"""Chunks of quiet (30 s) after which the state starts anew: it drifts in long streams."""

QUIET = 0.1
"""Speech probability below which a chunk counts as quiet for the reset."""


class SileroVad:
    """Speech probability of one stream, chunk by chunk."""

    def __init__(self, model: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._rate = np.array(RATE, np.int64)
        self.reset()

    def reset(self) -> None:
        """Forgets the stream; call it before another one."""
        self._state = np.zeros((2, 1, 128), np.float32)
        self._input = np.zeros((1, CONTEXT + CHUNK), np.float32)
        self._quiet = 0

    def probability(self, chunk: Samples) -> float:
        """Probability 0..1 that ``chunk`` (shape (512,), 16 kHz) holds speech."""
        self._input[0, :CONTEXT] = self._input[0, -CONTEXT:]
        self._input[0, CONTEXT:] = np.nan_to_num(chunk, nan=0.0, posinf=0.0, neginf=0.0)
        output, self._state = self._session.run(
            None, {"input": self._input, "state": self._state, "sr": self._rate}
        )
        probability = float(output[0, 0])
        self._quiet = self._quiet + 1 if probability < QUIET else 0
        if self._quiet >= RESET_AFTER_QUIET:
            self.reset()
        return probability
