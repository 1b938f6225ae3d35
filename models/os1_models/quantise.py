"""ggml's block quantisations in numpy: q5_0, q5_1 and q8_0.

Every 32 values in a row become one block (`ggml/src/ggml-common.h`, `block_q5_0` and so on), rounded
as in `quantize_row_*_ref` of `ggml-quants.c`:

    q8_0  34 bytes  f16 d, i8 q[32]                         x = d * q
    q5_0  22 bytes  f16 d, u32 high bits, u8 nibbles[16]    x = d * (q - 16)
    q5_1  24 bytes  f16 d, f16 m, u32 high, u8 nibbles[16]  x = d * q + m

Nibble j of the low half is value j, of the high half value j + 16; bit j of the u32 is the fifth bit
of value j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK = 32
Float = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


def _inverse(scale: Float) -> Float:
    """1 / scale, and 0 where a block is flat (all its values equal)."""
    return np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)


def _half_bytes(values: Float) -> Bytes:
    return values.astype("<f2").view(np.uint8).reshape(-1, 2)


def _half_values(raw: Bytes) -> Float:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32).reshape(-1, 1)


def _pack_fives(levels: Bytes) -> tuple[Bytes, Bytes]:
    """Five-bit levels (blocks, 32) as (4 bytes of high bits, 16 bytes of nibbles) a block."""
    high = np.packbits(levels >> np.uint8(4), axis=1, bitorder="little")
    low = levels & np.uint8(0x0F)
    return high, low[:, :16] | (low[:, 16:] << np.uint8(4))


def _unpack_fives(high: Bytes, nibbles: Bytes) -> Float:
    low = np.concatenate([nibbles & np.uint8(0x0F), nibbles >> np.uint8(4)], axis=1)
    top = np.unpackbits(np.ascontiguousarray(high), axis=1, bitorder="little")
    levels: Bytes = low | (top << np.uint8(4))
    return levels.astype(np.float32)


def _encode_q8_0(blocks: Float) -> Bytes:
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = blocks * _inverse(scale)
    # C's roundf: halves go away from zero, where numpy's rint would go to even.
    levels = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    return np.hstack([_half_bytes(scale), levels.view(np.uint8)])


def _decode_q8_0(raw: Bytes) -> Float:
    return _half_values(raw[:, :2]) * np.ascontiguousarray(raw[:, 2:]).view(np.int8).astype(np.float32)


def _encode_q5_0(blocks: Float) -> Bytes:
    rows = np.arange(len(blocks))
    # The value farthest from zero, with its sign, becomes level 0 exactly.
    extreme = blocks[rows, np.abs(blocks).argmax(axis=1)].reshape(-1, 1)
    scale = extreme / np.float32(-16)
    levels = np.minimum(31, (blocks * _inverse(scale) + np.float32(16.5)).astype(np.int8)).astype(np.uint8)
    return np.hstack([_half_bytes(scale), *_pack_fives(levels)])


def _decode_q5_0(raw: Bytes) -> Float:
    return _half_values(raw[:, :2]) * (_unpack_fives(raw[:, 2:6], raw[:, 6:]) - np.float32(16))


def _encode_q5_1(blocks: Float) -> Bytes:
    low = blocks.min(axis=1, keepdims=True)
    scale = (blocks.max(axis=1, keepdims=True) - low) / np.float32(31)
    levels = ((blocks - low) * _inverse(scale) + np.float32(0.5)).astype(np.uint8)
    return np.hstack([_half_bytes(scale), _half_bytes(low), *_pack_fives(levels)])


def _decode_q5_1(raw: Bytes) -> Float:
    return _half_values(raw[:, :2]) * _unpack_fives(raw[:, 4:8], raw[:, 8:]) + _half_values(raw[:, 2:4])


@dataclass(frozen=True, slots=True)
class Quantisation:
    """One ggml block format."""

    name: str
    tensor_type: int
    """`enum ggml_type`, written before each tensor."""
    file_type: int
    """`enum ggml_ftype`, written in the file's header."""
    block_bytes: int
    encode: Callable[[Float], Bytes]
    """(blocks, 32) float32 to (blocks, block_bytes) uint8."""
    decode: Callable[[Bytes], Float]


QUANTISATIONS = {
    q.name: q
    for q in (
        Quantisation("q5_0", 6, 8, 22, _encode_q5_0, _decode_q5_0),
        Quantisation("q5_1", 7, 9, 24, _encode_q5_1, _decode_q5_1),
        Quantisation("q8_0", 8, 7, 34, _encode_q8_0, _decode_q8_0),
    )
}


def quantise(values: npt.NDArray[np.floating], kind: str) -> bytes:
    """Quantise row by row; `values` has any shape whose last length is a multiple of 32."""
    if values.shape[-1] % BLOCK:
        raise ValueError(f"a row of {values.shape[-1]} values does not divide into blocks of {BLOCK}")
    blocks = np.ascontiguousarray(values, dtype=np.float32).reshape(-1, BLOCK)
    return QUANTISATIONS[kind].encode(blocks).tobytes()


def dequantise(raw: bytes, shape: tuple[int, ...], kind: str) -> Float:
    """The float32 values, of `shape`, that whisper.cpp computes with."""
    form = QUANTISATIONS[kind]
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, form.block_bytes)
    return form.decode(blocks).reshape(shape)
