"""Models: what there is, where it comes from, and whether it is whole.

    path("silero-vad")      a file of a pulled model, or ModelMissing saying how to get it

Edge and cloud both import this; it imports neither. Only the standard library, platformdirs and filelock
load with it: `path` is on every start-up, the manifest and the fetchers are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from os1_models.errors import (
    DiskFull,
    ModelError,
    ModelMissing,
    SourceFailed,
    UnknownModel,
    WrongHash,
)
from os1_models.receipt import FileRecord, Receipt
from os1_models.store import Store, models_dir

if TYPE_CHECKING:
    from os1_models.manifest import Manifest
    from os1_models.progress import ProgressSink
    from os1_models.verifier import Problem

__all__ = [
    "DiskFull",
    "FileRecord",
    "ModelError",
    "ModelMissing",
    "Receipt",
    "SourceFailed",
    "UnknownModel",
    "WrongHash",
    "installed",
    "load_manifest",
    "models_dir",
    "path",
    "pull",
    "verify",
]


def load_manifest() -> Manifest:
    """Every model that this version knows."""
    from os1_models import manifest

    return manifest.load_manifest()


def path(name: str, file: str | None = None) -> Path:
    """A file of a pulled model, by default its main one.

    Looks at the receipt and the sizes, hashes nothing. Raises `ModelMissing` if it is not there in full,
    `UnknownModel` if there is no such model.
    """
    try:
        return Store(models_dir()).path(name, file)
    except ModelMissing:
        load_manifest().model(name)
        raise


def installed(name: str) -> Receipt | None:
    """The receipt of a model that is there in full, else None."""
    return Store(models_dir()).installed(name)


def pull(names: Sequence[str], *, progress: ProgressSink | None = None, force: bool = False) -> list[Receipt]:
    """Make the named models present, in order, and return their receipts.

    `force` fetches again what is already there. Raises `UnknownModel` before anything is fetched;
    `SourceFailed`, `DiskFull` or another `ModelError` at the first model that cannot be had.
    """
    from os1_models.progress import Silent
    from os1_models.puller import Puller, pull_all

    puller = Puller(load_manifest(), Store(models_dir()), progress or Silent())
    return pull_all(puller, names, force=force)


def verify(names: Sequence[str], *, progress: ProgressSink | None = None) -> list[Problem]:
    """Hash the named models again; returns what is wrong, nothing if all is well."""
    from os1_models.verifier import verify_models

    return verify_models(Store(models_dir()), load_manifest(), names, progress)
