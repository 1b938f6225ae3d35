"""How many replicas a model should have. Serve calls it in its controller and applies bounds and delays.

Imports nothing of ours: Serve sends this module to the controller as it is.
"""

from __future__ import annotations

from typing import Any

MISSES = 0.2
"""Budgets missed a second before one more replica is asked for: three in fifteen seconds, less is chance."""


def wanted(current: int, ongoing: float, waiting: float, missed: float, target: float) -> float:
    """Replicas for this load.

    Args:
        current: replicas that run.
        ongoing: questions at work, and waiting at Serve's handles.
        waiting: questions that wait in front doors.
        missed: budgets missed a second.
        target: questions that a replica should have.
    """
    found = (ongoing + waiting) / target
    return max(found, current + 1.0) if missed >= MISSES else found


def desired(ctx: Any) -> tuple[float, dict[str, Any]]:
    """The policy that Serve calls (`ray.serve.config.AutoscalingContext`).

    Each front door tells all replicas that it asks the same numbers, so of their reports the greatest counts.
    """
    told: dict[str, dict[Any, float]] = ctx.aggregated_metrics or {}
    waiting = max(told.get("os1_waiting", {}).values(), default=0.0)
    missed = max(told.get("os1_missed", {}).values(), default=0.0)
    target = ctx.config.get_target_ongoing_requests()
    return wanted(ctx.current_num_replicas, ctx.total_num_requests, waiting, missed, target), {}
