"""A worker process: one model, one job at a time, stopped when the server says so or is gone.

`worker` starts it: ``python -m os1_cloud.engines.child SPEC``, SPEC being JSON with the model's `kind`.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol

from os1_cloud.engines import BadImage, BadSchema, EngineError, TooLong
from os1_cloud.engines.frames import HEAD, Frame, lengths, pack

ERRORS = {EngineError: "failed", TooLong: "too_long", BadSchema: "bad_schema", BadImage: "bad_image"}
Stop = Callable[[], bool]


class Model(Protocol):
    """What a worker has loaded. Blocking."""

    facts: dict[str, Any]
    """Told to the server when it is ready."""

    def do(self, job: dict[str, Any], blob: bytes, stop: Stop) -> Iterator[Frame]:
        """The parts of one job's result. Ends early when `stop` says so."""
        ...


def main(spec: dict[str, Any], source: BinaryIO, sink: BinaryIO, quiet: Callable[[], None]) -> None:
    """Serves frames from `source` to `sink` until `source` ends; `quiet` is called before the first job."""

    def tell(message: dict[str, Any], blob: bytes = b"") -> None:
        sink.write(pack(message, blob))
        sink.flush()

    try:
        model = load(spec)
    except Exception as e:
        tell({"op": "failed", "why": str(e) if isinstance(e, EngineError) else f"{type(e).__name__}: {e}"})
        return
    quiet()
    tell({"op": "ready", **model.facts})
    jobs: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()  # the server sends one at a time
    stopped = _Stopped()
    threading.Thread(target=_listen, args=(source, jobs, stopped), daemon=True).start()
    while (frame := jobs.get()) is not None:
        job, blob = frame
        number = int(job["id"])
        try:
            for message, part in model.do(job, blob, lambda: stopped.number >= number):  # noqa: B023
                tell({"op": "part", "id": number, **message}, part)
            error, why = "", ""
        except tuple(ERRORS) as e:
            error, why = ERRORS[type(e)], str(e)
        except Exception as e:
            # Only the kind: an error's words may quote the prompt.
            error, why = "failed", type(e).__name__
        tell({"op": "end", "id": number, "error": error, "why": why})


class _Stopped:
    number = -1
    """Jobs up to this one are to stop."""


def _listen(source: BinaryIO, jobs: queue.SimpleQueue[Frame | None], stopped: _Stopped) -> None:
    while head := source.read(HEAD.size):
        text, blob = lengths(head)
        message = json.loads(source.read(text))
        if message["op"] == "stop":
            stopped.number = max(stopped.number, int(message["id"]))
        else:
            jobs.put((message, source.read(blob)))
    # The server is gone, perhaps killed: nobody waits for anything any more.
    os._exit(0)


def load(spec: dict[str, Any]) -> Model:
    """The model that `spec` names.

    Raises:
        EngineError: it cannot be loaded.
    """
    match spec["kind"]:
        case "llama":
            from os1_cloud.engines.llama_model import LlamaModel

            return LlamaModel(spec)
        case "vision":
            from os1_cloud.engines.vision_model import VisionChild

            return VisionChild(spec)
        case "whisper":
            from os1_cloud.engines.whisper_model import WhisperModel

            return WhisperModel(spec)
        case "piper":
            from os1_cloud.engines.piper_model import PiperModel

            return PiperModel(spec)
        case kind:
            raise EngineError(f"there is no kind of engine {kind!r}")


if __name__ == "__main__":
    # OpenMP threads that spin at barriers burn the time of whoever they wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # What native code prints must not get between the frames.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def nothing() -> None:
        """From here on native code prints nothing: llama.cpp shows a grammar that it cannot read, and with it
        the schema that a wearer sent."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)

    main(json.loads(sys.argv[1]), sys.stdin.buffer, pipe, nothing)
    os._exit(0)  # native destructors have nothing to save, and some crash
