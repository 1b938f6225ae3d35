"""Stands between this process and a server that it started, and ends that whatever becomes of this process.

command starts it: ``python -m os1_cloud.engines.keeper '["llama-server", ...]'``. It leaves its parent's
session and children (Ray kills those of a replica that it ends, so that nobody would be left to end theirs)
and goes by its standard input alone: a line says that the server is ready, the end of it that it is wanted no
more. On its standard output are lines of JSON: ``{"pid": N}`` or ``{"failed": WHY}``, then once
``{"code": N, "said": TEXT}`` when the server has ended by itself.

What the server prints may quote prompts once it is asked anything. So it is kept, the newest of it, only
until it is ready, and read and dropped from then on. Imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

TERM_S = 10.0
"""From SIGTERM to SIGKILL."""
LOOK_S = 0.2
"""Between two looks whether the server has ended."""
READ = 64 * 1024
TAIL = 600
"""Bytes kept of what it prints while it starts: the last lines, which say why it cannot."""


def main(command: Sequence[str]) -> None:
    """Starts `command` in a process group of its own and keeps it until it ends or nobody wants it."""
    if os.fork():
        os._exit(0)
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # not SIG_IGN: the server would inherit that
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as e:
        _tell(failed=getattr(e, "strerror", None) or type(e).__name__)
        return
    _tell(pid=server.pid)
    said = _until_it_ends(server)
    if said is None:
        _end(server)
    else:
        _tell(code=_swept(server), said=said.decode("utf-8", "replace"))


def _until_it_ends(server: subprocess.Popen[bytes]) -> bytes | None:
    """What the server said last before it was ready, once it has ended; None: it is wanted no more."""
    assert server.stdout is not None
    life, output = sys.stdin.fileno(), server.stdout.fileno()
    watched, ready, said = [life, output], False, b""
    while True:
        over = _ended(server)
        for fd in select.select(watched, [], [], 0 if over else LOOK_S)[0]:
            data = os.read(fd, READ)
            if fd == life and not data:
                return None
            if fd == life:
                ready, said = True, b""
            elif not data:
                watched.remove(output)
            elif not ready:
                said = (said + data)[-TAIL:]
        if over:
            return said


def _ended(server: subprocess.Popen[bytes]) -> bool:
    """Leaves it a zombie, so that its process group's id is nobody else's yet."""
    return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(server: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the whole group, and SIGKILL to what is left of it."""
    assert server.stdout is not None
    server.stdout.close()
    _signal(server, signal.SIGTERM)
    until = time.monotonic() + TERM_S
    while time.monotonic() < until and not _ended(server):
        time.sleep(0.05)
    _swept(server)


def _swept(server: subprocess.Popen[bytes]) -> int:
    _signal(server, signal.SIGKILL)
    return server.wait()


def _signal(server: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, number)


def _tell(**message: Any) -> None:
    with suppress(OSError):  # nobody listens any more
        os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
