"""What is left of battery and coolness, and how much slower the companion therefore goes.

Read from the kernel's files (Linux, Android under Termux reads its own command's answer). The steps are plain
data; deciding is pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

SUPPLIES = Path("/sys/class/power_supply")
ZONES = Path("/sys/class/thermal")

PLAUSIBLE_C = (-20.0, 150.0)
"""Sensors that are not connected tell nonsense."""

HYSTERESIS_PERCENT = 3.0
HYSTERESIS_C = 3.0
"""A step is left only when the battery or the coolness is so far back, so that it does not flap."""


@dataclass(frozen=True, slots=True)
class Power:
    """What the device tells; ``None``: it does not."""

    battery_percent: float | None = None
    charging: bool = False
    hottest_c: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """How much is done from some level of battery or heat on."""

    name: Literal["full", "saving", "low", "critical"]
    below_percent: float
    above_c: float
    frames_slower: float
    """Factor on the time between scene frames; infinite: only what a question or a look asks for."""
    ahead: bool
    """Work ahead of the turn's end: drafts and partial recognition, lost when the wearer goes on."""
    background: bool
    """The model writes on the memory while nobody speaks."""


STEPS = (
    Step("full", 101.0, -273.0, 1.0, ahead=True, background=True),
    Step("saving", 40.0, 42.0, 2.0, ahead=True, background=False),
    Step("low", 20.0, 48.0, 4.0, ahead=False, background=False),
    Step("critical", 8.0, 55.0, inf, ahead=False, background=False),
)
"""42 degrees is where comparable glasses throttle (Project Aria); at 55 a frame is too hot for a face."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A step and why it is taken."""

    step: Step
    reason: str


def pace(power: Power, now: Step = STEPS[0]) -> Pace:
    """The step for ``power``; ``now`` is the one in force, left downwards at once and upwards late."""
    chosen, reason = STEPS[0], "battery and heat are fine"
    for step in STEPS[1:]:
        held = STEPS.index(now) >= STEPS.index(step)
        low, hot = step.below_percent, step.above_c
        if held:
            low, hot = low + HYSTERESIS_PERCENT, hot - HYSTERESIS_C
        if power.battery_percent is not None and not power.charging and power.battery_percent < low:
            chosen, reason = step, f"the battery is at {power.battery_percent:.0f} %"
        if power.hottest_c is not None and power.hottest_c > hot:
            chosen, reason = step, f"the device is at {power.hottest_c:.0f} °C"
    return Pace(chosen, reason)


def read_power(supplies: Path = SUPPLIES, zones: Path = ZONES) -> Power:
    """The state of this machine. Never raises: a file that cannot be read tells nothing."""
    percent, charging = None, False
    for supply in sorted(supplies.glob("*")) if supplies.is_dir() else []:
        kind = _text(supply / "type")
        if kind == "Battery" and _text(supply / "scope") != "Device":  # a mouse's battery is not ours
            level = _number(supply / "capacity")
            if level is not None and 0 <= level <= 100:
                percent = level if percent is None else min(percent, level)
            charging = charging or _text(supply / "status") in ("Charging", "Full")
    heat = [c / 1000 for zone in zones.glob("thermal_zone*") if (c := _number(zone / "temp")) is not None]
    plausible = [c for c in heat if PLAUSIBLE_C[0] < c < PLAUSIBLE_C[1]]
    return Power(percent, charging, max(plausible, default=None))


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None
