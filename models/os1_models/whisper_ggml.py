"""Whisper as CTranslate2 stores it, written as the ggml file that whisper.cpp loads.

The file (whisper.cpp `models/convert-pt-to-ggml.py` and `whisper_model_load`), little-endian:

    u32 magic 0x67676d6c
    i32 n_vocab, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer,
        n_text_ctx, n_text_state, n_text_head, n_text_layer, n_mels, ftype
    i32 n_mels, i32 fft bins, f32 filters[n_mels][bins]
    i32 number of byte-level tokens; each: i32 length, the bytes
    tensors: i32 rank, i32 name length, i32 type, i32 dims[rank] (innermost first), the name, the data

CTranslate2 fuses query, key and value of self-attention (`linear_0`) and key and value of
cross-attention (`linear_1`); whisper.cpp wants them apart, and no key bias (it is zero: Whisper has
none). Convolution weights have the same (out, in, kernel) order in both. Matrices and convolutions
are float16, or quantised if they are matrices; vectors and positional embeddings float32.

whisper.cpp finds tensors by name, so their order is free; here it is that of the data's way through the
model. `docs/models.md` says how the outcome was checked, and that it is not byte for byte the published one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from os1_models.ct2 import Array, Ct2Model, read_ct2
from os1_models.mel import mel_filters
from os1_models.quantise import QUANTISATIONS, quantise

MAGIC = 0x67676D6C
TYPE_F32, TYPE_F16 = 0, 1
FILE_TYPE_F16 = 1
QUANTISATION_VERSION = 2
"""`GGML_QNT_VERSION`; the header carries it as thousands beside the file type."""
KEEP_F32 = frozenset(
    {
        "encoder.conv1.bias",
        "encoder.conv2.bias",
        "encoder.positional_embedding",
        "decoder.positional_embedding",
    }
)
Tensors = Iterator[tuple[str, Array]]


class ConversionError(ValueError):
    """The input is not a Whisper model that can be converted."""


def byte_of_character() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte, reversed: character to byte value."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    spare = 0x100
    for byte in range(0x100):
        if byte not in printable:
            table[chr(spare)] = byte
            spare += 1
    return table


def vocabulary_bytes(tokenizer_json: Path) -> list[bytes]:
    """The byte-level BPE tokens of a Hugging Face `tokenizer.json`, in id order, specials left out.

    whisper.cpp adds the special tokens itself from `n_vocab`, so ids must run from 0 without a gap.
    """
    document: dict[str, Any] = json.loads(tokenizer_json.read_text(encoding="utf-8"))
    special = {token["content"] for token in document.get("added_tokens", ())}
    vocabulary: dict[str, int] = document["model"]["vocab"]
    ids = {number: text for text, number in vocabulary.items() if text not in special}
    if sorted(ids) != list(range(len(ids))):
        raise ConversionError(f"{tokenizer_json.name}: token ids have gaps")
    table = byte_of_character()
    return [bytes(table[character] for character in ids[number]) for number in range(len(ids))]


def _linear(model: Ct2Model, scope: str, name: str, part: int = 0, parts: int = 1) -> Tensors:
    """Weight and bias of one of the `parts` projections that are stacked in `scope`."""
    weight = model.variables[scope + "/weight"]
    yield name + ".weight", np.split(weight, parts)[part]
    if not name.endswith(".key"):
        yield name + ".bias", np.split(model.variables[scope + "/bias"], parts)[part]


def _norm(model: Ct2Model, scope: str, name: str) -> Tensors:
    yield name + ".weight", model.variables[scope + "/gamma"]
    yield name + ".bias", model.variables[scope + "/beta"]


def _attention(model: Ct2Model, scope: str, name: str, *, cross: bool = False) -> Tensors:
    if cross:
        yield from _linear(model, f"{scope}/linear_0", f"{name}.query")
        yield from _linear(model, f"{scope}/linear_1", f"{name}.key", 0, 2)
        yield from _linear(model, f"{scope}/linear_1", f"{name}.value", 1, 2)
        yield from _linear(model, f"{scope}/linear_2", f"{name}.out")
    else:
        for part, role in enumerate(("query", "key", "value")):
            yield from _linear(model, f"{scope}/linear_0", f"{name}.{role}", part, 3)
        yield from _linear(model, f"{scope}/linear_1", f"{name}.out")
    yield from _norm(model, f"{scope}/layer_norm", f"{name}_ln")


def _block(model: Ct2Model, scope: str, name: str, *, decoder: bool) -> Tensors:
    yield from _attention(model, f"{scope}/self_attention", f"{name}.attn")
    if decoder:
        yield from _attention(model, f"{scope}/attention", f"{name}.cross_attn", cross=True)
    yield from _linear(model, f"{scope}/ffn/linear_0", f"{name}.mlp.0")
    yield from _linear(model, f"{scope}/ffn/linear_1", f"{name}.mlp.2")
    yield from _norm(model, f"{scope}/ffn/layer_norm", f"{name}.mlp_ln")


def _layers(model: Ct2Model, side: str) -> int:
    prefix = f"{side}/layer_"
    numbers = {
        name[len(prefix) :].split("/")[0]
        for name in model.variables
        if name.startswith(prefix) and name[len(prefix) :][0].isdigit()
    }
    return len(numbers)


def whisper_tensors(model: Ct2Model) -> Tensors:
    """Every tensor under whisper.cpp's name, as stored (float16)."""
    variables = model.variables
    yield "encoder.positional_embedding", variables["encoder/position_encodings/encodings"]
    for conv in ("conv1", "conv2"):
        yield f"encoder.{conv}.weight", variables[f"encoder/{conv}/weight"]
        # whisper.cpp adds the bias to a (time, channel) map, so it wants a column.
        yield f"encoder.{conv}.bias", variables[f"encoder/{conv}/bias"].reshape(-1, 1)
    for layer in range(_layers(model, "encoder")):
        yield from _block(model, f"encoder/layer_{layer}", f"encoder.blocks.{layer}", decoder=False)
    yield from _norm(model, "encoder/layer_norm", "encoder.ln_post")
    yield "decoder.positional_embedding", variables["decoder/position_encodings/encodings"]
    yield "decoder.token_embedding.weight", variables["decoder/embeddings/weight"]
    for layer in range(_layers(model, "decoder")):
        yield from _block(model, f"decoder/layer_{layer}", f"decoder.blocks.{layer}", decoder=True)
    yield from _norm(model, "decoder/layer_norm", "decoder.ln")


