"""Where a job runs, and why; the budgeted router grows here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Decision:
    """A route with its reason in words."""

    route: Literal["local", "cloud"]
    reason: str
