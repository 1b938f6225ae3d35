"""What the models of the smallest profile hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def test_the_models_of_a_watch_class_device_fit_into_450_mb(pulled: Callable[..., Path]) -> None:
    for name in ("silero-vad", "smart-turn-v3.2", "whisper-tiny.en", "piper-joe", "smollm2-135m"):
        pulled(name)
    # 450 MiB. From run to run it differs by five MB for the threads' heaps, from machine to machine by 15
    # for how much of the libraries' files the page cache maps along.
    command = [sys.executable, "-m", "os1_edge.bench.resident", "--most", "472", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found)[-1] == "language model"
    assert list(found.values()) == sorted(found.values())
    assert found["language model"] > 200  # it holds them all
