"""The whole: the bundled session in real time over each kind of link, with a server of one's own on this
machine behind a way that is as bad as the link: of real packets where the system lets it, else a proxy.

Voice to voice, who answered, replies that are right, and what it cost in processor time or energy. The
server's work costs this machine too; its processor time is not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import os1_models
from os1_edge.bench import tun
from os1_edge.bench.energy import Meter, spent
from os1_edge.bench.result import LinkRun, Shape
from os1_edge.bench.stage import Unavailable
from os1_edge.config import Config
from os1_edge.device.replay import session_seconds
from os1_edge.device.session import load_session
from os1_edge.replay.report import Report
from os1_edge.replay.run import replay

READY = re.compile(r"ready on (\S+)")


@dataclass(frozen=True, slots=True)
class LinkProfile:
    """A kind of link: what is wrong with it from which part of the session on."""

    name: str
    steps: tuple[tuple[float, str], ...]
    """(share of the session, words of ``proxy.Toxics``); none: no server at all."""
    told: str

    def timeline(self, seconds: float) -> str:
        """For the proxy, or the packets."""
        return "; ".join(f"{share * seconds:.1f} {words}" for share, words in self.steps)


WIFI, LTE = "latency=0.005 jitter=0.002 rate=2500000", "latency=0.03 jitter=0.01 rate=600000"
TRAIN = "latency=0.04 jitter=0.03 rate=125000 stall=0.05"
LINKS = (
    LinkProfile("offline", (), "no network"),
    LinkProfile("wifi", ((0.0, WIFI),), "10 ms there and back, 20 Mbit/s"),
    LinkProfile("lte", ((0.0, LTE),), "60 ms, 5 Mbit/s"),
    LinkProfile("3g", ((0.0, "latency=0.1 jitter=0.05 rate=48000 stall=0.02"),), "200 ms, 384 kbit/s"),
    LinkProfile(
        "train",
        ((0.0, TRAIN), (0.3, "hole"), (0.4, TRAIN), (0.65, "hole"), (0.8, TRAIN)),
        "80 ms, 1 Mbit/s, every twentieth piece late or lost; two tunnels, a tenth and a seventh of the way",
    ),
    LinkProfile("elevator", ((0.0, WIFI), (0.4, "hole"), (0.65, WIFI)), "Wi-Fi, nothing, Wi-Fi again"),
)


@dataclass(frozen=True, slots=True)
class Check:
    """What a right reply to an utterance contains: any of the patterns."""

    text: str
    patterns: tuple[str, ...]

    def passed(self, reply: str) -> bool:
        """Whether ``reply`` does."""
        return any(re.search(pattern, reply, re.IGNORECASE) for pattern in self.patterns)


def checks(folder: Path) -> list[Check]:
    """Those of the session in ``folder``; none where it has no ``expect.toml``."""
    file = folder / "expect.toml"
    if not file.is_file():
        return []
    rows = tomllib.loads(file.read_text("utf-8"))["question"]
    return [Check(row["text"], tuple(row["reply"])) for row in rows]


def link_run(link: str, report: Report, expected: Sequence[Check], meter: Meter) -> LinkRun:
    """What one replay says. A question that no turn heard has not passed."""
    turns = report.turns
    replies = {turn.reference: turn.reply for turn in turns if turn.reference}
    waits = [t.latency.voice_to_voice_s for t in turns if t.latency.voice_to_voice_s is not None]
    routes: dict[str, int] = {}
    for turn in turns:
        routes[turn.route] = routes.get(turn.route, 0) + 1
    return LinkRun(
        link=link,
        turns=len(turns),
        voice_to_voice_s=tuple(waits),
        parts_s=parts(report),
        routes=dict(sorted(routes.items())),
        checks=len(expected),
        checks_passed=sum(check.passed(replies.get(check.text, "")) for check in expected),
        cpu_s_a_minute=round(60 * report.resources.cpu_s / max(report.resources.wall_s, 1e-9), 2),
        joules=meter.joules,
        energy_by=meter.by,
    )


def parts(report: Report) -> dict[str, float]:
    """Medians of the parts of a turn's wait, in order."""
    names = {
        "work begins after": "pause_s",
        "speech recognised": "asr_s",
        "recall": "recall_s",
        "first token": "first_token_s",
        "first clause": "first_clause_s",
        "first sound": "first_audio_s",
    }
    found = {}
    for name, field in names.items():
        values = [v for turn in report.turns if (v := getattr(turn.latency, field)) is not None]
        if values:
            found[name] = round(median(values), 4)
    return found


@contextmanager
def started(command: Sequence[str]) -> Iterator[str]:
    """A process, and where it says that it listens; ended at the end.

    Raises:
        Unavailable: it does not start.
    """
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    # In a session of its own: a terminal's Ctrl-C is for the bench, which then ends what it started.
    with subprocess.Popen(
        list(command), stdout=pipe, stderr=none, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := READY.search(line):
                    yield found[1]
                    return
            raise Unavailable(f"{' '.join(command[1:4])} did not start; run it by itself to see why")
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def shaped_by(wanted: str) -> Shape:
    """What makes the way bad: "auto" takes packets where the system lets it.

    Raises:
        Unavailable: packets are wanted and cannot be had.
    """
    if wanted == "proxy":
        return "proxy"
    why = tun.missing()
    if wanted == "packets" and why is not None:
        raise Unavailable(f"no packets here: {why}")
    return "proxy" if why is not None else "packets"


def lived(
    link: LinkProfile, folder: Path, config: Config, key: bytes, model: str, shape: Shape = "proxy"
) -> LinkRun:
    """The session in ``folder`` in real time over ``link``. As long as the session, and loading.

    Raises:
        Unavailable: the server's side is not installed, or does not start.
    """
    seconds = session_seconds(load_session(folder))
    offload: dict[str, Any] = {"server": None}
    with ExitStack() as stack:
        if link.steps:
            if find_spec("os1_cloud") is None or find_spec("grpc_health") is None:
                raise Unavailable("the server's side is not installed; run: pip install 'os1[cloud]'")
            os1_models.path(model)
            serve = [sys.executable, "-m", "os1_cloud", "--listen", "127.0.0.1:0", "--model", model]
            server = stack.enter_context(started(serve))
            way = [sys.executable, "-m", f"os1_edge.bench.{shape}", "--to", server]
            offload["server"] = stack.enter_context(started([*way, "--timeline", link.timeline(seconds)]))
        config = config.model_copy(update={"offload": config.offload.model_copy(update=offload)})
        out = Path(stack.enter_context(TemporaryDirectory())) / "out"
        before = spent()
        report = replay(folder, out, config, key, realtime=True, tell=lambda _: None)
        run = link_run(link.name, report, checks(folder), spent() - before)
        return run.model_copy(update={"shaped_by": shape if link.steps else None})
