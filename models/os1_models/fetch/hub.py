"""`hf:OWNER/REPO@REVISION/PATH`: one file of a Hugging Face repository, through huggingface-hub."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from os1_models.errors import FetchFailed, Unreachable
from os1_models.fetch import hub_child
from os1_models.fetch.tool import Tool, run_tool

FIRST_BYTE_S = 8.0
"""An unreachable hub must fall through to the next source within seconds. The child writes its marker
as soon as the hub answers, so this bounds the import and one small request, not the transfer."""


def parse_hub(rest: str) -> tuple[str, str, str]:
    """`OWNER/REPO@REVISION/PATH` as (repository, revision, path)."""
    repository, _, place = rest.partition("@")
    revision, _, path = place.partition("/")
    return repository, revision, path


def fetch_hub(rest: str, into: Path, report: Callable[[int], None]) -> Path:
    """Download the file and return it. A broken-off transfer goes on from `into/resume`."""
    repository, revision, path = parse_hub(rest)
    room = into / "resume"
    room.mkdir(parents=True, exist_ok=True)
    # `-P` keeps this folder off the child's import path, where `url.py` and the like could shadow.
    argv = [sys.executable, "-P", hub_child.__file__, repository, revision, path, str(room)]
    try:
        run_tool(Tool(argv, room, hub_child.ENVIRONMENT, FIRST_BYTE_S), report)
    except FetchFailed as error:
        if str(error).startswith(hub_child.SILENT):
            raise Unreachable(str(error)) from error
        raise
    target = room / path
    if not target.is_file():
        raise FetchFailed(f"huggingface-hub left no {path}")
    return target
