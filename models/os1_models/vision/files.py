"""Where a pulled vision model lies."""

from __future__ import annotations

from pathlib import Path

import os1_models
from os1_models.errors import ModelMissing
from os1_models.vision.terms import VisionError

PROJECTOR = "mmproj"
"""Begins the name of a projector's file, as all publishers of GGUF have it."""


def files(name: str) -> tuple[Path, Path]:
    """The model called ``name`` and its projector.

    Raises:
        ModelMissing: it has not been pulled; says how.
        UnknownModel: the manifest has no such model.
        VisionError: it is a model without eyes.
    """
    main = os1_models.path(name)
    receipt = os1_models.installed(name)
    if receipt is None:  # it went away in between
        raise ModelMissing(name)
    for file in receipt.files:
        if file.name.startswith(PROJECTOR):
            return main, os1_models.path(name, file.name)
    raise VisionError(f"{name} is not a vision model; see: os1 models list")
