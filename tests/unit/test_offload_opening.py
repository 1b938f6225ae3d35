"""What is kept of the prompt's opening is taken only where it is whole and rests on the very same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from os1_edge.offload.opening import Kept, digest_of_model, keep, kept, key_of

KEY = key_of("model", "build", 4096, 2, [1, 2, 3])
ONE = Kept(b"state " * 100, 3.5)


def test_what_was_kept_is_taken_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "opening.kv"
    keep(file, KEY, ONE)
    assert kept(file, KEY) == ONE
    assert file.stat().st_mode & 0o77 == 0


def test_another_opening_takes_its_place_so_that_there_is_one_file(tmp_path: Path) -> None:
    file, other = tmp_path / "opening.kv", key_of("model", "build", 4096, 2, [1, 2, 4])
    keep(file, KEY, ONE)
    keep(file, other, Kept(b"other", 1.0))
    assert kept(file, KEY) is None
    assert kept(file, other) == Kept(b"other", 1.0)
    assert [one.name for one in tmp_path.iterdir()] == ["opening.kv"]


@pytest.mark.parametrize(
    "other",
    [
        key_of("another", "build", 4096, 2, [1, 2, 3]),
        key_of("model", "newer", 4096, 2, [1, 2, 3]),
        key_of("model", "build", 2048, 2, [1, 2, 3]),
        key_of("model", "build", 4096, 4, [1, 2, 3]),
        key_of("model", "build", 4096, 2, [1, 2]),
    ],
)
def test_one_of_another_model_build_size_or_prompt_is_not_taken(other: bytes, tmp_path: Path) -> None:
    keep(tmp_path / "opening.kv", KEY, ONE)
    assert kept(tmp_path / "opening.kv", other) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data[:75] + bytes([data[75] ^ 1]) + data[76:],  # the seconds
        lambda data: b"GGUF" + data[4:],
    ],
)
def test_a_damaged_one_is_not_taken(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    file = tmp_path / "opening.kv"
    keep(file, KEY, ONE)
    file.write_bytes(damage(file.read_bytes()))
    assert kept(file, KEY) is None


def test_where_it_cannot_be_written_nothing_happens_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    keep(tmp_path / "file" / "opening.kv", KEY, ONE)
    (tmp_path / "opening.kv").mkdir()
    keep(tmp_path / "opening.kv", KEY, ONE)
    assert kept(tmp_path / "opening.kv", KEY) is None
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "opening.kv"]


def test_a_model_that_changed_is_another(tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    found = set()
    for content in (b"a" * 5_000_000, b"a" * 4_999_999 + b"b", b"b" + b"a" * 4_999_999):
        model.write_bytes(content)
        found.add(digest_of_model(model))
    assert len(found) == 3
