"""The loaded models of one wearer: what app runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import os1_models
from os1_edge.config import Config, See, model_names
from os1_edge.native import loading

# Each model's own room is imported by the thread that loads it: half of a start is imports.
if TYPE_CHECKING:
    from os1_edge.hear.endpoint import SmartTurn
    from os1_edge.hear.recogniser import Recogniser
    from os1_edge.hear.vad import SileroVad
    from os1_edge.offload.local import LocalLlama
    from os1_edge.offload.remote import RemoteEngine
    from os1_edge.offload.vision import LocalVision
    from os1_edge.remember.embed import Embedder
    from os1_edge.remember.memory import Memory
    from os1_edge.see.faces import FaceFinder
    from os1_edge.see.scene import SceneDescriber
    from os1_edge.see.text import TextReader
    from os1_edge.speak.tts import Piper

__all__ = ["Faculties", "Loading", "load", "model_names"]

SIDE_BY_SIDE = 2
"""Models loaded at once. Beside the rest of a start that is work for three cores; more would have a small
device hold at once what each takes to load."""

Paths = Mapping[str, Path]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Faculties:
    """Everything that has weights or a file behind it."""

    vad: SileroVad
    end_of_turn: SmartTurn | None
    asr: Recogniser
    eyes: SceneDescriber
    memory: Memory
    llm: LocalLlama
    far: RemoteEngine | None
    """The offload server, where one is configured."""
    voice: Piper
    faces: FaceFinder | None = None
    """Finds the faces that are taken out of what leaves the device or is written."""
    vision: LocalVision | None = None
    """Is shown pictures, where one is chosen (``[see] vision_model``)."""

    def close(self) -> None:
        """Frees the models and closes the memory."""
        self.memory.close()
        self.llm.close()
        if self.vision is not None:
            self.vision.close()


def load(config: Config, memory_file: Path, key: bytes) -> Faculties:
    """Loads all models and opens the memory. Blocking, a second or two.

    Raises:
        os1_models.ModelMissing: a model has not been pulled.
        EngineError: a file named for the offload server cannot be read.
        BadMemory: the memory file cannot be opened.
    """
    with Loading(config) as models:
        return models.faculties(memory_file, key)


class Loading:
    """The models of a Config, which are being loaded from now on: begun early, the rest of a start goes on
    beside it. Leaving the block frees what was not taken with ``faculties``."""

    def __init__(self, config: Config) -> None:
        """Raises:
        os1_models.ModelMissing: a model has not been pulled.
        """
        paths = {name: os1_models.path(name) for name in model_names(config)}
        self._config = config
        self._ends = ExitStack()
        self._ends.enter_context(loading())
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="loading")

        def begin(make: Callable[[Config, Paths], T]) -> Future[T]:
            return self._pool.submit(make, config, paths)

        # Those that take longest come first.
        self._llm, self._voice = begin(_language), begin(_voice)
        self._asr, self._eyes = begin(_recogniser), begin(_eyes)
        self._embedder = begin(_embedder)
        self._vad, self._end_of_turn = begin(_vad), begin(_end_of_turn)
        self._faces, self._vision = begin(_faces), begin(_vision)
        self._taken = False

    def faculties(self, memory_file: Path, key: bytes) -> Faculties:
        """All of them, and the memory opened. Blocking.

        Raises:
            EngineError: a file named for the offload server cannot be read.
            BadMemory: the memory file cannot be opened.
            NotAVoice, NotWhisper, ...: a model's file is not what it should be.
        """
        with ExitStack() as opened:
            far = server(self._config)
            memory = _memory(self._config, memory_file, key, self._embedder)
            opened.callback(memory.close)
            found = Faculties(
                vad=self._vad.result(),
                end_of_turn=self._end_of_turn.result(),
                asr=self._asr.result(),
                eyes=self._eyes.result(),
                memory=memory,
                llm=self._llm.result(),
                far=far,
                voice=self._voice.result(),
                faces=self._faces.result(),
                vision=self._vision.result(),
            )
            opened.pop_all()
        self._taken = True
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._ends.close()
        if self._taken:
            return
        self._taken = True
        for one in (self._llm, self._vision):
            if not one.cancelled() and one.exception() is None and (held := one.result()) is not None:
                held.close()


def _vad(_: Config, paths: Paths) -> SileroVad:
    from os1_edge.hear.vad import SileroVad

    return SileroVad(paths["silero-vad"])


def _end_of_turn(_: Config, paths: Paths) -> SmartTurn:
    from os1_edge.hear.endpoint import SmartTurn

    return SmartTurn(paths["smart-turn-v3.2"])


def _recogniser(config: Config, paths: Paths) -> Recogniser:
    from os1_edge.hear.recogniser import make_recogniser

    hear = config.hear
    return make_recogniser(hear.engine, paths[hear.asr_model], hear.language, hear.threads)


def _language(config: Config, paths: Paths) -> LocalLlama:
    from os1_edge.offload.local import LocalLlama
    from os1_edge.offload.opening import default_file

    converse = config.converse
    return LocalLlama(paths[converse.model], converse.threads, converse.context_tokens, default_file())


def _voice(config: Config, paths: Paths) -> Piper:
    from os1_edge.speak.tts import Piper

    speak = config.speak
    return Piper(paths[speak.voice], speak.speed, threads=speak.threads, lean=speak.lean)


def _embedder(_: Config, paths: Paths) -> Embedder:
    from os1_edge.remember.embed import Embedder

    return Embedder(paths["minilm-l6"], os1_models.path("minilm-l6", "tokenizer.json"))


def _memory(config: Config, file: Path, key: bytes, coming: Future[Embedder]) -> Memory:
    """The memory, opened before the embedder is waited for: a wrong key is told at once."""
    from os1_edge.remember.embed import Embedder
    from os1_edge.remember.memory import Memory
    from os1_edge.remember.recall import rules_of
    from os1_edge.remember.store import Store

    remember = config.remember
    store = Store(file, key, embedder=Embedder.name)
    try:
        embedder = coming.result()
    except BaseException:
        store.close()
        raise
    rules = rules_of(remember)
    return Memory(store, embedder, rules, remember.event_threshold, config.converse.session_gap_s)


def _faces(config: Config, paths: Paths) -> FaceFinder | None:
    from os1_edge.see.faces import FaceFinder

    return FaceFinder(paths["centerface"]) if config.see.blur_faces else None


def _vision(config: Config, _: Paths) -> LocalVision | None:
    see = config.see
    if see.vision_model is None:
        return None
    from os1_edge.offload.vision import LocalVision

    return LocalVision.named(see.vision_model, see.threads, see.vision_tokens)


def _eyes(config: Config, paths: Paths) -> SceneDescriber:
    import cv2

    from os1_edge.see.faces import FaceFinder
    from os1_edge.see.objects import ObjectDetector
    from os1_edge.see.scene import SceneDescriber

    see = config.see
    cv2.setNumThreads(see.threads)
    detector = ObjectDetector(paths["objects-ssd"], os1_models.path("objects-ssd", "labels.txt"), see.threads)
    # Upright faces only: people are counted in every frame, and a camera on a head is seldom turned.
    faces = FaceFinder(paths["centerface"], turns=(0,)) if see.blur_faces else None
    return SceneDescriber(detector, faces, _reader(see, paths), see.gaze.scene_fov_deg)


def _reader(see: See, paths: Paths) -> TextReader | None:
    from os1_edge.see.text import TextReader

    if not see.read_text:
        return None
    return TextReader(os1_models.path("ppocr", "PP-OCRv6_det_small.onnx"), paths["ppocr"], see.threads)


def server(config: Config) -> RemoteEngine | None:
    """The offload server, where one is configured.

    Raises:
        EngineError: a file named for it cannot be read.
    """
    offload = config.offload
    if offload.server is None:
        return None
    from os1_edge.offload.channels import Trust
    from os1_edge.offload.remote import RemoteEngine, read_secret
    from os1_edge.offload.spans import Spans

    token = read_secret(offload.token_file)
    return RemoteEngine(
        offload.server,
        token.decode("ascii", "replace").strip() if token is not None else None,
        Trust(*map(read_secret, (offload.ca_file, offload.client_key, offload.client_certificate))),
        spans=Spans.of_environment(),
    )
