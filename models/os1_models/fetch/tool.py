"""Runs a download tool as a child process, watches its files grow, and ends it when it stalls.

pip, npm and huggingface-hub each bring the user's own mirrors, proxies and credentials; none of them
promises to come back in bounded time. As children they can be stopped at any moment, and a crash of
theirs is not ours.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from os1_models.errors import DiskFull, FetchFailed, Unreachable

POLL_S = 0.2
STALL_S = 90.0
"""A transfer that brings no byte for this long is dead. pip alone retries for about as long."""
TERMINATE_S = 3.0
FULL_DISK_WORDS = ("No space left on device", "ENOSPC", "Disk quota exceeded")
KEEP_OUTPUT_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that downloads into `watch`."""

    argv: Sequence[str]
    watch: Path
    environment: Mapping[str, str]
    """Variables set for it on top of ours."""
    first_byte_s: float
    """How long it may take before any file grows."""


def bytes_below(directory: Path) -> int:
    """Bytes of all files below a directory that is changing meanwhile."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118  hot path
            except OSError:
                continue
    return total


def _start(tool: Tool, output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            tool.argv,
            cwd=tool.watch,
            env={**os.environ, **tool.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise FetchFailed(f"cannot start {tool.argv[0]}: {error.strerror}") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child and its children; it leads a process group of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(TERMINATE_S)
            return
        except ProcessLookupError:
            process.wait()
            return
        except subprocess.TimeoutExpired:
            continue


def _reason(output: str, code: int) -> str:
    """The line of a tool's output that says most: the last one marked as an error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and "WARNING" not in line]
    chosen = (errors or lines or [f"exit status {code}"])[-1]
    return chosen if len(chosen) <= 300 else chosen[:297] + "..."


def run_tool(tool: Tool, report: Callable[[int], None]) -> None:
    """Run to the end; raises `FetchFailed` with the tool's own reason, `Unreachable`, or `DiskFull`."""
    start_bytes = bytes_below(tool.watch)
    with tempfile.TemporaryFile() as output:
        process = _start(tool, output)
        try:
            _watch(process, tool, start_bytes, report)
        finally:
            if process.poll() is None:
                _end(process)
        output.seek(max(0, output.tell() - KEEP_OUTPUT_BYTES))
        text = output.read().decode("utf-8", "replace")
    if process.returncode == 0:
        return
    if any(word in text for word in FULL_DISK_WORDS):
        raise DiskFull(tool.watch, None, shutil.disk_usage(tool.watch).free)
    raise FetchFailed(_reason(text, process.returncode))


def _watch(
    process: subprocess.Popen[bytes], tool: Tool, start_bytes: int, report: Callable[[int], None]
) -> None:
    seen, last_growth, started = start_bytes, time.monotonic(), False
    while True:
        try:
            process.wait(POLL_S)
            return
        except subprocess.TimeoutExpired:
            pass
        now, here = time.monotonic(), bytes_below(tool.watch)
        if here != seen:
            seen, last_growth, started = here, now, True
            report(max(0, here - start_bytes))
        elif not started and now - last_growth > tool.first_byte_s:
            raise Unreachable(f"no byte within {tool.first_byte_s:.0f} s")
        elif now - last_growth > STALL_S:
            raise FetchFailed(f"no byte for {STALL_S:.0f} s")
