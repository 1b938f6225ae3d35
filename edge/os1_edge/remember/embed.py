"""Sentence embeddings: all-MiniLM-L6-v2 (int8) on onnxruntime with the tokenizers library.

Mean pooling over the attention mask, then L2 norm, at most 256 tokens, as the model card of
sentence-transformers/all-MiniLM-L6-v2 says. ``Reference`` does the same with sentence-transformers, for any
of its models (extra ``reference``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.vectors import Vector

MAX_TOKENS = 256

CACHED = 512
"""Texts whose vectors are kept: a few conversations' worth, 0.8 MB."""

BATCH = 16
"""Texts that go through the model together; more gain nothing on two cores and hold more memory."""


class Embedder:
    """Turns texts into vectors. Blocking, about 5 ms a sentence on one core."""

    name = "all-MiniLM-L6-v2 int8"
    """As the memory file notes it beside each vector."""

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
        vector: Vector = self._through([self._tokenizer.encode(text).ids])[0]
        self._cache[text] = vector
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)
        return vector

    def batch(self, texts: Sequence[str]) -> Vector:
        """Like ``embed``, for many texts at once, past the cache: texts of like length go through the model
        together. An int8 model scales a batch as a whole, so a vector differs a little from that of the text
        alone (cosine above 0.99): good enough to fill a memory, not to compare runs."""
        encoded = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        out = np.zeros((len(texts), DIMENSIONS), np.float32)
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            out[some] = self._through([encoded[i] for i in some])
        return out

    def _through(self, ids: Sequence[Sequence[int]]) -> Vector:
        """Token ids of each text -> vectors."""
        longest = max(len(row) for row in ids)
        padded: NDArray[np.int64] = np.zeros((len(ids), longest), np.int64)
        mask: NDArray[np.int64] = np.zeros((len(ids), longest), np.int64)
        for i, row in enumerate(ids):
            padded[i, : len(row)] = row
            mask[i, : len(row)] = 1
        (hidden,) = self._session.run(
            None, {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
        )
        pooled = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        normed: Vector = (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)
        return normed


class Reference:
    """The same through sentence-transformers, for any of its models of 384 dimensions. Blocking."""

    def __init__(self, model: str | Path, name: str = "", **options: Any) -> None:
        """
        Args:
            model: a folder, or a name on the hub.
            name: as the memory file is to note it; default: ``model``.
            options: passed on to ``SentenceTransformer``, such as ``backend="onnx"``.

        Raises:
            ModuleNotFoundError: the extra ``reference`` is not installed.
            ValueError: the model's vectors do not fit the memory file.
        """
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(model), device="cpu", **options)
        self._model.max_seq_length = MAX_TOKENS
        self.name = f"sentence-transformers {name or model}"
        length = self._model.encode(["length"], show_progress_bar=False).shape[1]
        if length != DIMENSIONS:
            raise ValueError(f"{model}: vectors of {length} values; the memory file holds {DIMENSIONS}")

    def embed(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), 384), float32, each row of norm 1."""
        made = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(made, np.float32).reshape(-1, DIMENSIONS)

    def one(self, text: str) -> Vector:
        """The vector of one text, shape (384,)."""
        vector: Vector = self.embed([text])[0]
        return vector
