"""Piper in a worker process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from os1_cloud.engines import EngineError
from os1_cloud.engines.child import Stop
from os1_cloud.engines.frames import Frame


class PiperModel:
    """One Piper voice."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Loads `spec["model"]`, an ONNX file with its `.json` beside it, with `spec["threads"]`.

        Raises:
            EngineError: it is no Piper voice.
        """
        import onnxruntime
        from piper import PiperVoice
        from piper.config import PiperConfig

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = spec["threads"]
        options.inter_op_num_threads = 1
        try:
            config = PiperConfig.from_dict(json.loads(Path(f"{spec['model']}.json").read_text("utf-8")))
            session = onnxruntime.InferenceSession(spec["model"], options, providers=["CPUExecutionProvider"])
            self._voice: Any = PiperVoice(config=config, session=session)
        except Exception as e:
            raise EngineError(f"it is no Piper voice that works here ({type(e).__name__})") from e
        self.facts: dict[str, Any] = {"rate": config.sample_rate}

    def do(self, job: dict[str, Any], blob: bytes, stop: Stop) -> Iterator[Frame]:
        """Sentence by sentence ``{}`` with its samples (signed 16-bit little-endian)."""
        from piper import SynthesisConfig

        # Between two sentences only can it be stopped: onnxruntime takes a run to its end, 0.1 s here.
        how = SynthesisConfig(length_scale=1.0 / job["speed"])
        for chunk in self._voice.synthesize(job["text"], how):
            if stop():
                return
            yield {}, chunk.audio_int16_bytes
