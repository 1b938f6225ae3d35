"""Conversion of CTranslate2's Whisper to whisper.cpp's file, on a random model built here."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import models_fakes as fakes
import numpy as np
import pytest

from os1_models.ct2 import Ct2Error, read_ct2
from os1_models.mel import mel_filters
from os1_models.quantise import BLOCK, QUANTISATIONS, dequantise, quantise
from os1_models.whisper_ggml import ConversionError, byte_of_character, convert_whisper, vocabulary_bytes

RNG_SEED = 7
TYPES = {0: "f32", 1: "f16", **{form.tensor_type: name for name, form in QUANTISATIONS.items()}}


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    return fakes.tiny_whisper()


@pytest.fixture(scope="module")
def ct2(tmp_path_factory: pytest.TempPathFactory, weights: dict[str, Any]) -> Path:
    folder = tmp_path_factory.mktemp("ct2")
    alias = ("decoder/projection/weight", "decoder/embeddings/weight")
    (folder / "model.bin").write_bytes(fakes.ct2_bytes(weights, aliases=[alias]))
    (folder / "tokenizer.json").write_bytes(fakes.tiny_tokenizer())
    return folder


def convert(ct2: Path, target: Path, kind: str) -> bytes:
    convert_whisper(ct2 / "model.bin", ct2 / "tokenizer.json", target, kind)
    return target.read_bytes()


class Ggml:
    """Reads the file back as whisper.cpp's loader does."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        magic, *self.hparams = self.numbers(12)
        assert magic == 0x67676D6C
        bands, bins = self.numbers(2)
        self.filters = np.frombuffer(self.take(4 * bands * bins), "<f4").reshape(bands, bins)
        self.tokens = [self.take(self.numbers(1)[0]) for _ in range(self.numbers(1)[0])]
        self.tensors: dict[str, tuple[str, Any]] = {}
        while self.at < len(data):
            rank, length, kind = self.numbers(3)
            shape = tuple(reversed(self.numbers(rank)))
            name = self.take(length).decode()
            self.tensors[name] = (TYPES[kind], self.values(TYPES[kind], shape))

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def numbers(self, count: int) -> list[int]:
        return list(struct.unpack(f"<{count}i", self.take(4 * count)))

    def values(self, kind: str, shape: tuple[int, ...]) -> Any:
        count = int(np.prod(shape))
        if kind in QUANTISATIONS:
            return dequantise(self.take(count // BLOCK * QUANTISATIONS[kind].block_bytes), shape, kind)
        dtype = {"f32": "<f4", "f16": "<f2"}[kind]
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype).reshape(shape)


def test_the_header_describes_the_model(ct2: Path, tmp_path: Path) -> None:
    found = Ggml(convert(ct2, tmp_path / "f16", "f16"))
    width = fakes.STATE
    assert found.hparams == [51864, 1500, width, 1, 4, 448, width, 1, 4, 80, 1]
    assert np.array_equal(found.filters, mel_filters(80))


def test_fused_projections_come_apart_and_nothing_is_lost(
    ct2: Path, tmp_path: Path, weights: dict[str, Any]
) -> None:
    tensors = Ggml(convert(ct2, tmp_path / "f16", "f16")).tensors
    fused = weights["decoder/layer_2/self_attention/linear_0/weight"]
    cross = weights["decoder/layer_2/attention/linear_1/weight"]
    block = "decoder.blocks.2"
    parts = [tensors[f"{block}.attn.{role}.weight"][1] for role in ("query", "key", "value")]
    assert np.array_equal(np.vstack(parts), fused)
    pair = [tensors[f"{block}.cross_attn.{role}.weight"][1] for role in ("key", "value")]
    assert np.array_equal(np.vstack(pair), cross)
    assert f"{block}.attn.key.bias" not in tensors
    assert np.array_equal(tensors["encoder.conv2.weight"][1], weights["encoder/conv2/weight"])
    assert tensors["encoder.conv1.bias"][1].shape == (fakes.STATE, 1)
    # 10 + 2 a layer norm, and so on: as many as whisper.cpp's loader wants of four layers, no more.
    assert len(tensors) == 167


def test_small_tensors_stay_float32_and_matrices_shrink(ct2: Path, tmp_path: Path) -> None:
    tensors = Ggml(convert(ct2, tmp_path / "q", "q5_1")).tensors
    kinds = {name: kind for name, (kind, _) in tensors.items()}
    assert kinds["decoder.token_embedding.weight"] == "q5_1"
    assert kinds["encoder.blocks.0.mlp.0.weight"] == "q5_1"
    assert kinds["encoder.conv1.weight"] == "f16"
    assert kinds["encoder.positional_embedding"] == "f32"
    assert kinds["decoder.ln.weight"] == "f32"


@pytest.mark.parametrize("kind", QUANTISATIONS)
def test_the_file_type_carries_the_quantisation_version(ct2: Path, tmp_path: Path, kind: str) -> None:
    found = Ggml(convert(ct2, tmp_path / kind, kind))
    assert found.hparams[-1] == 2000 + QUANTISATIONS[kind].file_type


def test_converting_twice_gives_the_same_bytes(ct2: Path, tmp_path: Path) -> None:
    assert convert(ct2, tmp_path / "a", "q5_1") == convert(ct2, tmp_path / "b", "q5_1")


@pytest.mark.parametrize("kind", ["f16", *QUANTISATIONS])
def test_whisper_cpp_loads_and_runs_it(ct2: Path, tmp_path: Path, kind: str) -> None:
    whisper = pytest.importorskip("pywhispercpp.model", reason="pywhispercpp is not installed")
    convert(ct2, tmp_path / "model.bin", kind)
    model = whisper.Model(
        str(tmp_path / "model.bin"), redirect_whispercpp_logs_to=None, n_threads=1, print_progress=False,
        max_tokens=2, temperature_inc=0.0, audio_ctx=256,
    )  # fmt: skip
    assert isinstance(model.transcribe(np.zeros(16_000, np.float32)), list)


def test_tokens_are_the_bytes_that_they_stand_for(ct2: Path) -> None:
    tokens = vocabulary_bytes(ct2 / "tokenizer.json")
    assert len(tokens) == fakes.TEXT_VOCABULARY
    assert tokens[0] == b"!"
    assert b" the" in tokens


def test_every_byte_has_a_stand_in() -> None:
    table = byte_of_character()
    assert sorted(table.values()) == list(range(256))
    assert (table["A"], table["\u0120"], table["\u010a"]) == (ord("A"), ord(" "), ord("\n"))


def test_a_vocabulary_with_gaps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"model": {"vocab": {"a": 0, "b": 2}}}')
    with pytest.raises(ConversionError, match="gaps"):
        vocabulary_bytes(tmp_path / "t.json")


