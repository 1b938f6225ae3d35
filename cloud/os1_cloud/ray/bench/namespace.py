"""A network namespace with a link to this machine: a second machine's network.

Needs root, and `ip` and `tc` of iproute2.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from contextlib import suppress
from pathlib import Path

NAME = "os1r{}x{}"
"""Process, and a random part: of a process that is gone it may be removed."""
NETWORK = "198.18.{}.{}"
"""Of the block for tests of network devices (RFC 2544)."""
OUTSIDE, INSIDE = range(1, 8), range(9, 16)
"""Hosts of a /28 here and there: for a head and front doors, and for nodes."""


class NotPermitted(Exception):
    """No namespace can be made here; the message is what the tool said."""


class Namespace:
    """The namespace, until `close`."""

    def __init__(self) -> None:
        """Raises:
        NotPermitted: see there.
        """
        _sweep()
        self.name = NAME.format(os.getpid(), secrets.token_hex(1))
        self._here, self._there = self.name + "a", self.name + "b"
        net = secrets.randbelow(256)
        self.outside = [NETWORK.format(net, host) for host in OUTSIDE]
        self.inside = [NETWORK.format(net, host) for host in INSIDE]
        try:
            _run("ip", "netns", "add", self.name)
            _run("ip", "link", "add", self._here, "type", "veth", "peer", self._there, "netns", self.name)
            for address in self.outside:
                _run("ip", "address", "add", address + "/28", "dev", self._here)
            for address in self.inside:
                _run("ip", "-n", self.name, "address", "add", address + "/28", "dev", self._there)
            _run("ip", "link", "set", self._here, "up")
            for device in ("lo", self._there):
                _run("ip", "-n", self.name, "link", "set", device, "up")
        except NotPermitted:
            self.close()
            raise

    def command(self, *words: str) -> list[str]:
        """A command that runs inside."""
        return ["ip", "netns", "exec", self.name, *words]

    def cut(self) -> None:
        """Nothing comes through any more, and nobody is told: no reset, no unreachable."""
        for where in (["tc"], ["tc", "-n", self.name]):
            device = self._here if len(where) == 1 else self._there
            _run(*where, "qdisc", "replace", "dev", device, "root", "pfifo", "limit", "0")

    def mend(self) -> None:
        """The link is back."""
        with suppress(NotPermitted):  # it was not cut
            _run("tc", "qdisc", "delete", "dev", self._here, "root")
            _run("tc", "-n", self.name, "qdisc", "delete", "dev", self._there, "root")

    def close(self) -> None:
        """Removes what there is of it."""
        _remove(self.name)


def _remove(name: str) -> None:
    for words in (("ip", "link", "delete", name + "a"), ("ip", "netns", "delete", name)):
        with suppress(NotPermitted):
            _run(*words)


def _sweep() -> None:
    """Removes those of processes that were killed."""
    begin = NAME.partition("{")[0]
    for entry in Path("/run/netns").glob(begin + "*"):
        process = entry.name.removeprefix(begin).partition("x")[0]
        if process.isdigit() and not Path("/proc", process).exists():
            _remove(entry.name)


def _run(*words: str) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotPermitted(f"{words[0]}: {e}") from e
    if done.returncode:
        raise NotPermitted(f"{' '.join(words)}: {done.stderr.strip()}")
