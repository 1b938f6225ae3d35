"""whisper.cpp and Piper, each in a worker process of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from os1_cloud.engines.worker import Recycle, Worker


class Whisper:
    """A `Recognizer`: one Whisper model in ggml format."""

    def __init__(
        self,
        name: str,
        model: Path,
        threads: int,
        *,
        recycle: Recycle = Recycle(),  # noqa: B008 - frozen
    ) -> None:
        self.name = name
        self.worker = Worker(name, {"kind": "whisper", "model": str(model), "threads": threads}, recycle)

    async def start(self) -> None:
        """Loads the model; EngineError: it cannot be loaded."""
        await self.worker.start()

    async def check(self) -> None:
        """See `Worker.check`."""
        await self.worker.check()

    def close(self) -> None:
        """Ends the worker."""
        self.worker.close()

    async def transcribe(self, pcm: bytes, language: str) -> str:
        """See `Recognizer.transcribe`."""
        async with aclosing(self.worker.do({"language": language}, pcm)) as parts:
            return " ".join([part["text"] async for part, _ in parts])


class Piper:
    """A `Voice`: one Piper voice."""

    rate = 22_050
    """Until it is loaded, Piper's usual one."""

    def __init__(
        self,
        name: str,
        model: Path,
        threads: int,
        *,
        recycle: Recycle = Recycle(),  # noqa: B008 - frozen
    ) -> None:
        self.name = name
        self.worker = Worker(name, {"kind": "piper", "model": str(model), "threads": threads}, recycle)

    async def start(self) -> None:
        """Loads the voice; EngineError: it cannot be loaded."""
        await self.worker.start()
        self.rate = int(self.worker.facts["rate"])

    async def check(self) -> None:
        """See `Worker.check`."""
        await self.worker.check()

    def close(self) -> None:
        """Ends the worker."""
        self.worker.close()

    async def speak(self, text: str, speed: float) -> AsyncGenerator[bytes, None]:
        """See `Voice.speak`."""
        async with aclosing(self.worker.do({"text": text, "speed": speed})) as parts:
            async for _, samples in parts:
                yield samples
