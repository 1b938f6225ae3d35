"""How fast the companion answered and where, out of its log of turns."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

TURNS = 2000
"""The newest turns told; the page plots them."""

ROUTES = ("local", "cloud", "rule", "fallback")


def numbers(log_file: Path) -> dict[str, Any]:
    """The newest turns of the log; lines that are none are left out."""
    try:
        lines = log_file.read_text("utf-8", "replace").splitlines()[-TURNS:]
    except FileNotFoundError:
        lines = []
    turns = [turn for line in lines if (turn := _turn(line)) is not None]
    shares = {route: sum(t["route"] == route for t in turns) for route in ROUTES}
    return {"turns": turns, "routes": {k: v for k, v in shares.items() if v}}


def _turn(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        time = datetime.fromisoformat(found["time"]).isoformat()
        route, seconds = found["route"], found.get("voice_to_voice_s")
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if route not in ROUTES:
        return None
    good = isinstance(seconds, int | float) and math.isfinite(seconds)
    return {"time": time, "route": route, "seconds": float(seconds) if good else None}
