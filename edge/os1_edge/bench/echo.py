"""How well OS-1 does not hear itself, and still hears the wearer: replies played into simulated rooms.

    python -m os1_edge.bench.echo --json

Real replies of the project's voice come back through small rooms (``room.py``), at -6 to -20 dB and 5 to 250
ms late, out of an overdriven little loudspeaker, into a noisy microphone. A wearer (the voice at another
pitch, or recordings given by ``--wearer``) speaks over them. What the runtime uses decides: canceller,
Silero, ``interrupt.Onset``, ``TurnDetector``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import click
import numpy as np
import soxr

import os1_models
from os1_edge.bench.room import Room, loudness
from os1_edge.device.sound import read
from os1_edge.events import CHUNK, RATE, AudioFrame, Samples, SpeechStarted
from os1_edge.framing import frames
from os1_edge.hear.capture import Capture
from os1_edge.hear.echo import EchoCanceller, EchoMeter, EchoState, NoCanceller
from os1_edge.hear.interrupt import Onset
from os1_edge.hear.turn import TurnDetector
from os1_edge.hear.vad import SileroVad
from os1_edge.speak.tts import Piper

REPLIES = (
    "Your keys are on the kitchen table, next to the blue mug.",
    "Doctor Lee moved the meeting to Friday at ten in the old library. Shall I remind you an hour before?",
    "It is raining outside, so take the umbrella from the hall. The bus leaves in twelve minutes.",
    "You told me last week that Anna likes lilies better than roses. The shop at the corner opens at nine.",
    "No, I don't know that.",
    "The soup needs twenty more minutes. After that, let it rest, add the parsley, and taste it first.",
)
WEARER_SAYS = (
    "Wait, what about Saturday?",
    "Stop.",
    "Tell me where I left my glasses.",
    "No, call Tom instead.",
)
ROOMS = (
    Room(5, 0.2, -6, drive=2, seed=100),
    Room(40, 0.35, -12, drive=4, seed=101),
    Room(250, 0.5, -20, drive=4, seed=102),
    Room(120, 0.5, -6, drive=4, seed=103),
    Room(5, 0.5, -12, drive=2, seed=104),
    Room(250, 0.3, -6, drive=2, seed=105),
)
OVER_DB = (0.0, 5.0, 10.0, 15.0)
"""How much louder than the echo the wearer is."""
PLAYED_AT = 0.5
"""Loudest sample of what is played."""
LATEST_S = 1.0
"""Speech that nobody noticed for 1 s is missed."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One frame as it came out of the capture stage."""

    start: int
    probability: float
    echo: EchoState