def test_another_model_is_refused(tmp_path: Path, ct2: Path) -> None:
    (tmp_path / "model.bin").write_bytes(fakes.ct2_bytes({}, spec="TransformerSpec"))
    with pytest.raises(ConversionError, match="TransformerSpec"):
        convert_whisper(tmp_path / "model.bin", ct2 / "tokenizer.json", tmp_path / "out")


def test_an_unknown_quantisation_is_refused(ct2: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="q3_k"):
        convert(ct2, tmp_path / "x", "q3_k")


def test_ct2_variables_scalars_and_aliases_are_read() -> None:
    matrix = np.arange(6, dtype="<f4").reshape(2, 3)
    data = fakes.ct2_bytes({"a/weight": matrix, "heads": np.int16(6)}, aliases=[("b/weight", "a/weight")])
    model = read_ct2(data)
    assert (model.spec, model.revision) == ("WhisperSpec", 3)
    assert np.array_equal(model.variables["b/weight"], matrix)
    assert int(model.variables["heads"]) == 6


@pytest.mark.parametrize("cut", [3, 20, 60, -1])
def test_a_file_that_ends_early_is_refused(cut: int) -> None:
    data = fakes.ct2_bytes({"a": np.arange(6, dtype="<f4")})
    with pytest.raises(Ct2Error, match="ends early"):
        read_ct2(data[:cut])


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(Ct2Error, match="binary version 99"):
        read_ct2(fakes.ct2_bytes({}, version=99))


