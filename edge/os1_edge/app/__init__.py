"""Wires a Config into a running system: the one room that knows every other.

Only what runs the whole (replay, cli) imports it.
"""

from os1_edge.app.front_end import front_end
from os1_edge.app.gazing import Followed
from os1_edge.app.looking import FRAMES_AHEAD
from os1_edge.app.os1 import Os1
from os1_edge.app.talk import TURNS_WAITING
from os1_edge.app.trace import Observer, TurnTrace
from os1_edge.app.views import VIEWS_KEPT

__all__ = [
    "FRAMES_AHEAD",
    "TURNS_WAITING",
    "VIEWS_KEPT",
    "Followed",
    "Observer",
    "Os1",
    "TurnTrace",
    "front_end",
]
