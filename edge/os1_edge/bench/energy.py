"""What a machine tells of the energy that it used: RAPL (``/sys/class/powercap``), or its battery."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

POWERCAP = Path("/sys/class/powercap")
SUPPLIES = Path("/sys/class/power_supply")


@dataclass(frozen=True, slots=True)
class Meter:
    """A counter; the difference of two is what was used between them."""

    joules: float | None
    """None: the machine does not tell."""
    by: Literal["rapl", "battery"] | None
    wraps_at: float = 0.0
    """Joules at which the counter begins anew; 0: it does not."""

    def __sub__(self, before: Meter) -> Meter:
        if self.joules is None or before.joules is None or self.by != before.by:
            return Meter(None, None)
        used = self.joules - before.joules
        if used < 0:
            used += self.wraps_at
        return Meter(round(used, 1), self.by) if used >= 0 else Meter(None, None)


def spent(powercap: Path = POWERCAP, supplies: Path = SUPPLIES) -> Meter:
    """The counter now. RAPL counts the packages; a battery tells what is left in it, so that its counter is
    what is gone. While it charges, it tells nothing."""
    packages = [zone for zone in sorted(powercap.glob("*-rapl:*")) if zone.name.count(":") == 1]
    counted = [joules for zone in packages if (joules := _number(zone / "energy_uj")) is not None]
    if counted:
        wraps = sum(_number(zone / "max_energy_range_uj") or 0.0 for zone in packages)
        return Meter(sum(counted) / 1e6, "rapl", wraps / 1e6)
    for supply in sorted(supplies.glob("*")):
        left = _number(supply / "energy_now")
        if left is not None and _text(supply / "status") == "Discharging":
            return Meter(-left * 3600 / 1e6, "battery")
    return Meter(None, None)


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""
