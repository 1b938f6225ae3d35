"""A Ray cluster of this machine's own processes: a head and more nodes, each in its own folder, ended by id.

The nodes behind the head are in a network namespace where that is allowed, else all are on loopback.
Tokens are set; `ray stop` is never called, it would end other people's clusters.
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

from os1_cloud.ray.bench.namespace import Namespace, NotPermitted

HERE = "127.0.0.{}"
"""Of each node its own; Ray takes the first, 127.0.0.1, for the machine's address on the network."""
STORE_BYTES = 100 * 1024**2
"""Of the object store of a node: answers do not go through it."""
START_S = 300.0
SLOW = "timed out during startup"
"""Ray's word for a node that took 30 s (it is not to be set), which is one more try on a busy machine."""
KILL_S = 5.0
ENVIRONMENT = {
    # On every node: a cluster with a token and one without do not find together.
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(16),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # its default 15 lets whatever else there is go before replicas
    "RAY_raylet_start_wait_time_s": "120",  # on a machine that is busy
    # Two missed in a row and a node is dead.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "2",
    # The autoscaler's figures each second, not each ten.
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",
}
"""Of this process and all that it starts."""
os.environ.update(ENVIRONMENT)  # Ray reads it when it is imported
MARK = "OS1_RAY_NODE"
FIRST_PORT, LAST_PORT = 20_000, 29_000
"""Where ports are looked for: below the kernel's ephemeral ones."""


class Node:
    """One node: `ray start` and all that it started."""

    def __init__(self, mark: str, folder: Path, host: str) -> None:
        """`mark`: in the environment of its processes and of no other's."""
        self.mark, self.folder, self.host = mark, folder, host

    def processes(self) -> set[int]:
        """Ids of the node's processes: those marked and their children, who may have written their title over
        the mark."""
        parents, found = dict[int, int](), set[int]()
        mark = f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.add(int(entry.name))
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def kill(self) -> None:
        """Ends all of it at once, as if the machine had stopped."""
        until = time.monotonic() + KILL_S
        while (there := self.processes()) and time.monotonic() < until:
            for pid in there:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)


class Cluster:
    """A head and its nodes."""

    def __init__(self, folder: Path, apart: Namespace | None = None) -> None:
        """`apart`: where the nodes behind the head are; None: on loopback."""
        self._folder, self._ports, self.apart = folder, ports(), apart
        self._hosts = iter([HERE.format(n) for n in range(2, 250)] if apart is None else apart.outside)
        self._inside = self._hosts if apart is None else iter(apart.inside)
        self.port = 0
        self.nodes: list[Node] = []

    @property
    def address(self) -> str:
        """Of the head."""
        return f"{self.nodes[0].host}:{self.port}"

    def add(self, cpus: int, near: bool = False, **resources: float) -> Node:
        """Starts one more node; the first is the head.

        Args:
            cpus: that it has.
            near: whether it is with the head, not in the namespace.
            resources: more that it has.

        Raises:
            RuntimeError: it does not start; the message is what Ray said.
        """
        try:
            return self._start(cpus, near, resources)
        except RuntimeError as e:
            if SLOW not in str(e):
                raise
            self.nodes.pop().kill()
            return self._start(cpus, near, resources)

    def _start(self, cpus: int, near: bool, resources: dict[str, float]) -> Node:
        head, mark = not self.nodes, secrets.token_hex(8)
        folder = self._folder / mark[:4]  # short: a socket has at most 107 letters
        folder.mkdir()
        near = near or head
        node = Node(mark, folder, next(self._hosts if near else self._inside))
        self.nodes.append(node)
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={node.host}"]
        if self.apart is not None and not near:
            command = self.apart.command(*command)
        command += [f"--num-cpus={cpus}", f"--object-store-memory={STORE_BYTES}", "--disable-usage-stats"]
        command += [f"--{name}={next(self._ports)}" for name in _PORTS]
        low = next(self._ports)
        for _ in range(30):
            last = next(self._ports)
        command += [f"--min-worker-port={low}", f"--max-worker-port={last}"]
        if head:
            self.port = next(self._ports)
            command += ["--head", f"--port={self.port}", f"--temp-dir={folder}", "--include-dashboard=false"]
            command += [f"--ray-client-server-port={next(self._ports)}"]
        else:
            command += [f"--address={self.address}", f"--temp-dir={folder}"]
        if resources:
            command.append("--resources=" + str(resources).replace("'", '"'))
        log = folder / "start.log"
        with log.open("w") as out:  # not a pipe: what it starts would hold that open
            done = subprocess.run(
                command,
                env={**os.environ, MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=START_S,
                check=False,
            )
        if done.returncode:
            raise RuntimeError(f"ray start failed: {log.read_text().strip()[-800:]}")
        return node

    def close(self) -> None:
        """Ends all nodes, the head last."""
        if "ray" in sys.modules:  # else this process would look for the head for a minute
            sys.modules["ray"].shutdown()
        for node in reversed(self.nodes):
            node.kill()
        if self.apart is not None:
            self.apart.close()


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
                probe.bind(("", port))
            except OSError:
                continue
        yield port


@contextmanager
def cluster(*cpus: int) -> Iterator[Cluster]:
    """A cluster with a node for each number of CPUs."""
    with tempfile.TemporaryDirectory(prefix="os1ray", ignore_cleanup_errors=True) as folder:
        made = Cluster(Path(folder), _apart() if len(cpus) > 1 else None)
        try:
            for count in cpus:
                made.add(count)
            yield made
        finally:
            made.close()


def _apart() -> Namespace | None:
    try:
        return Namespace()
    except NotPermitted as e:
        print(
            f"no network namespace for the second node, so it has an address of loopback: {e}",
            file=sys.stderr,
        )
        return None
