"""A Ray cluster of this machine's own processes: a head and more nodes, each in a folder of its own, ended by id.

Loopback only; tokens set; `ray stop` is never called, it would end other people's clusters.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = "127.0.0.1"
STORE_BYTES = 100 * 1024**2
"""Of the object store of a node: answers do not go through it."""
START_S = 60.0
FIRST_PORT, LAST_PORT = 20_000, 29_000
"""Where ports are looked for: below the kernel's ephemeral ones."""


class Node:
    """One node: `ray start` and all that it started, which share a session's id in their environment."""

    def __init__(self, mark: str, folder: Path) -> None:
        self.mark, self.folder = mark, folder

    def processes(self) -> list[int]:
        """Ids of the node's processes."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if f"OS1_RAY_NODE={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """Ends all of it at once, as if the machine had stopped."""
        for _ in range(20):
            there = [pid for pid in self.processes() if pid != os.getpid()]
            if not there:
                return
            for pid in there:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)


class Cluster:
    """A head and its nodes."""

    def __init__(self, folder: Path, cpus: float) -> None:
        self._folder, self._ports = folder, ports()
        self.port = next(self._ports)
        self.address = f"{HERE}:{self.port}"
        self.nodes: list[Node] = []
        self.environment = {
            **os.environ,
            # Set on every node: a cluster with a token and one without do not find together.
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_raylet_start_wait_time_s": "60",
            # Two missed in a row and a node is dead: its processes are of this machine and end with it.
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "2",
        }
        self.add(cpus, head=True)

    def add(self, cpus: float, head: bool = False, **resources: float) -> Node:
        """Starts one more node.

        Raises:
            RuntimeError: it does not start; the message is what Ray said.
        """
        mark = secrets.token_hex(8)
        folder = self._folder / f"n{len(self.nodes)}"
        folder.mkdir()
        node = Node(mark, folder)
        self.nodes.append(node)
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={HERE}"]
        command += [f"--num-cpus={cpus:g}", f"--object-store-memory={STORE_BYTES}", "--disable-usage-stats"]
        command += [f"--{name}={next(self._ports)}" for name in _PORTS]
        low = next(self._ports)
        for _ in range(30):
            last = next(self._ports)
        command += [f"--min-worker-port={low}", f"--max-worker-port={last}"]
        if head:
            command += ["--head", f"--port={self.port}", f"--temp-dir={folder}", "--include-dashboard=false"]
            command += [f"--ray-client-server-port={next(self._ports)}"]
        else:
            command += [f"--address={self.address}", f"--temp-dir={folder}"]
        if resources:
            command.append("--resources=" + str(resources).replace("'", '"'))
        done = subprocess.run(
            command,
            env={**self.environment, "OS1_RAY_NODE": mark},
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"ray start failed: {(done.stderr or done.stdout).strip()[-800:]}")
        return node

    def close(self) -> None:
        """Ends all nodes, the head last."""
        for node in reversed(self.nodes):
            node.kill()


_PORTS = (
    "node-manager-port",
    "object-manager-port",
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "runtime-env-agent-port",
    "metrics-export-port",
)


def ports() -> Iterator[int]:
    """Ports that are free now, each once."""
    import socket

    start = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT - 1000)
    for port in range(start, start + 1000):
        with socket.socket() as probe:
            try:
                probe.bind((HERE, port))
            except OSError:
                continue
        yield port


@contextmanager
def cluster(cpus: float = 1.0) -> Iterator[Cluster]:
    """A cluster with one node that this process has joined the environment of (not yet the cluster)."""
    with tempfile.TemporaryDirectory(prefix="os1ray") as folder:
        made = None
        before = dict(os.environ)
        try:
            made = Cluster.__new__(Cluster)
            made.__init__(Path(folder), cpus)  # type: ignore[misc]
            os.environ.update({k: v for k, v in made.environment.items() if k.startswith("RAY_")})
            yield made
        finally:
            if made is not None and hasattr(made, "nodes"):
                made.close()
            os.environ.clear()
            os.environ.update(before)