def test_the_filters_are_those_whisper_was_trained_with() -> None:
    filters = mel_filters(80)
    assert filters.shape == (80, 201)
    # Values of openai/whisper's mel_filters.npz, as printed in several ports of it.
    known = {
        (0, 1): 0.02486259490251541, (1, 1): 0.001990821911022067, (1, 2): 0.022871771827340126,
        (20, 20): 0.013890394, (40, 43): 0.014735566, (79, 190): 0.0022320549469441175,
        (79, 192): 0.0031647119,
    }  # fmt: skip
    for place, value in known.items():
        assert filters[place] == pytest.approx(value, rel=1e-6), place
    assert filters[10, 12] == 0


def rows(seed: int = RNG_SEED) -> Any:
    return np.random.default_rng(seed).standard_normal((64, 96)).astype(np.float32)


@pytest.mark.parametrize(("kind", "levels"), [("q5_0", 31), ("q5_1", 31), ("q8_0", 254)])
def test_rounding_errs_by_at_most_half_a_level(kind: str, levels: int) -> None:
    values = rows()
    back = dequantise(quantise(values, kind), values.shape, kind)
    blocks, errors = values.reshape(-1, BLOCK), np.abs(back - values).reshape(-1, BLOCK)
    spread, farthest = blocks.max(axis=1) - blocks.min(axis=1), np.abs(blocks).max(axis=1)
    half_a_level = (spread if kind == "q5_1" else 2 * farthest) / levels / 2
    # q5_0 has one level fewer on the side away from its extreme; a float16 scale that is off by 2**-11 is
    # off by a sixteenth of a level after 127 of them.
    allowed = half_a_level * (2.1 if kind == "q5_0" else 1.15)
    assert (errors <= allowed[:, None]).all()


@pytest.mark.parametrize("kind", QUANTISATIONS)
def test_flat_and_empty_blocks_survive(kind: str) -> None:
    values = np.zeros((2, BLOCK), np.float32)
    assert np.array_equal(dequantise(quantise(values, kind), values.shape, kind), values)
    constant = np.full((1, BLOCK), 0.5, np.float32)
    assert dequantise(quantise(constant, kind), constant.shape, kind) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("kind", QUANTISATIONS)
def test_values_on_the_grid_come_back_exactly(kind: str) -> None:
    grid = {"q8_0": np.arange(-127, 128), "q5_0": np.arange(-16, 16), "q5_1": np.arange(32)}[kind]
    values = np.resize(grid, (1, 8 * BLOCK)).astype(np.float32)
    values[0, ::BLOCK] = grid[0] if kind != "q5_1" else 31
    values[0, 1::BLOCK] = grid[-1] if kind != "q5_1" else 0
    assert np.array_equal(dequantise(quantise(values, kind), values.shape, kind), values)


def test_the_block_layout_is_ggmls() -> None:
    values = np.arange(32, dtype=np.float32).reshape(1, 32)
    raw = quantise(values, "q5_1")
    assert len(raw) == 24
    assert np.frombuffer(raw[:4], "<f2").tolist() == [1.0, 0.0]
    assert struct.unpack("<I", raw[4:8]) == (0xFFFF0000,)  # values 16 to 31 have the fifth bit
    assert list(raw[8:]) == [j | (j << 4) for j in range(16)]


def test_a_row_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="blocks of 32"):
        quantise(np.zeros((2, 33), np.float32), "q8_0")
