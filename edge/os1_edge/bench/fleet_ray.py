"""A front door before a Ray cluster of this machine, as a server for the fleet."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from os1_edge.bench.stage import Unavailable
from os1_edge.bench.stages.offload import Served, started

END_S = 60.0
"""For the cluster's processes to be ended one by one."""


@contextmanager
def front_door(first_s: float, token_s: float, slots: int) -> Iterator[Served]:
    """A head, two scripted replicas that have ``slots`` places together, and `os1 serve --ray`.

    Raises:
        Unavailable: Ray is not installed, or the cluster did not start.
    """
    if find_spec("ray") is None or find_spec("os1_cloud") is None:
        raise Unavailable("Ray is not installed; run: pip install 'os1[cloud,ray]'")
    spec = json.dumps({"first_s": first_s, "token_s": token_s, "slots": slots})
    command = [sys.executable, "-m", "os1_cloud.ray.bench.child", spec]
    otherwise = "the cluster did not start; run: python -m os1_cloud.ray.bench throughput"
    with started(command, otherwise, END_S) as (told, _):
        yield Served(told["address"], "", told["pid"])
