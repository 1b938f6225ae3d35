"""Vision and language models on llama.cpp: pictures and a dialogue in, text out. Glasses and server share it.

    model = VisionModel(Path("model.gguf"), Path("mmproj.gguf"), threads=2)
    for part in model.answer([Turn("user", "What is this?", (jpeg,))], max_tokens=64): ...   # blocking
    async for part in VisionWorker(model).stream(...): ...   # in a thread

LLaVA 1.5 and 1.6, Qwen2.5-VL, SmolVLM and whatever else llama.cpp's ``mtmd`` reads; always at temperature 0
and at most 512 tokens (OS-1 paper). ``llama_cpp`` is loaded with the first model, not with this package.
"""

from os1_models.vision.files import files
from os1_models.vision.picture import BadPicture, picture_size
from os1_models.vision.terms import (
    MOST_TOKENS,
    BadSchema,
    Finished,
    Piece,
    Stopped,
    TooLong,
    Turn,
    VisionError,
)
from os1_models.vision.vlm import VisionModel
from os1_models.vision.worker import VisionWorker

__all__ = [
    "MOST_TOKENS",
    "BadPicture",
    "BadSchema",
    "Finished",
    "Piece",
    "Stopped",
    "TooLong",
    "Turn",
    "VisionError",
    "VisionModel",
    "VisionWorker",
    "files",
    "picture_size",
]
