"""A GGUF file with some of its matrices in another format; the rest of it goes over as it is.

Layout (`gguf.md` of ggml): magic, version, counts, key-value pairs, one entry a tensor (name, lengths, type,
offset), then the tensors, each at a multiple of the alignment.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from os1_models import iq4_nl

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
"""The default; a file that says otherwise (`general.alignment`) is refused."""
Q5_0 = 6
BLOCK_BYTES = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 12: (256, 144),
    13: (256, 176), 14: (256, 210), 20: (32, 18), 30: (1, 2),
}  # fmt: skip
"""`enum ggml_type`: values and bytes of a block."""
FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""`enum gguf_metadata_value_type`: bytes of a value."""
TEXT, ARRAY = 8, 9

ROUNDED = re.compile(r"blk\.\d+\.ffn_(gate|up)\.weight")
"""Six in ten multiplications of reading a prompt. The attention's matrices and `ffn_down` lose more by it
than they gain: docs/decisions/0009."""
AT_ONCE = 1 << 16
"""Blocks rounded at once: some 10 MB of working memory a table that is looked up."""


class GgufError(ValueError):
    """Not a GGUF file that can be rewritten."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One entry of the list."""

    name: str
    lengths: tuple[int, ...]
    kind: int
    """`enum ggml_type`."""
    offset: int
    """From the beginning of the tensors."""

    @property
    def size(self) -> int:
        """Bytes."""
        values, size = BLOCK_BYTES[self.kind]
        return math.prod(self.lengths) // values * size

    def entry(self) -> bytes:
        """As it stands in the file."""
        name = self.name.encode()
        lengths = struct.pack(f"<I{len(self.lengths)}Q", len(self.lengths), *self.lengths)
        return struct.pack("<Q", len(name)) + name + lengths + struct.pack("<IQ", self.kind, self.offset)


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return int(value)

    def text(self) -> bytes:
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def skip(self, kind: int) -> None:
        if kind == TEXT:
            self.text()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if inner in FIXED:
                self.at += count * FIXED[inner]
            else:
                for _ in range(count):
                    self.skip(inner)
        else:
            self.at += FIXED[kind]

    def head(self) -> int:
        """Reads up to the list of tensors, and returns how many there are."""
        if self.data[:4] != MAGIC:
            raise GgufError("not a GGUF file")
        self.at = 4
        if (version := self.number("I")) not in VERSIONS:
            raise GgufError(f"GGUF version {version} is not known")
        tensors, pairs = self.number("Q"), self.number("Q")
        for _ in range(pairs):
            if self.text() == b"general.alignment":
                raise GgufError("its tensors are aligned in a way of their own")
            self.skip(self.number("I"))
        return tensors

    def tensor(self) -> Tensor:
        name = self.text().decode()
        lengths = tuple(self.number("Q") for _ in range(self.number("I")))
        found = Tensor(name, lengths, self.number("I"), self.number("Q"))
        if found.kind not in BLOCK_BYTES:
            raise GgufError(f"{name}: format {found.kind} is not known")
        return found


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT


def _placed(tensors: Sequence[Tensor]) -> Iterator[Tensor]:
    """Each with the format that it gets and where it will lie."""
    at = 0
    for tensor in tensors:
        fits = tensor.kind == Q5_0 and ROUNDED.fullmatch(tensor.name)
        new = replace(tensor, kind=iq4_nl.TENSOR_TYPE if fits else tensor.kind, offset=at)
        yield new
        at = _aligned(at + new.size)


def _rounded(raw: memoryview) -> Iterator[bytes]:
    step = AT_ONCE * BLOCK_BYTES[Q5_0][1]
    for at in range(0, len(raw), step):
        yield iq4_nl.from_q5_0(bytes(raw[at : at + step]))


def _pad(out: IO[bytes]) -> None:
    out.write(bytes(_aligned(out.tell()) - out.tell()))


def round_to_iq4_nl(source: Path, target: Path) -> int:
    """Writes `target`: `source` with those `ROUNDED` matrices that are q5_0 in iq4_nl. Returns how many.

    The output depends on the input alone. Raises `GgufError` on a file that it cannot rewrite, or that has no
    such matrix; `OSError` on a disk fault.
    """
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            reader = _Reader(data)
            count = reader.head()
            head = data[: reader.at]
            old = [reader.tensor() for _ in range(count)]
        except (struct.error, KeyError, UnicodeDecodeError) as error:
            raise GgufError("it is cut off or broken") from error
        new, start = list(_placed(old)), _aligned(reader.at)
        if any(start + tensor.offset + tensor.size > len(data) for tensor in old):
            raise GgufError("it is cut off")
        changed = sum(a.kind != b.kind for a, b in zip(old, new, strict=True))
        if not changed:
            raise GgufError("it has no matrix to round")
        with target.open("wb") as out, memoryview(data) as whole:
            out.write(head)
            out.write(b"".join(tensor.entry() for tensor in new))
            _pad(out)
            for before, after in zip(old, new, strict=True):
                begin = start + before.offset
                with whole[begin : begin + before.size] as raw:
                    out.writelines([raw] if before.kind == after.kind else _rounded(raw))
                _pad(out)
    return changed
