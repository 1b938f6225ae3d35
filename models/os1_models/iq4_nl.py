"""ggml's q5_0 rounded to iq4_nl, in numpy.

llama.cpp reads a prompt fastest with formats that it lays out anew for the processor when it loads them
(`ggml/src/ggml-cpu/repack.cpp`). q5_0 is none of these; iq4_nl is one, on x86 (AVX2) and ARM (dotprod). A
block is 32 values:

    iq4_nl  18 bytes  f16 d, u8 nibbles[16]  x = d * LEVELS[nibble]

Nibble j of the low half is value j, of the high half value j + 16 (`block_iq4_nl` of `ggml-common.h`). The
sixteen levels lie closer around zero, where most weights are. Of several scales a block gets the one with
the least squared error, as in `quantize_row_iq4_nl_impl` of `ggml-quants.c`, here without weights. The
values of a q5_0 block are whole multiples of its scale, so all sums are of whole numbers that float32 holds
exactly: every processor writes the same bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from os1_models.quantise import BLOCK, QUANTISATIONS

TENSOR_TYPE = 20
"""`GGML_TYPE_IQ4_NL`."""
BLOCK_BYTES = 18

Bytes = npt.NDArray[np.uint8]
Float = npt.NDArray[np.float32]

LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], dtype=np.float32
)
TRIED = (-127, -132, -122, -118, -137, 113, 108, 119)
"""What a block's largest value is made to be: about the outermost levels of both sides."""

_HALF = 16
"""q5_0 stores a value between -16 and 15 as 0 to 31."""
_FINE = 8
"""Steps a unit in which the nearest level is looked up. Between two levels lie at least 11 units."""
_REACH = 128 * _FINE


def _nearest(values: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    return np.asarray(np.abs(values[..., None] - LEVELS).argmin(axis=-1))


_NEAREST = _nearest(np.arange(-_REACH, _REACH + 1) / _FINE).astype(np.uint8)


def _trials() -> Float:
    """(trials, 32 largest values, 32 values): the level of a value where the largest gets the trial's."""
    value = np.arange(-_HALF, _HALF, dtype=np.float64)
    largest = np.where(value == 0, 1, value)
    wanted = np.array(TRIED, dtype=np.float64)[:, None, None] * value / largest[:, None]
    return LEVELS[_nearest(wanted)]


_TRIALS = _trials()


def from_q5_0(raw: bytes) -> bytes:
    """Whole q5_0 blocks, 22 bytes each, as iq4_nl blocks, 18 bytes each. Depends on `raw` alone.

    Raises `ValueError` where `raw` is no whole number of blocks.
    """
    form = QUANTISATIONS["q5_0"]
    if len(raw) % form.block_bytes:
        raise ValueError(f"{len(raw)} bytes are no whole number of q5_0 blocks")
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, form.block_bytes).copy()
    unit = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    blocks[:, :2] = np.array([1], dtype="<f2").view(np.uint8)
    values = form.decode(blocks)
    scale = (unit * _best_scale(values)).astype(np.float16)
    steps = np.divide(
        unit * np.float32(_FINE), scale, out=np.zeros_like(unit), where=scale != 0, dtype=np.float32
    )
    at = np.rint(np.clip(values * steps, -_REACH, _REACH)).astype(np.int16) + _REACH
    nibbles = _NEAREST[at]
    packed = nibbles[:, :16] | (nibbles[:, 16:] << np.uint8(4))
    return np.hstack([scale.astype("<f2").view(np.uint8), packed]).tobytes()


def _best_scale(values: Float) -> Float:
    """(blocks, 1): what to multiply levels with for the least squared distance to `values`, whole numbers."""
    rows = np.arange(len(values))
    largest = values[rows, np.abs(values).argmax(axis=1)].astype(np.int16) + _HALF
    at = largest[:, None] * BLOCK + (values.astype(np.int16) + _HALF)
    best = np.full((len(values), 1), -1.0)
    scale = np.zeros((len(values), 1), dtype=np.float32)
    for levels in _TRIALS:
        tried = levels.reshape(-1)[at]
        along = np.einsum("ij,ij->i", tried, values)[:, None].astype(np.float64)
        square = np.einsum("ij,ij->i", tried, tried)[:, None].astype(np.float64)
        gain = along * along / square
        better = gain > best
        best = np.where(better, gain, best)
        scale = np.where(better, along / square, scale).astype(np.float32)
    return scale


def decode(raw: bytes, shape: tuple[int, ...]) -> Float:
    """The float32 values, of `shape`, that llama.cpp computes with."""
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, BLOCK_BYTES)
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    nibbles = np.hstack([blocks[:, 2:] & np.uint8(0x0F), blocks[:, 2:] >> np.uint8(4)])
    return (scale * LEVELS[nibbles]).reshape(shape)
