"""What front doors cannot serve in time, told to replicas with each question, for Serve's autoscaler to read
there.

The queue that matters is a front door's (deadlines are known there), and Serve sees only its own, which is
kept short.
"""

from __future__ import annotations

from dataclasses import dataclass

FRESH_S = 15.0
"""A front door that has not asked for so long says nothing about now."""
FRONTS = 64
"""Front doors remembered; beyond them the one that was heard of longest ago is forgotten."""


@dataclass(frozen=True, slots=True)
class _Told:
    waiting: int
    missed: int
    """Of all time."""
    at: float


class Pressures:
    """What a replica was told last by each front door. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}
        self._read: dict[str, int] = {}
        self._read_at: float | None = None

    def tell(self, pressure: tuple[str, int, int], now: float) -> None:
        """A front door's name, its waiting questions, and those that missed their budget so far."""
        name, waiting, missed = pressure
        self._told.pop(name, None)
        if len(self._told) >= FRONTS:
            gone = next(iter(self._told))
            del self._told[gone]
            self._read.pop(gone, None)
        self._told[name] = _Told(waiting, missed, now)
        self._read.setdefault(name, missed)

    def read(self, now: float) -> dict[str, float]:
        """Questions that wait in front doors, and budgets missed a second since the last reading."""
        fresh = {name: told for name, told in self._told.items() if now - told.at <= FRESH_S}
        missed = sum(max(0, told.missed - self._read[name]) for name, told in fresh.items())
        self._read.update((name, told.missed) for name, told in fresh.items())
        took, self._read_at = now - (now if self._read_at is None else self._read_at), now
        waiting = float(sum(told.waiting for told in fresh.values()))
        return {"os1_waiting": waiting, "os1_missed": missed / took if took > 0 else 0.0}
