"""A front door before Ray with an engine that costs nearly nothing, for another process to ask.

Prints a line of JSON with its address and process, and serves until its standard input ends. `os1 bench fleet
--ray` starts it, and asks ever more until the first words come too late.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import ray

from os1_cloud.ray.bench import scripted
from os1_cloud.ray.bench.cluster import cluster
from os1_cloud.ray.bench.front import front
from os1_cloud.ray.pool import connect

REPLICAS = 2


def main(spec: dict[str, Any]) -> None:
    """`spec`: `first_s` and `token_s` of the engine, and the `slots` of all replicas together."""
    slots = spec["slots"] // REPLICAS
    with cluster(REPLICAS) as made, tempfile.TemporaryDirectory() as folder:
        connect(made.address)
        scripted.run(scripted.model(REPLICAS, slots, 1.0), spec["first_s"], spec["token_s"])
        with front(made.address, Path(folder), slots) as door:
            print(json.dumps({"address": door.address, "pid": door.process.pid}), flush=True)
            sys.stdin.read()
        ray.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
