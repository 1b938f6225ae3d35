"""`pypi:NAME==VERSION`: the wheel, downloaded by pip under pip's own configuration, not installed."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from os1_models.errors import FetchFailed
from os1_models.fetch.tool import Tool, run_tool

FIRST_BYTE_S = 60.0
"""pip starts, reads the index and retries a refused one for some 10 s before the first byte."""


def fetch_pypi(rest: str, into: Path, report: Callable[[int], None]) -> Path:
    """Download the wheel of a requirement such as `silero-vad==6.2.3` and return it.

    Source distributions are refused: pip would run their build code. pip's cache is left out, as the
    store keeps what is needed and a glasses' flash need not hold everything twice.
    """
    if importlib.util.find_spec("pip") is None:
        raise FetchFailed("this Python has no pip; run: python -m ensurepip")
    room = Path(tempfile.mkdtemp(dir=into))
    argv = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
        "--ignore-requires-python", "--no-cache-dir", "--no-input", "--disable-pip-version-check",
        "--progress-bar=off", "--dest", str(room / "wheel"), rest,
    ]  # fmt: skip
    run_tool(Tool(argv, room, {"TMPDIR": str(room)}, FIRST_BYTE_S), report)
    wheels = sorted((room / "wheel").glob("*.whl"))
    if len(wheels) != 1:
        raise FetchFailed(f"pip left {len(wheels)} wheels for {rest}")
    return wheels[0]