def play_into(
    capture: Capture, vad: SileroVad, microphone: Samples, played: Samples, rate: int, at: int = 0
) -> list[Moment]:
    """Feeds ``microphone`` (16 kHz) frame by frame, while ``played`` goes out in blocks of 20 ms from sample
    ``at`` on, each handed over just before the frame in which it begins to sound."""
    vad.reset()
    size, given = rate // 50, 0
    moments = []
    for frame in frames([microphone]):
        while given < len(played) and at + given * RATE // rate < frame.start + CHUNK:
            capture.played(played[given : given + size], rate, at + given * RATE // rate)
            given += size
        for heard in capture.step(frame):
            moments.append(Moment(heard.start, vad.probability(heard.samples), capture.echo))
    return moments


def turns_started(moments: Sequence[Moment], *, guarded: bool) -> list[int]:
    """Sample indices, one after the frame, at which the turn detector took what it heard for a turn's start;
    ``guarded``: only what ``Onset`` lets through."""
    detector, onset, starts = TurnDetector(), Onset(), []
    for m in moments:
        p = onset.step(CHUNK, m.probability, m.echo).probability if guarded else m.probability
        event = detector.step(AudioFrame(m.start, np.zeros(CHUNK, np.float32)), p)
        if isinstance(event, SpeechStarted):
            starts.append(m.start + CHUNK)
    return starts


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured."""

    minutes_played: float
    wakes_per_minute: dict[str, float]
    """Turns that began by own speech alone: without anything, with the guard, the canceller, and both."""
    erle_db: float
    """Median over frames with an echo above -45 dB: how much of it is gone."""
    wearer_heard: dict[str, float]
    """Share of the wearer's sentences that interrupted, by dB over the echo."""
    wearer_heard_s: dict[str, tuple[float, float]]
    """Median and worst time from first sound to decision."""
    share_of_core: float
    """CPU time of the stage while something plays, per second of sound."""
    share_idle: float
    """The same while nothing does."""


def measure(replies: Sequence[Samples], rate: int, wearer: Sequence[Samples], vad: SileroVad) -> Result:
    """Plays ``replies`` (at ``rate``) into all rooms, and has ``wearer`` (16 kHz) speak over them.

    Raises:
        NoCanceller: there is nothing to measure.
    """
    wakes = dict.fromkeys(("plain", "guard", "canceller", "both"), 0)
    erle: list[float] = []
    cpu = seconds = 0.0
    for room in ROOMS:
        played = np.concatenate([np.pad(PLAYED_AT * r, (0, rate)) for r in replies])
        far = np.asarray(soxr.resample(played, rate, RATE), np.float32)
        microphone = room.echo(far) + room.noise(len(far))
        seconds += len(far) / RATE
        bare = play_into(Capture(echo=EchoMeter()), vad, microphone, played, rate)
        wakes["plain"] += len(turns_started(bare, guarded=False))
        wakes["guard"] += len(turns_started(bare, guarded=True))
        moments = play_into(Capture(echo=EchoCanceller()), vad, microphone, played, rate)
        wakes["canceller"] += len(turns_started(moments, guarded=False))
        wakes["both"] += len(turns_started(moments, guarded=True))
        erle += [-m.echo.kept_db for m in moments if m.echo.mic_db > -45]
        cpu += _cpu_s(microphone, played, rate)
    heard, times = _wearer_over(replies, rate, wearer, vad)
    quiet = np.zeros(60 * RATE, np.float32)
    return Result(
        round(seconds / 60, 2),
        {name: round(n / (seconds / 60), 2) for name, n in wakes.items()},
        round(float(np.median(erle)), 1),
        heard,
        times,
        round(cpu / seconds, 4),
        round(_cpu_s(quiet, quiet[:0], RATE) / 60, 5),
    )


def _cpu_s(microphone: Samples, played: Samples, rate: int) -> float:
    """CPU seconds of the capture stage alone."""
    capture, size = Capture(echo=EchoCanceller()), rate // 50
    began = process_time()
    given = 0
    for frame in frames([microphone]):
        while given < len(played) and given * RATE // rate < frame.start + CHUNK:
            capture.played(played[given : given + size], rate, given * RATE // rate)
            given += size
        capture.step(frame)
    return process_time() - began


def _wearer_over(
    replies: Sequence[Samples], rate: int, wearer: Sequence[Samples], vad: SileroVad
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """(share heard, (median, worst) seconds) by level; the wearer speaks 1 s into a room's second reply."""
    longest = sorted(replies, key=len)[-2:]
    played = np.concatenate([np.pad(PLAYED_AT * r, (0, rate)) for r in longest])
    far = np.asarray(soxr.resample(played, rate, RATE), np.float32)
    at = (len(longest[0]) + rate) * RATE // rate + RATE
    heard: dict[str, float] = {}
    times: dict[str, tuple[float, float]] = {}
    for over in OVER_DB:
        late = []
        for i, speech in enumerate(wearer):
            room = ROOMS[i % len(ROOMS)]
            echo = room.echo(far)
            sound = speech[: 3 * RATE] * loudness(echo) * 10 ** (over / 20) / loudness(speech)
            microphone = echo + room.noise(len(far))
            microphone[at : at + len(sound)] += sound[: len(microphone) - at]
            ear = EchoCanceller()
            moments = play_into(Capture(echo=ear), vad, np.clip(microphone, -1, 1), played, rate)
            began = at + int(np.argmax(np.abs(sound) > 0.1 * np.abs(sound).max()))
            starts = [s + ear.delay - began for s in turns_started(moments, guarded=True) if s > at]
            late += [starts[0] / RATE if starts and starts[0] <= LATEST_S * RATE else None]
        found = [t for t in late if t is not None]
        heard[f"{over:+.0f} dB"] = round(len(found) / len(late), 3)
        times[f"{over:+.0f} dB"] = (
            (round(float(np.median(found)), 3), round(max(found), 3)) if found else (0, 0)
        )
    return heard, times


def pitched(voice: Piper, text: str, by: float) -> Samples:
    """``text`` at another pitch and pace, as another speaker; 16 kHz."""
    return np.asarray(soxr.resample(voice.say(text), voice.rate * by, RATE), np.float32)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.option("--wearer", type=click.Path(path_type=Path), multiple=True, help="Recordings of speech to use.")
def main(as_json: bool, wearer: tuple[Path, ...]) -> None:
    """Echo: wake-ups by own speech, what is left of it, and the wearer heard over it."""
    try:
        voice = Piper(os1_models.path("piper-joe"))
        vad = SileroVad(os1_models.path("silero-vad"))
        speech = [read(p) for p in wearer]
        speech = speech or [pitched(voice, text, by) for text in WEARER_SAYS for by in (0.85, 1.2)]
        result = measure([voice.say(text) for text in REPLIES], voice.rate, speech, vad)
    except (NoCanceller, os1_models.ModelError) as e:
        raise click.ClickException(str(e)) from None
    if as_json:
        click.echo(json.dumps(asdict(result)))
        return
    for name, value in asdict(result).items():
        click.echo(f"{name:18} {value}")


if __name__ == "__main__":
    main()
