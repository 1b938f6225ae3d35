"""The demo beside an offload server whose link gets worse, breaks and comes back: scripts/demo --cloud.

Starts `os1 serve` with the bigger model, puts the bench's fault proxy before it, replays the morning in real
time through that, and prints the routes that were taken. Everything is on this machine.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

OS1 = [sys.executable, "-m", "os1_edge"]

TIMELINE = (
    (0.0, "latency=0.01"),
    (0.35, "latency=0.2 rate=4000 stall=0.2"),
    (0.5, "hole"),
    (0.7, "latency=0.01"),
)
"""What is wrong with the link from which part of the session on: Wi-Fi, a street, a lift, Wi-Fi again."""

FIRST_TOKEN_S = 6.0
"""Both models share this machine's cores: a server's would be quicker, and the budget tighter."""


@contextmanager
def started(command: list[str], ready: str) -> Iterator[str]:
    """A process and what it says of where it listens; ended at the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        while line := process.stdout.readline():
            if found := re.search(ready, line):
                yield found[1]
                return
        sys.exit(f"{command[-1]} did not start")
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def main() -> None:
    """See the module."""
    from os1_edge.device.replay import session_seconds
    from os1_edge.device.session import load_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-out"))
    parser.add_argument("--model", default="qwen2.5-1.5b")
    chosen, others = parser.parse_known_args()
    with as_file(files("os1_edge") / "demo" / "morning") as folder:
        seconds = session_seconds(load_session(folder))
    steps = "; ".join(f"{share * seconds:.0f} {words}" for share, words in TIMELINE)
    serve = [sys.executable, "-m", "os1_cloud", "--listen", "127.0.0.1:0", "--model", chosen.model]
    with started(serve, r"ready on (\S+)") as server:
        print(f"os1 serve: {chosen.model} on {server}; the link: {steps}", flush=True)
        proxy = [sys.executable, "-m", "os1_edge.bench.proxy", "--to", server, "--timeline", steps]
        with started(proxy, r"ready on (\S+)") as address, tempfile.TemporaryDirectory() as scratch:
            config = Path(scratch) / "cloud.toml"
            config.write_text(f'[offload]\nserver = "{address}"\nfirst_token_s = {FIRST_TOKEN_S}\n')
            out = ["--out", str(chosen.out), "--config", str(config)]
            done = subprocess.run([*OS1, "demo", "--realtime", *out, *others], check=False).returncode
            shown = ["--file", str(chosen.out / "routes.json"), "--config", str(config)]
            subprocess.run([*OS1, "route", "explain", *shown], check=False)
    sys.exit(done)


if __name__ == "__main__":
    main()
