"""A process of its own that loads one model, or everything, uses it once, and prints what that took.

    python -m os1_edge.bench.stages.fresh NAME THREADS

Memory is the most that the process held over what it held with the libraries loaded (VmHWM: a process
inherits the ru_maxrss of the one that started it); milliseconds are from before the model is loaded to after
its first answer, for "everything" from the start of the process to all being there.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import clock_gettime, monotonic, perf_counter

import numpy as np

import os1_models
from os1_edge.native import let_threads_sleep


def _first_use(name: str, threads: int) -> Callable[[], object]:
    """Loads ``name`` and uses it once, when called. Its library is imported here, before it counts."""
    path = os1_models.path(name)
    second, picture = np.zeros(16_000, np.float32) + 0.01, np.zeros((480, 640, 3), np.uint8)
    if name == "silero-vad":
        from os1_edge.hear.vad import SileroVad

        return lambda: SileroVad(path).probability(second[:512])
    if name == "smart-turn-v3.2":
        from os1_edge.hear.endpoint import SmartTurn

        return lambda: SmartTurn(path).complete(second)
    if name.startswith("whisper"):
        import _pywhispercpp  # noqa: F401

        from os1_edge.hear.asr import Whisper

        hum = np.sin(np.arange(16_000) / 20).astype(np.float32) * 0.3
        return lambda: Whisper(path, threads=threads).text(hum)
    if name == "minilm-l6":
        from os1_edge.remember.embed import Embedder

        return lambda: Embedder(path, os1_models.path(name, "tokenizer.json")).one("Where are my keys?")
    if name == "piper-joe":
        import piper  # noqa: F401

        from os1_edge.speak.tts import Piper

        return lambda: Piper(path, threads=threads)
    if name in ("qwen2.5-0.5b", "smollm2-135m"):
        from os1_edge.offload.local import LocalLlama

        return lambda: _greeted(LocalLlama(path, threads))
    return _seen(name, path, threads, picture)


def _seen(name: str, path: Path, threads: int, picture: np.ndarray) -> Callable[[], object]:
    if name == "objects-ssd":
        from os1_edge.see.objects import ObjectDetector

        return lambda: ObjectDetector(path, os1_models.path(name, "labels.txt"), threads).detect(picture)
    if name == "centerface":
        from os1_edge.see.faces import FaceFinder

        return lambda: FaceFinder(path).find(picture)
    import onnxruntime  # noqa: F401

    from os1_edge.see.text import TextReader

    finder = os1_models.path(name, "PP-OCRv6_det_small.onnx")
    return lambda: TextReader(finder, path, threads).read(picture[:224, :224])


def _greeted(llama: object) -> object:
    import asyncio
    from contextlib import aclosing

    from os1_edge.offload.engine import Message
    from os1_edge.offload.local import LocalLlama

    assert isinstance(llama, LocalLlama)

    async def first() -> None:
        async with aclosing(llama.stream([Message("user", "Hello.")], 1)) as stream:
            async for _ in stream:
                return

    asyncio.run(first())
    return llama


def _everything(threads: int) -> None:
    from os1_edge.config import Config
    from os1_edge.faculties import load

    config = Config()
    sections = ("hear", "see", "speak", "converse")
    changed = {s: getattr(config, s).model_copy(update={"threads": threads}) for s in sections}
    with TemporaryDirectory() as folder:
        load(config.model_copy(update=changed), Path(folder) / "memory.db", bytes(32)).close()


def _since_start() -> float:
    """Seconds since this process was started."""
    ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    return clock_gettime(7) - ticks / os.sysconf("SC_CLK_TCK")  # 7: CLOCK_BOOTTIME


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def main() -> None:
    """Prints a line of JSON."""
    from os1_edge.bench.memory_store import rss_mb

    name, threads = sys.argv[1], int(sys.argv[2])
    let_threads_sleep()
    if name == "everything":
        before, began = rss_mb(), monotonic()
        _everything(threads)
        took = _since_start() if Path("/proc/self/stat").exists() else monotonic() - began
    else:
        use = _first_use(name, threads)
        before, began = rss_mb(), perf_counter()
        use()
        took = perf_counter() - began
    print(json.dumps({"ready_ms": 1000 * took, "rss_mb": max(_peak_mb(), rss_mb()) - before}))


if __name__ == "__main__":
    main()
