"""The programs that carry sound between this process and the machine's microphone and speaker.

A program rather than a library in the process (``docs/decisions/0012``): a device that vanishes ends the
program, not us; the next start sees the devices that there are then (PortAudio's list is frozen at its first
look: python-sounddevice#125); and Termux has nothing else.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from os1_edge.events import RATE

System = Literal["pulse", "alsa"]


class NoSound(OSError):
    """No program here carries sound; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command line that gives or takes sound on its standard output or input: mono, 16 bit."""

    system: System | Literal["own"]
    argv: tuple[str, ...]
    rate: int
    """Samples a second of raw sound; a WAV header in front of it overrules this."""
    named: str = ""
    """The sound server's name of the device that was asked for; none: its default."""


_TOOLS: dict[System, tuple[str, str]] = {"pulse": ("parec", "pacat"), "alsa": ("arecord", "aplay")}
"""Program that records and program that plays; PipeWire answers to both systems."""


def recorder(source: str = "auto", which: Callable[[str], str | None] = shutil.which) -> Program:
    """The program for the microphone.

    Args:
        source: "auto", "pulse" or "alsa" for the system's default; "pulse:NAME" or "alsa:NAME" for one of its
            microphones; anything else is a command line of the wearer's own that writes WAV, or raw 16 kHz,
            mono, 16 bit, to its standard output.
        which: finds a program.

    Raises:
        NoSound: there is none.
    """
    found = _system(source, 0, which)
    if found is None:
        return Program("own", _words(source, which), RATE)
    system, device = found
    if system == "pulse":
        argv = ["parec", "--raw", "--format=s16le", "--channels=1", f"--rate={RATE}", "--latency-msec=32"]
        argv += ["--client-name=OS-1", *([f"--device={device}"] if device else [])]
        return Program(system, tuple(argv), RATE, device)
    argv = ["arecord", "-q", "-t", "wav", "-f", "S16_LE", "-c", "1", "-r", str(RATE)]
    return Program(system, (*argv, "--buffer-time=200000", "-D", device or "default"), RATE)


def player(rate: int, sink: str = "auto", which: Callable[[str], str | None] = shutil.which) -> Program:
    """The program for the speaker, which takes raw sound of ``rate``; ``sink`` as in ``recorder``.

    ``{rate}`` in a command line of the wearer's own stands for the rate.
    """
    found = _system(sink, 1, which)
    if found is None:
        return Program("own", _words(sink.replace("{rate}", str(rate)), which), rate)
    system, device = found
    if system == "pulse":
        argv = ["pacat", "--playback", "--raw", "--format=s16le", "--channels=1", f"--rate={rate}"]
        argv += ["--latency-msec=60", "--client-name=OS-1", *([f"--device={device}"] if device else [])]
        return Program(system, tuple(argv), rate)
    argv = ["aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", str(rate)]
    return Program(system, (*argv, "--buffer-time=80000", "-D", device or "default"), rate)


def _system(named: str, way: int, which: Callable[[str], str | None]) -> tuple[System, str] | None:
    """The sound system and the device's name in it; ``None``: a command line."""
    head, _, device = named.partition(":")
    wanted = [name for name in _TOOLS if head == name or named == "auto"]
    if not wanted:
        return None
    for name in wanted:
        if which(_TOOLS[name][way]):
            return name, device
    tools = " or ".join(_TOOLS[name][way] for name in wanted)
    raise NoSound(f"{tools} is not here; install alsa-utils or pulseaudio-utils")


def _words(command: str, which: Callable[[str], str | None]) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as e:
        raise NoSound(f"{command}: {e}") from None
    if not words or which(words[0]) is None:
        raise NoSound(f"{words[0] if words else 'an empty command'} cannot be run")
    return tuple(words)
