"""Where a job runs, and why. Pure; the budgeted router grows here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Decision:
    """A route with its reason in words."""

    route: Literal["local", "cloud"]
    reason: str


def decide(server: str | None) -> Decision:
    """Chooses for one job. ``server`` is the configured offload server's address."""
    if server is None:
        return Decision("local", "no offload server is configured")
    return Decision("local", "this release has no route to an offload server yet")
