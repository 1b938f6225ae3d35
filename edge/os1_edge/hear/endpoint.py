"""Has the speaker finished? Smart Turn v3.2 (Pipecat, BSD-2) on onnxruntime, from sound alone.

The model takes the last 8 s of the turn, up to and with the short pause; shorter audio is filled up with
silence in front, as in its training and in pipecat's ``local_smart_turn_v3.py``. Of a long turn it judges
better by its last words alone, with silence before them: see ``SPEECH``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from os1_edge.events import RATE, Samples
from os1_edge.hear.logmel import log_mel

HEARD = 8 * RATE
"""Samples of the model's window: 8 s."""

SPEECH = 3 * RATE
"""Samples of speech in that window: the last 3 s. With all 8 s filled, the end of a long turn is often
missed. Over 126 recordings of ``bench.joins`` (turns of 9 s, median), 51 % of the ends and 24 % of the pauses
inside sentences reached .8 with 8 s of speech, 58 and 26 % with 4 s, 64 and 26 % with 3 s. Turns up to 3 s
are heard whole either way."""


class NotSmartTurn(Exception):
    """The model named for the end of turn is not one; the message names its file."""


class SmartTurn:
    """The loaded model. Blocking, tens of milliseconds a call: call it in a worker thread, one at a time."""

    def __init__(self, model_path: Path, threads: int = 1, speech: int = SPEECH) -> None:
        """Loads the model. ``speech`` is how many of the last samples it hears; ``HEARD`` is pipecat's way.

        Raises:
            NotSmartTurn: ``model_path`` is no Smart Turn model.
        """
        self._speech = min(max(speech, 1), HEARD)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # An arena would keep 30 MB from pause to pause; without it a run takes as long.
        options.enable_cpu_mem_arena = False
        # It runs once a pause; between two runs its threads must not spin.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(model_path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as e:
            # onnxruntime has a type of its own for each way in which a file can be wrong.
            raise NotSmartTurn(f"{model_path}: not a Smart Turn model ({type(e).__name__})") from None
        if [i.name for i in self._session.get_inputs()] != ["input_features"]:
            raise NotSmartTurn(f"{model_path}: not a Smart Turn model")

    def complete(self, audio: Samples) -> float:
        """Probability 0..1 that who speaks in ``audio`` (mono, 16 kHz, any length) has finished."""
        heard = np.zeros(HEARD, np.float32)
        last = audio[-self._speech :]
        heard[HEARD - len(last) :] = np.nan_to_num(last, nan=0.0, posinf=0.0, neginf=0.0)
        (probability,) = self._session.run(None, {"input_features": log_mel(heard)[None]})
        return float(probability.reshape(-1)[0])
