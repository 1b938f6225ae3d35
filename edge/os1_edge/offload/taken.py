"""One decision of the router and what came of it: values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Taken:
    """One decision and what came of it. Seconds from the question's being ready."""

    at: str
    """Date and time (ISO 8601)."""
    task: str
    link: str
    route: str
    """What was decided."""
    why: str
    within_s: float
    """The budget for the first text."""
    local_s: float | None = None
    """Within this the device's first text was expected (p95); None: it cannot do that."""
    cloud_s: float | None = None
    """The same of the server."""
    picture: str = ""
    """How pictures left; "" where none did."""
    answered: str = ""
    """Which side: "local", "cloud"; "both": the device went on where the server broke off; "": none."""
    first_s: float | None = None
    both: bool = False
    """Both sides were at work at once."""
    outcome: str = ""
    """What else happened, in words."""
    regret_s: float | None = None
    """By how much the other side would have been sooner, where that is known."""
