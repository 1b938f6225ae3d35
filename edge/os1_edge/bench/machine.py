"""What a measurement ran on, the state it was in, and the cores that it keeps to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from os1_edge.bench.result import Machine
from os1_edge.device.power import read_power
from os1_edge.replay.measure import machine as known

CPUS = Path("/sys/devices/system/cpu")
LIBRARIES = (
    "llama-cpp-python", "pywhispercpp", "onnxruntime", "piper-tts", "opencv-python-headless", "numpy",
    "grpcio", "sqlcipher3", "sqlite-vec", "ai-edge-litert",
)  # fmt: skip
HOT_C = 70.0
"""Phones and single-board computers begin to throttle not far above it."""


@dataclass(frozen=True, slots=True)
class State:
    """What changes while one measures."""

    load: float
    mhz: float | None
    free_mb: int


def state() -> State:
    """Now."""
    speeds = [float(v) for v in re.findall(r"cpu MHz\s*:\s*([\d.]+)", _read(Path("/proc/cpuinfo")))]
    found = re.search(r"MemAvailable:\s*(\d+)", _read(Path("/proc/meminfo")))
    free = int(found[1]) // 1024 if found else 0
    return State(round(os.getloadavg()[0], 2), round(sum(speeds) / len(speeds), 0) if speeds else None, free)


def chosen_cores(allowed: Sequence[int], siblings: Mapping[int, int], threads: int) -> list[int]:
    """Which cores to keep to: one of each physical core first, the last ones first (the first take the
    machine's interrupts). ``siblings`` gives each core's physical one."""
    first: dict[int, int] = {}
    for core in sorted(allowed, reverse=True):
        first.setdefault(siblings.get(core, core), core)
    own = list(first.values())
    rest = [core for core in sorted(allowed, reverse=True) if core not in own]
    return sorted([*own, *rest][:threads])


def pin(threads: int) -> list[int]:
    """Keeps this process, and what it starts from here on, to so many cores; empty where that cannot be.
    Call it before a native library is loaded: threads that run already keep theirs."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    allowed = sorted(os.sched_getaffinity(0))
    siblings = {core: _physical(core) for core in allowed}
    cores = chosen_cores(allowed, siblings, threads)
    with suppress(OSError):
        os.sched_setaffinity(0, cores)
        return cores
    return []


def described(before: State, after: State, pinned: list[int]) -> Machine:
    """The machine, with its state before and after."""
    static, power = known(), read_power()
    governor = _read(CPUS / "cpu0/cpufreq/scaling_governor").strip() or None
    return Machine(
        cpu=str(static["cpu"]),
        cores=len(pinned) or int(static["cores"]),
        pinned=pinned,
        memory_mb=int(static["memory_mb"]),
        free_mb=before.free_mb,
        system=str(static["system"]),
        python=str(static["python"]),
        governor=governor,
        load_before=before.load,
        load_after=after.load,
        hottest_c=power.hottest_c,
        battery_percent=power.battery_percent,
        charging=power.charging,
        mhz_before=before.mhz,
        mhz_after=after.mhz,
        versions=_versions(),
    )


def warnings(machine: Machine) -> list[str]:
    """Why numbers from this machine are to be taken with care; empty: nothing stands against them."""
    out = []
    if machine.load_before > 0.5:
        out.append(f"something else was at work before it began (load {machine.load_before:.1f})")
    if machine.governor == "powersave":
        out.append('the governor is "powersave": the clock follows the work late')
    if machine.hottest_c is not None and machine.hottest_c >= HOT_C:
        out.append(f"{machine.hottest_c:.0f} degrees: it may have been slowed down")
    if machine.mhz_before and machine.mhz_after and machine.mhz_after < 0.85 * machine.mhz_before:
        out.append(f"the clock fell from {machine.mhz_before:.0f} to {machine.mhz_after:.0f} MHz")
    if machine.battery_percent is not None and not machine.charging:
        out.append(f"on battery ({machine.battery_percent:.0f} %)")
    return out


def _physical(core: int) -> int:
    told = _read(CPUS / f"cpu{core}/topology/thread_siblings_list")
    found = re.match(r"\d+", told)
    return int(found[0]) if found else core


def _versions() -> dict[str, str]:
    out = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            out[name] = version(name)
    return out


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
