"""A vision model in a worker process: os1_models.vision behind `child`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from os1_cloud.engines import BadImage, BadSchema, EngineError, TooLong
from os1_cloud.engines.child import Stop
from os1_cloud.engines.frames import Frame


class VisionChild:
    """One model with its projector."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Loads `spec["model"]` and `spec["projector"]`.

        Raises:
            EngineError: they are not what they should be.
        """
        from os1_models import vision

        self._vision: Any = vision
        try:
            self._model: Any = vision.VisionModel(
                Path(spec["model"]), Path(spec["projector"]), threads=spec["threads"], context=spec["context"]
            )
        except vision.VisionError as e:
            raise EngineError(str(e)) from e
        self._session = ""
        self.facts: dict[str, Any] = {"context_tokens": spec["context"]}

    def do(self, job: dict[str, Any], blob: bytes, stop: Stop) -> Iterator[Frame]:
        """As `LlamaModel.do`; `blob` holds the pictures in order, `job["images"]` their lengths by turn."""
        v = self._vision
        if not job["session"] or job["session"] != self._session:
            self._model.forget()  # nothing read or seen for one wearer is there for the next
        self._session = job["session"]
        turns, at = [], 0
        for (role, text), sizes in zip(job["turns"], job["images"], strict=True):
            pictures = []
            for size in sizes:
                pictures.append(blob[at : at + size])
                at += size
            turns.append(v.Turn(role, text, tuple(pictures)))
        try:
            for part in self._model.answer(
                turns, job["max_tokens"], stop=stop, json_schema=job["json_schema"]
            ):
                if isinstance(part, v.Piece):
                    yield {"text": part.text}, b""
                else:
                    counts = {"prompt_tokens": part.prompt_tokens, "answer_tokens": part.answer_tokens}
                    yield {"why": part.why, "cached_tokens": 0, **counts}, b""
        except v.Stopped:
            return
        except v.BadPicture as e:
            raise BadImage(str(e)) from e
        except v.TooLong as e:
            raise TooLong(str(e)) from e
        except v.BadSchema as e:
            raise BadSchema(str(e)) from e
        except v.VisionError as e:
            raise EngineError(str(e)) from e
