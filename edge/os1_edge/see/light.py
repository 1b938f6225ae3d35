"""Capture lights: an LED of the glasses, or a mark on a screen where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

OFF = "0"


class Led:
    """An LED of the Linux kernel, as ``/sys/class/leds/NAME``. Every method raises `OSError` where it cannot
    be switched or read."""

    def __init__(self, folder: Path) -> None:
        self._brightness = folder / "brightness"
        self._most = folder / "max_brightness"

    def set(self, on: bool) -> None:
        """See ``indicator.Light``."""
        most = self._most.read_text("ascii").strip() if self._most.exists() else "1"
        self._brightness.write_text(most if on else OFF, "ascii")

    def is_on(self) -> bool:
        """What the kernel says that the LED shows."""
        return self._brightness.read_text("ascii").strip() != OFF


class ScreenLight:
    """A mark that a page or a terminal shows; it is as on as it was last shown."""

    def __init__(self, show: Callable[[bool], None] = lambda _on: None) -> None:
        """``show`` raises where the mark cannot be shown."""
        self._show = show
        self._on = False

    def set(self, on: bool) -> None:
        """See ``indicator.Light``."""
        if on is not self._on:
            self._show(on)
        self._on = on

    def is_on(self) -> bool:
        """See ``indicator.Light``."""
        return self._on