def _hparams(model: Ct2Model, file_type: int) -> list[int]:
    variables = model.variables
    audio = variables["encoder/position_encodings/encodings"].shape
    text = variables["decoder/position_encodings/encodings"].shape
    return [
        variables["decoder/embeddings/weight"].shape[0],
        *audio,
        int(variables["encoder/num_heads"]),
        _layers(model, "encoder"),
        *text,
        int(variables["decoder/num_heads"]),
        _layers(model, "decoder"),
        variables["encoder/conv1/weight"].shape[1],
        file_type,
    ]


def _write_tensor(out: BinaryIO, name: str, tensor: Array, quantisation: str | None) -> None:
    if tensor.ndim < 2 or name in KEEP_F32:
        kind, data = TYPE_F32, tensor.astype("<f4").tobytes()
    elif quantisation is not None and tensor.ndim == 2:
        kind, data = QUANTISATIONS[quantisation].tensor_type, quantise(tensor, quantisation)
    else:
        kind, data = TYPE_F16, tensor.astype("<f2").tobytes()
    encoded = name.encode()
    out.write(struct.pack("<3i", tensor.ndim, len(encoded), kind))
    out.write(struct.pack(f"<{tensor.ndim}i", *reversed(tensor.shape)))
    out.write(encoded)
    out.write(data)


def convert_whisper(model_bin: Path, tokenizer_json: Path, target: Path, quantisation: str = "f16") -> None:
    """Write `target` from a CTranslate2 float16 `model.bin` and its `tokenizer.json`.

    `quantisation` is `f16`, `q8_0`, `q5_1` or `q5_0`. The output depends on the inputs alone.
    Raises `ConversionError` or `Ct2Error` on a wrong input, `OSError` on a disk fault.
    """
    if quantisation != "f16" and quantisation not in QUANTISATIONS:
        raise ConversionError(f"unknown quantisation {quantisation!r}")
    model = read_ct2(model_bin)
    if model.spec != "WhisperSpec":
        raise ConversionError(f"{model_bin.name} holds a {model.spec}, not a Whisper model")
    kind = None if quantisation == "f16" else quantisation
    file_type = QUANTISATIONS[kind].file_type + 1000 * QUANTISATION_VERSION if kind else FILE_TYPE_F16
    hparams = _hparams(model, file_type)
    filters = mel_filters(hparams[9])
    tokens = vocabulary_bytes(tokenizer_json)
    with target.open("wb") as out:
        out.write(struct.pack(f"<I{len(hparams)}i", MAGIC, *hparams))
        out.write(struct.pack("<2i", *filters.shape))
        out.write(filters.astype("<f4").tobytes())
        out.write(struct.pack("<i", len(tokens)))
        for token in tokens:
            out.write(struct.pack("<i", len(token)) + token)
        for name, tensor in whisper_tensors(model):
            _write_tensor(out, name, tensor, kind)
