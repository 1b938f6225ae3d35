"""Downloads, one scheme a module. Used by `os1_models.puller` alone; imports nothing of the store.

A fetcher puts one artefact under `into` and returns the file. What a broken-off fetch leaves under
`into/resume` is kept for the next try; everything else there is removed by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from os1_models.fetch.hub import fetch_hub
from os1_models.fetch.npm import fetch_npm
from os1_models.fetch.pypi import fetch_pypi
from os1_models.fetch.url import fetch_url

Report = Callable[[int], None]
"""Hears how many bytes of the artefact are here."""


class Fetcher(Protocol):
    """Fetches the artefact `rest` (its origin without the scheme) into a directory of its own.

    Raises `FetchFailed` (or `Unreachable`, `DiskFull`), or an `OSError` of the local disk.
    """

    def __call__(self, rest: str, into: Path, report: Report) -> Path: ...


FETCHERS: Mapping[str, Fetcher] = {
    "pypi": fetch_pypi,
    "npm": fetch_npm,
    "hf": fetch_hub,
    "url": fetch_url,
}

__all__ = ["FETCHERS", "Fetcher", "Report"]
