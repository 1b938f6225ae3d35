"""The speaker in one room with the microphone, on sounds made here: no weights, only the canceller is real.

Speech is a hum with syllables; the detector takes for speech what is loud. With the real voice and the real
detector: ``tests/integration/test_echo_real.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from os1_edge.bench.echo import Moment, play_into, turns_started
from os1_edge.bench.room import Room
from os1_edge.events import CHUNK, RATE, Samples
from os1_edge.hear import echo
from os1_edge.hear.capture import Capture
from os1_edge.hear.echo import EchoCanceller, EchoMeter, level_db
from os1_edge.hear.interrupt import Onset, judge

pytestmark = pytest.mark.skipif(echo.problem() is not None, reason=str(echo.problem()))


class Loud:
    """Whoever is loud speaks."""

    def reset(self) -> None: ...

    def probability(self, chunk: Samples) -> float:
        return 0.95 if level_db(chunk) > -42 else 0.05


def hum(seconds: float, hertz: float, seed: int) -> Samples:
    """Syllables of a voice: harmonics and breath, four a second."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    pitch = 2 * np.pi * np.cumsum(hertz * (1 + 0.1 * np.sin(2 * np.pi * 0.7 * t))) / RATE
    voice = sum(np.sin(k * pitch) / k for k in range(1, 20)) + 0.5 * rng.standard_normal(len(t))
    syllables = np.clip(np.sin(2 * np.pi * 4 * t) + 0.4, 0, 1)
    return np.asarray(0.12 * voice * syllables, np.float32)


@dataclass
class Conversation:
    """A reply of five seconds from second 0.5 on, in ``room``; the wearer may speak over it."""

    room: Room
    cancel: bool = True
    wearer_at_s: float | None = None
    wearer_s: float = 0.5
    wearer_db: float = -14.0

    def moments(self) -> list[Moment]:
        reply = np.pad(hum(5.0, 110, 1), (RATE // 2, RATE))
        microphone = self.room.echo(reply) + self.room.noise(len(reply))
        if self.wearer_at_s is not None:
            voice = hum(self.wearer_s, 190, 2)
            at = round(self.wearer_at_s * RATE)
            microphone[at : at + len(voice)] += voice * 10 ** ((self.wearer_db - level_db(voice)) / 20)
        ear = EchoCanceller() if self.cancel else EchoMeter()
        return play_into(Capture(echo=ear), Loud(), np.clip(microphone, -1, 1), reply, RATE)  # type: ignore[arg-type]

    def starts_s(self, *, guarded: bool = True) -> list[float]:
        return [at / RATE for at in turns_started(self.moments(), guarded=guarded)]


@pytest.mark.parametrize("echo_db", [-6.0, -12.0, -20.0])
@pytest.mark.parametrize("delay_ms", [5.0, 100.0, 250.0])
def test_own_tts_fed_back_does_not_interrupt_itself(echo_db: float, delay_ms: float) -> None:
    room = Room(delay_ms, 0.35, echo_db, seed=5)
    assert Conversation(room).starts_s() == []
    if echo_db > -20:
        assert Conversation(room, cancel=False).starts_s(guarded=False)


@pytest.mark.parametrize("cancel", [True, False])
@pytest.mark.parametrize("wearer_at_s", [1.0, 4.0])
def test_the_wearer_interrupts_from_the_first_second_on_when_loud(cancel: bool, wearer_at_s: float) -> None:
    room = Room(40, 0.3, -12, seed=5)
    (start, *_) = Conversation(room, cancel, wearer_at_s, wearer_db=-10).starts_s()
    assert wearer_at_s < start < wearer_at_s + 0.3


def test_a_wearer_as_soft_as_the_echo_interrupts_once_the_room_is_learned() -> None:
    room = Room(40, 0.3, -12, seed=5)
    assert Conversation(room, cancel=False, wearer_at_s=4.0, wearer_db=-26).starts_s() == []
    (start,) = Conversation(room, wearer_at_s=4.0, wearer_db=-26).starts_s()
    assert 4.0 < start < 4.5


def test_stop_of_250_ms_is_heard_and_ends_the_reply() -> None:
    moments = Conversation(Room(40, 0.3, -12, seed=5), wearer_at_s=4.0, wearer_s=0.25).moments()
    onset = Onset()
    paused = [m.start + CHUNK for m in moments if onset.step(CHUNK, m.probability, m.echo).kind == "pause"]
    assert 4.0 * RATE < paused[0] <= 4.2 * RATE
    assert judge("Stop.", 0.25, "The meeting is on Friday.").kind == "stop"


def test_the_second_reply_is_cancelled_from_its_first_word() -> None:
    """What was learned in the first reply is kept through the quiet between."""
    room = Room(120, 0.3, -6, seed=5)
    one = np.pad(hum(3.0, 110, 1), (RATE // 2, 5 * RATE))
    both = np.concatenate([one, one])
    moments = play_into(
        Capture(echo=EchoCanceller()),
        Loud(),  # type: ignore[arg-type]
        room.echo(both) + room.noise(len(both)),
        both,
        RATE,
    )
    second = [m for m in moments if len(one) + RATE * 3 // 4 < m.start < len(one) + RATE * 3 // 2]
    loud = [m.echo.kept_db for m in second if m.echo.mic_db > -40]
    assert np.median(loud) < -15
    quiet = [m for m in moments if 5 * RATE < m.start < len(one)]
    assert not any(m.echo.active for m in quiet)
