"""A whisper.cpp model file in another of ggml's formats, so that quantisations can be measured from the one
that was pulled. The layout is in ``os1_models.whisper_ggml``. What q8_0 rounded away does not come back: a
file made from q8_0 lies a trace above the word errors of one made from float16 (docs/models.md has those).
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from os1_edge.bench.stage import Unavailable
from os1_models.quantise import QUANTISATIONS, dequantise, quantise
from os1_models.whisper_ggml import FILE_TYPE_F16, MAGIC, QUANTISATION_VERSION, TYPE_F16

_BY_TYPE = {q.tensor_type: q for q in QUANTISATIONS.values()}
_PLAIN_BYTES = {0: 4, TYPE_F16: 2}


def requantised(source: Path, target: Path, kind: str) -> Path:
    """Writes ``source`` as ``kind`` ("f16", "q8_0", "q5_1" or "q5_0") to ``target`` and returns that.

    Raises:
        Unavailable: ``source`` is no whisper.cpp model in one of these formats.
    """
    file_type = FILE_TYPE_F16
    if kind != "f16":
        file_type = QUANTISATIONS[kind].file_type + 1000 * QUANTISATION_VERSION
    try:
        with source.open("rb") as file, target.open("wb") as out:
            magic, *hparams = struct.unpack("<I11i", file.read(48))
            if magic != MAGIC:
                raise Unavailable(f"{source.name} is no whisper.cpp model")
            out.write(struct.pack("<I11i", magic, *hparams[:-1], file_type))
            _filters_and_words(file, out)
            while head := file.read(12):
                _tensor(file, out, struct.unpack("<3i", head), kind)
    except (struct.error, KeyError, ValueError):
        raise Unavailable(f"{source.name} is in no format that can be rounded anew") from None
    return target


def _filters_and_words(file: BinaryIO, out: BinaryIO) -> None:
    sizes = file.read(8)
    rows, bins = struct.unpack("<2i", sizes)
    out.write(sizes + file.read(4 * rows * bins))
    count = file.read(4)
    out.write(count)
    for _ in range(struct.unpack("<i", count)[0]):
        length = file.read(4)
        out.write(length + file.read(struct.unpack("<i", length)[0]))


def _tensor(file: BinaryIO, out: BinaryIO, head: tuple[int, ...], kind: str) -> None:
    rank, name_bytes, form = head
    dims, name = file.read(4 * rank), file.read(name_bytes)
    shape = struct.unpack(f"<{rank}i", dims)[::-1]
    size = math.prod(shape)
    if form in _PLAIN_BYTES:
        data = file.read(_PLAIN_BYTES[form] * size)
        values = np.frombuffer(data, "<f2").reshape(shape) if form == TYPE_F16 else None
    else:
        found = _BY_TYPE[form]
        data = file.read(size // 32 * found.block_bytes)
        values = dequantise(data, shape, found.name)
    # Convolutions (rank 3) and vectors stay as they are, as in whisper.cpp's own quantised files.
    if values is not None and rank == 2:
        if kind == "f16":
            form, data = TYPE_F16, values.astype("<f2").tobytes()
        else:
            form, data = QUANTISATIONS[kind].tensor_type, quantise(values, kind)
    out.write(struct.pack("<3i", rank, name_bytes, form) + dims + name + data)
