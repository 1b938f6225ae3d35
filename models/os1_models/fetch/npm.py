"""`npm:NAME@VERSION`: the package tarball, downloaded by `npm pack` under npm's own configuration."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from os1_models.errors import FetchFailed
from os1_models.fetch.tool import Tool, run_tool

FIRST_BYTE_S = 60.0


def fetch_npm(rest: str, into: Path, report: Callable[[int], None]) -> Path:
    """Download the tarball of a package such as `@mediapipe/objectron@0.4.1675468480` and return it."""
    npm = shutil.which("npm")
    if npm is None:
        raise FetchFailed("npm is not installed")
    room = Path(tempfile.mkdtemp(dir=into))
    tarballs = room / "tarball"
    tarballs.mkdir()
    argv = [
        npm, "pack", "--ignore-scripts", "--loglevel=error", f"--cache={room / 'cache'}",
        f"--pack-destination={tarballs}", rest,
    ]  # fmt: skip
    run_tool(Tool(argv, room, {"TMPDIR": str(room)}, FIRST_BYTE_S), report)
    found = sorted(tarballs.glob("*.tgz"))
    if len(found) != 1:
        raise FetchFailed(f"npm left {len(found)} tarballs for {rest}")
    return found[0]
