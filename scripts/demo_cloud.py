"""The demo beside an offload server whose link gets worse, breaks and comes back: scripts/demo --cloud.

Starts `os1 serve` with the bigger model, puts the bench's fault proxy before it, replays the morning in real
time through that, and prints the routes that were taken. Everything is on this machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from statistics import median
from typing import Any

OS1 = [sys.executable, "-m", "os1_edge"]

TIMELINE = (
    (0.0, "latency=0.01", "Wi-Fi"),
    (0.35, "latency=0.2 rate=4000 stall=0.2", "a street, 4 kB a second"),
    (0.5, "hole", "a lift, nothing comes through"),
    (0.7, "latency=0.01", "Wi-Fi again"),
)
"""What is wrong with the link from which part of the session on, for the proxy and in words."""

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


def routes(turns: Sequence[Mapping[str, Any]], seconds: float) -> Iterator[str]:
    """Which side answered while the link was how, a line each.

    Args:
        turns: of the replay's report.
        seconds: the session's length.
    """
    begins = [share * seconds for share, _, _ in TIMELINE]
    for begin, end, (_, _, words) in zip(begins, [*begins[1:], seconds], TIMELINE, strict=True):
        made = [turn["route"] for turn in turns if begin <= turn["end_s"] < end]
        sides = {"the server": made.count("cloud"), "the device": made.count("local")}
        sides["no model"] = len(made) - sum(sides.values())
        told = ", ".join(f"{count} by {side}" for side, count in sides.items() if count) or "nothing asked"
        yield f"{begin:4.0f}-{end:<4.0f} s  {words:30}  {told}"


def verdict(taken: Sequence[Mapping[str, Any]]) -> str:
    """What to think of the server on this machine, from the journal's decisions."""
    asked = [one for one in taken if one["route"] == "cloud" and one["link"] == "online"]
    first = [one["first_s"] for one in asked if one["answered"] in ("cloud", "both")]
    if first:
        return (
            f"Over a good link the server was asked {len(asked)} times and in time {len(first)} times, its "
            f"first word after {median(first):.1f} s as often as not."
        )
    slow = f"was asked {len(asked)} times and never in time" if asked else "could never be asked"
    return (
        f"Over a good link the server {slow}: this machine is too slow, or too busy, for both models at "
        f"once and a first word within {FIRST_TOKEN_S:g} s. Try --model qwen2.5-0.5b, or a server of its own."
    )


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
    steps = "; ".join(f"{share * seconds:.0f} {toxics}" for share, toxics, _ in TIMELINE)
    serve = [sys.executable, "-m", "os1_cloud", "--listen", "127.0.0.1:0", "--model", chosen.model]
    with started(serve, r"ready on (\S+)") as server:
        print(f"os1 serve: {chosen.model} on {server}; the link: {steps}", flush=True)
        proxy = [sys.executable, "-m", "os1_edge.bench.proxy", "--to", server, "--timeline", steps]
        with started(proxy, r"ready on (\S+)") as address, tempfile.TemporaryDirectory() as scratch:
            config = Path(scratch) / "cloud.toml"
            config.write_text(f'[offload]\nserver = "{address}"\nfirst_token_s = {FIRST_TOKEN_S}\n')
            out = ["--out", str(chosen.out), "--config", str(config)]
            done = subprocess.run([*OS1, "demo", "--realtime", *out, *others], check=False).returncode
            journal = chosen.out / "routes.json"
            shown = ["--file", str(journal), "--config", str(config)]
            subprocess.run([*OS1, "route", "explain", *shown], check=False)
    if not done:
        report = json.loads((chosen.out / "report.json").read_text("utf-8"))
        print(*routes(report["turns"], seconds), sep="\n")
        print(verdict(json.loads(journal.read_text("utf-8"))["taken"]))
    sys.exit(done)


if __name__ == "__main__":
    main()
