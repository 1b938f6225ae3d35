"""The loaded models of one wearer: what app runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2

import os1_models
from os1_edge.config import Config, See, model_names
from os1_edge.hear.endpoint import SmartTurn
from os1_edge.hear.recogniser import Recogniser, make_recogniser
from os1_edge.hear.vad import SileroVad
from os1_edge.offload.channels import Trust
from os1_edge.offload.local import LocalLlama
from os1_edge.offload.opening import default_file
from os1_edge.offload.remote import RemoteEngine, read_secret
from os1_edge.offload.spans import Spans
from os1_edge.offload.vision import LocalVision
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import rules_of
from os1_edge.remember.store import Store
from os1_edge.see.faces import FaceFinder
from os1_edge.see.objects import ObjectDetector
from os1_edge.see.scene import SceneDescriber
from os1_edge.see.text import TextReader
from os1_edge.speak.tts import Piper

__all__ = ["Faculties", "load", "model_names"]


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
    paths = {name: os1_models.path(name) for name in model_names(config)}
    hear, remember = config.hear, config.remember
    rules = rules_of(remember)
    embedder = Embedder(paths["minilm-l6"], os1_models.path("minilm-l6", "tokenizer.json"))
    store = Store(memory_file, key, embedder=embedder.name)
    return Faculties(
        vad=SileroVad(paths["silero-vad"]),
        end_of_turn=SmartTurn(paths["smart-turn-v3.2"]),
        asr=make_recogniser(hear.engine, paths[hear.asr_model], hear.language, hear.threads),
        eyes=_eyes(config.see, paths),
        memory=Memory(store, embedder, rules, remember.event_threshold, config.converse.session_gap_s),
        llm=LocalLlama(
            paths[config.converse.model],
            config.converse.threads,
            config.converse.context_tokens,
            default_file(),
        ),
        far=server(config),
        voice=Piper(
            paths[config.speak.voice],
            config.speak.speed,
            threads=config.speak.threads,
            lean=config.speak.lean,
        ),
        faces=FaceFinder(paths["centerface"]) if config.see.blur_faces else None,
        vision=_vision(config.see),
    )


def _vision(see: See) -> LocalVision | None:
    if see.vision_model is None:
        return None
    return LocalVision.named(see.vision_model, see.threads, see.vision_tokens)


def _eyes(see: See, paths: Mapping[str, Path]) -> SceneDescriber:
    cv2.setNumThreads(see.threads)
    detector = ObjectDetector(paths["objects-ssd"], os1_models.path("objects-ssd", "labels.txt"), see.threads)
    # Upright faces only: people are counted in every frame, and a camera on a head is seldom turned.
    faces = FaceFinder(paths["centerface"], turns=(0,)) if see.blur_faces else None
    reader = None
    if see.read_text:
        reader = TextReader(os1_models.path("ppocr", "PP-OCRv6_det_small.onnx"), paths["ppocr"], see.threads)
    return SceneDescriber(detector, faces, reader, see.gaze.scene_fov_deg)


def server(config: Config) -> RemoteEngine | None:
    """The offload server, where one is configured.

    Raises:
        EngineError: a file named for it cannot be read.
    """
    offload = config.offload
    if offload.server is None:
        return None
    token = read_secret(offload.token_file)
    return RemoteEngine(
        offload.server,
        token.decode("ascii", "replace").strip() if token is not None else None,
        Trust(*map(read_secret, (offload.ca_file, offload.client_key, offload.client_certificate))),
        spans=Spans.of_environment(),
    )
