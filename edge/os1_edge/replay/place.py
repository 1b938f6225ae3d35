"""The output folder of a replay: written beside it and put in its place whole, so that a replay that fails or
is stopped leaves an earlier one as it was."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from os1_edge.tomlfile import BadFile

FILES = ("report.json", "report.html", "memory.db")
ROUTES = "routes.json"
"""Only of a replay with an offload server."""
REPLY = re.compile(r"\d{2,}\.wav")


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Gives an empty folder to write to; its files take ``out``'s place when the block ends well.

    Raises:
        BadFile: ``out`` is a file, or holds something that is not a replay's.
    """
    if out.exists() and not out.is_dir():
        raise BadFile(out, "is a file; name a folder for the replay's output")
    if out.is_dir() and any(out.iterdir()) and not _is_a_replay(out):
        raise BadFile(out, "holds other files; name an empty or new folder for the replay's output")
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".replay-", dir=out))
    try:
        yield work
        _put_in_place(work, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _is_a_replay(out: Path) -> bool:
    """Whether ``out`` holds nothing but an earlier replay, whole or stopped."""
    others = [p for p in out.iterdir() if p.name not in (*FILES, ROUTES, "replies") and not _stopped(p)]
    report = out / "report.json"
    if not report.exists():
        return all(_stopped(p) for p in out.iterdir())
    try:
        made = json.loads(report.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return not others and isinstance(made, dict) and made.get("schema") == 1 and "os1_version" in made


def _stopped(path: Path) -> bool:
    """Whether ``path`` is what a replay left that was killed."""
    return path.name.startswith(".replay-") and path.is_dir()


def _put_in_place(work: Path, out: Path) -> None:
    replies = out / "replies"
    for old in replies.iterdir() if replies.is_dir() else ():
        if REPLY.fullmatch(old.name):
            old.unlink()
    replies.mkdir(exist_ok=True)
    for new in (work / "replies").iterdir():
        new.replace(replies / new.name)
    for leftover in out.iterdir():
        if _stopped(leftover) and leftover != work:
            shutil.rmtree(leftover, ignore_errors=True)
    for name in FILES:
        (work / name).replace(out / name)
    (out / ROUTES).unlink(missing_ok=True)
    if (work / ROUTES).exists():
        (work / ROUTES).replace(out / ROUTES)
