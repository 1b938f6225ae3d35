"""Language models in worker processes: llama.cpp for text, and for text and pictures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.engines.worker import Recycle, Worker


class _InWorker:
    """An engine whose model is in a process of its own."""

    vision = False

    def __init__(self, name: str, spec: dict[str, Any], recycle: Recycle) -> None:
        self.name, self.context_tokens = name, int(spec["context"])
        self.worker = Worker(name, spec, recycle)

    async def start(self) -> None:
        """Loads the model.

        Raises:
            EngineError: it cannot be loaded.
        """
        await self.worker.start()

    async def check(self) -> None:
        """See `Worker.check`."""
        await self.worker.check()

    def close(self) -> None:
        """Ends the worker."""
        self.worker.close()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        """See `Engine.generate`."""
        images = [image for turn in prompt.turns for image in turn.images]
        job = {
            "turns": [[turn.role, turn.text] for turn in prompt.turns],
            "images": [[len(image) for image in turn.images] for turn in prompt.turns],
            "max_tokens": prompt.max_tokens,
            "json_schema": prompt.json_schema,
            "session": prompt.session,
            "prefix": prompt.prefix,
        }
        async with aclosing(self.worker.do(job, b"".join(images))) as parts:
            async for part, _ in parts:
                if "text" in part:
                    yield Piece(part["text"])
                else:
                    yield Finished(
                        part["why"], part["prompt_tokens"], part["answer_tokens"], part["cached_tokens"]
                    )


class Llama(_InWorker):
    """One GGUF model with a chat template, always at temperature 0."""

    def __init__(
        self,
        name: str,
        model: Path,
        threads: int,
        context: int = 4096,
        *,
        gpu_layers: int = 0,
        recycle: Recycle = Recycle(),  # noqa: B008 - frozen
    ) -> None:
        """Args:
        name: what clients know it by.
        model: a GGUF file with a chat template.
        threads: CPU threads.
        context: tokens of prompt and answer together.
        gpu_layers: layers on the GPU, if llama.cpp was built for one; -1: all.
        recycle: when its process is replaced.
        """
        spec = {"kind": "llama", "model": str(model), "threads": threads, "context": context}
        super().__init__(name, {**spec, "gpu_layers": gpu_layers}, recycle)


class Llava(_InWorker):
    """One GGUF model with its projector: looks at pictures, LLaVA and its like."""

    vision = True

    def __init__(
        self,
        name: str,
        model: Path,
        projector: Path,
        threads: int,
        context: int = 4096,
        *,
        recycle: Recycle = Recycle(),  # noqa: B008 - frozen
    ) -> None:
        """See `Llama`; `projector`: the model's mmproj GGUF file."""
        spec = {"kind": "vision", "model": str(model), "projector": str(projector)}
        super().__init__(name, {**spec, "threads": threads, "context": context}, recycle)
