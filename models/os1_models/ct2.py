"""Reads a CTranslate2 `model.bin` (the format that faster-whisper uses).

All integers are little-endian. Layout, after CTranslate2's `ModelSpec._serialize`
(python/ctranslate2/specs/model_spec.py) for binary version 6:

    u32 binary version            6 (4 and 5 read the same way, bar the aliases)
    str spec name                 u16 length with the final NUL, then the bytes
    u32 spec revision             3 for WhisperSpec
    u32 number of variables
        str name                  scopes joined by "/": encoder/layer_0/ffn/linear_0/weight
        u8  rank, u32 dims[rank]
        u8  dtype                 index into DTYPES
        u32 bytes, raw data       row-major
    u32 number of aliases         (version 3 and later)
        str alias, str variable   decoder/projection/weight -> decoder/embeddings/weight
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DTYPES: tuple[np.dtype[Any] | None, ...] = (
    np.dtype("<f4"),
    np.dtype("i1"),
    np.dtype("<i2"),
    np.dtype("<i4"),
    np.dtype("<f2"),
    None,  # bfloat16: numpy has no such type, and no Whisper conversion in the manifest uses it
)
SUPPORTED_VERSIONS = (4, 5, 6)
MAX_RANK = 8
MAX_VARIABLES = 100_000


class Ct2Error(ValueError):
    """The file is no CTranslate2 model that this reader knows."""


@dataclass(frozen=True, slots=True)
class Ct2Model:
    """What a `model.bin` holds."""

    spec: str
    """Name of the specification, such as `WhisperSpec`."""
    revision: int
    """Revision of that specification."""
    variables: Mapping[str, Array]
    """Every variable by name; scalars are 0-d arrays. Aliases point at the same array."""


class _Reader:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def take(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise Ct2Error(f"file ends early: wanted {count} bytes, got {len(data)}")
        return data

    def number(self, code: str) -> int:
        (value,) = struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))
        return int(value)

    def text(self) -> str:
        raw = self.take(self.number("H"))
        return raw.rstrip(b"\0").decode("utf-8")


def _variable(reader: _Reader) -> tuple[str, Array]:
    name = reader.text()
    rank = reader.number("B")
    if rank > MAX_RANK:
        raise Ct2Error(f"variable {name!r} has rank {rank}")
    shape = tuple(reader.number("I") for _ in range(rank))
    code = reader.number("B")
    dtype = DTYPES[code] if code < len(DTYPES) else None
    if dtype is None:
        raise Ct2Error(f"variable {name!r} has unsupported dtype code {code}")
    size = reader.number("I")
    if size != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
        raise Ct2Error(f"variable {name!r}: {size} bytes do not fit shape {shape} of {dtype}")
    return name, np.frombuffer(reader.take(size), dtype=dtype).reshape(shape)


def read_ct2(source: Path | bytes) -> Ct2Model:
    """Read a whole `model.bin` from a path or from its bytes.

    Raises `Ct2Error` on a file that is cut short, of another version, or of an unsupported dtype.
    """
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as stream:
        reader = _Reader(stream)
        version = reader.number("I")
        if version not in SUPPORTED_VERSIONS:
            raise Ct2Error(f"binary version {version}, known are {SUPPORTED_VERSIONS}")
        spec, revision = reader.text(), reader.number("I")
        count = reader.number("I")
        if count > MAX_VARIABLES:
            raise Ct2Error(f"{count} variables: not a model file")
        variables = dict(_variable(reader) for _ in range(count))
        for _ in range(reader.number("I")):
            alias, target = reader.text(), reader.text()
            if target not in variables:
                raise Ct2Error(f"alias {alias!r} points at the unknown variable {target!r}")
            variables[alias] = variables[target]
    return Ct2Model(spec, revision, variables)
