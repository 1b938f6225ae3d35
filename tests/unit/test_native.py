"""Memory that native libraries leave behind goes back to the system."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from os1_edge.native import forget_pages

SIZE = 4 * 2**20


def resident_kb(file: Path) -> int:
    """How much of ``file`` lies in this process, as the kernel counts it."""
    try:
        lines = Path("/proc/self/smaps").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        pytest.skip("this system does not tell what of a mapped file is resident")
    begin = next(i for i, line in enumerate(lines) if line.endswith(str(file)))
    return int(next(line for line in lines[begin:] if line.startswith("Rss:")).split()[1])


def test_pages_of_a_mapped_file_are_given_back_and_read_the_same_afterwards(tmp_path: Path) -> None:
    file, other = tmp_path / "a model.bin", tmp_path / "other.bin"
    for one, byte in ((file, b"a"), (other, b"b")):
        one.write_bytes(byte * SIZE)
    with (
        file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        other.open("rb") as stays, mmap.mmap(stays.fileno(), 0, access=mmap.ACCESS_READ) as beside,
    ):  # fmt: skip
        assert (mapped[:], beside[:]) == (b"a" * SIZE, b"b" * SIZE)
        assert resident_kb(file) == SIZE // 1024
        forget_pages(file)
        assert resident_kb(file) == 0
        assert resident_kb(other) == SIZE // 1024
        assert mapped[:] == b"a" * SIZE


def test_a_file_that_is_not_mapped_is_no_trouble(tmp_path: Path) -> None:
    forget_pages(tmp_path / "not there")
