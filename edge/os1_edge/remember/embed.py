"""Sentence embeddings: all-MiniLM-L6-v2 (int8) on onnxruntime with the tokenizers library.

Mean pooling over the attention mask, then L2 norm, at most 256 tokens, as the model card of
sentence-transformers/all-MiniLM-L6-v2 says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Vector

MAX_TOKENS = 256

CACHED = 512
"""Texts whose vectors are kept: a few conversations' worth, 0.8 MB."""


class Embedder:
    """Turns texts into vectors. Blocking, about 5 ms a sentence on one core."""

    def __init__(self, model: Path, tokenizer: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._cache: OrderedDict[str, Vector] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), 384), float32, each row of norm 1. One text at a time through the model:
        padding changes an int8 model's answers, and so would the company a text came in."""
        return np.array([self.one(text) for text in texts], np.float32).reshape(-1, DIMENSIONS)

    def one(self, text: str) -> Vector:
        """The vector of one text, shape (384,)."""
        if (known := self._cache.get(text)) is not None:
            self._cache.move_to_end(text)
            return known
        encoded = self._tokenizer.encode(text)
        ids = np.array([encoded.ids], np.int64)
        mask = np.array([encoded.attention_mask], np.int64)
        (hidden,) = self._session.run(
            None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        )
        pooled = (hidden[0] * mask[0, :, None]).sum(axis=0) / mask.sum()
        vector: Vector = (pooled / np.linalg.norm(pooled)).astype(np.float32)
        self._cache[text] = vector
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)
        return vector
