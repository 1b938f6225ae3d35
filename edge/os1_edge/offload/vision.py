"""The vision model on the device: a language engine that is shown pictures; the near side of a caption.

Chosen by its name in the manifest (``[see] vision_model``); none by default, as the smallest takes seconds a
frame on two cores.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from os1_edge.offload.engine import EngineError, Message, Preempted, Schema, Task
from os1_models import vision

CAPTION = "Say in one or two sentences what this picture shows. Name only what can be seen."
"""What a vision model is asked about a frame, near or far."""
CAPTION_TOKENS = 96


def caption_request(picture: bytes) -> tuple[Message, ...]:
    """The messages of a ``stream`` with ``task="caption"`` about ``picture`` (JPEG or PNG, faces gone)."""
    return (Message("user", CAPTION, (picture,)),)


class LocalVision:
    """One loaded vision model, always at temperature 0."""

    def __init__(self, model: Path, projector: Path, threads: int = 2, context: int = 4096) -> None:
        """Loads both files.

        Args:
            model: a GGUF file.
            projector: its mmproj GGUF file.
            threads: CPU threads.
            context: tokens of prompt, pictures and answer together.

        Raises:
            EngineError: they are no vision model.
        """
        try:
            loaded = vision.VisionModel(model, projector, threads=threads, context=context)
        except vision.VisionError as e:
            raise EngineError(str(e)) from None
        self.name = loaded.name
        self._worker = vision.VisionWorker(loaded)

    @classmethod
    def named(cls, name: str, threads: int = 2, context: int = 4096) -> LocalVision:
        """The pulled model called ``name`` in the manifest.

        Raises:
            os1_models.ModelError: there is none, or it has not been pulled.
            EngineError: it is no vision model.
        """
        try:
            files = vision.files(name)
        except vision.VisionError as e:
            raise EngineError(str(e)) from None
        engine = cls(*files, threads, context)
        engine.name = name
        return engine

    def close(self) -> None:
        """Ends the worker and frees the model."""
        self._worker.close()

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Schema | None = None,
        background: bool = False,
        task: Task = "reply",
    ) -> AsyncGenerator[str, None]:
        """See ``LanguageEngine.stream``; also stops while a picture is being looked at."""
        answer = self._worker.stream(
            _turns(messages),
            max_tokens,
            json_schema=json.dumps(schema) if schema is not None else "",
            background=background,
        )
        try:
            async with aclosing(answer):
                async for part in answer:
                    if isinstance(part, vision.Piece):
                        yield part.text
        except vision.Stopped:
            raise Preempted(f"{self.name} is needed elsewhere") from None
        except vision.VisionError as e:
            raise EngineError(str(e)) from None

    async def prime(self, messages: Sequence[Message]) -> None:
        """See ``LanguageEngine.prime``."""
        await self._worker.prime(_turns(messages))


def _turns(messages: Sequence[Message]) -> list[vision.Turn]:
    return [vision.Turn(m.role, m.text, m.images) for m in messages]
