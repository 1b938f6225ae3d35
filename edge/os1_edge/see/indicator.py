"""The capture indicator: a light that is on exactly while the camera may take pictures.

Users of other glasses found the light out before the exposure, on after it, or dark by default. Here capture
has no switch of its own: a picture may be taken only in the state that the light has confirmed. The states
are a table; what it does not list is refused. A light that fails, or goes out, ends capture.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class State(Enum):
    """Where the indicator stands."""

    OFF = "off"
    LIT = "lit"
    """The light is on, and pictures may be taken."""
    AWAY = "look away"
    """The wearer asked it to look away: no picture, no light, until they say so."""
    FAILED = "failed"
    """The light could not be switched: no picture until it has been repaired."""


class Ask(Enum):
    """What may be asked of it."""

    START = "start"
    STOP = "stop"
    LOOK_AWAY = "look away"
    LOOK_BACK = "look back"
    REPAIRED = "repaired"


TABLE: dict[tuple[State, Ask], State] = {
    (State.OFF, Ask.START): State.LIT,
    (State.OFF, Ask.STOP): State.OFF,
    (State.OFF, Ask.LOOK_AWAY): State.AWAY,
    (State.LIT, Ask.START): State.LIT,
    (State.LIT, Ask.STOP): State.OFF,
    (State.LIT, Ask.LOOK_AWAY): State.AWAY,
    (State.AWAY, Ask.LOOK_AWAY): State.AWAY,
    (State.AWAY, Ask.STOP): State.AWAY,
    (State.AWAY, Ask.LOOK_BACK): State.OFF,
    (State.FAILED, Ask.STOP): State.FAILED,
    (State.FAILED, Ask.LOOK_AWAY): State.FAILED,
    (State.FAILED, Ask.REPAIRED): State.OFF,
}
"""Every step there is."""


class Light(Protocol):
    """An LED, a GPIO line or a mark on a screen."""

    def set(self, on: bool) -> None:
        """Switches it; raises where that fails."""

    def is_on(self) -> bool:
        """What the light itself says; raises where that cannot be known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether it was done, and why (not)."""

    done: bool
    reason: str


class NoCapture(Exception):
    """A picture was wanted while none may be taken."""


class Indicator:
    """Owns the light; `permit` is asked before every picture."""

    def __init__(self, light: Light) -> None:
        self._light = light
        self._state = State.OFF
        if not self._switch(False):
            self._state = State.FAILED

    @property
    def state(self) -> State:
        return self._state

    def ask(self, what: Ask) -> Answer:
        """Goes one step, or refuses it. The light goes on before capture starts and off after it ended."""
        after = TABLE.get((self._state, what))
        if after is None:
            return Answer(False, f"cannot {what.value} while {self._state.value}")
        # Capture ends first: no picture is permitted while the light changes.
        self._state = State.OFF if self._state is State.LIT else self._state
        if not self._switch(after is State.LIT):
            self._state = State.FAILED
            return Answer(False, "the capture light does not switch; pictures are off until it does")
        self._state = after
        return Answer(True, f"{what.value}: {after.value}")

    def permit(self) -> None:
        """Returns where a picture may be taken now.

        Raises:
            NoCapture: capture is off, or the light is not on although it should be; then it stays off.
        """
        if self._state is not State.LIT:
            raise NoCapture(f"no picture is taken: capture is {self._state.value}")
        if not self._reads(True):
            self._switch(False)
            self._state = State.FAILED
            raise NoCapture("no picture is taken: the capture light went out")

    def _switch(self, on: bool) -> bool:
        try:
            self._light.set(on)
        except Exception:
            return False
        return self._reads(on)

    def _reads(self, on: bool) -> bool:
        try:
            return self._light.is_on() is on
        except Exception:
            return False
