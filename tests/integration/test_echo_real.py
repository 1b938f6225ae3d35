"""Replies of the real voice come back from rooms: OS-1 does not hear itself, and hears the wearer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soxr

from os1_edge.bench.echo import PLAYED_AT, Moment, pitched, play_into, turns_started
from os1_edge.bench.room import Room, loudness
from os1_edge.events import RATE, Samples
from os1_edge.hear import echo
from os1_edge.hear.capture import Capture
from os1_edge.hear.echo import EchoCanceller, EchoMeter
from os1_edge.hear.vad import SileroVad
from os1_edge.speak.tts import Piper

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(echo.problem() is not None, reason=str(echo.problem())),
]

FIRST = "You told me last week that Anna likes lilies better than roses."
SECOND = "It is raining outside, so take the umbrella from the hall. The bus leaves in twelve minutes."


@pytest.fixture(scope="module")
def voice(pulled: Callable[[str], Path]) -> Piper:
    return Piper(pulled("piper-joe"))


@pytest.fixture(scope="module")
def vad(pulled: Callable[[str], Path]) -> SileroVad:
    return SileroVad(pulled("silero-vad"))


@pytest.fixture(scope="module")
def replies(voice: Piper) -> Samples:
    """Two replies, with a second of quiet after each; at the voice's rate."""
    return np.concatenate([np.pad(PLAYED_AT * voice.say(text), (0, voice.rate)) for text in (FIRST, SECOND)])


class Ears:
    """The capture stage and the detector in a room in which ``played`` sounds."""

    def __init__(self, vad: SileroVad, played: Samples, rate: int) -> None:
        self._vad, self._played, self._rate = vad, played, rate
        self.far = np.asarray(soxr.resample(played, rate, RATE), np.float32)

    def hear(
        self,
        room: Room,
        wearer: Samples | None = None,
        *,
        over_db: float = 0.0,
        at: int = 0,
        cancel: bool = True,
    ) -> list[Moment]:
        """What is heard while the wearer speaks at sample ``at``, ``over_db`` louder than the echo."""
        come_back = room.echo(self.far)
        microphone = come_back + room.noise(len(self.far))
        if wearer is not None:
            loud = wearer * loudness(come_back) * 10 ** (over_db / 20) / loudness(wearer)
            microphone[at : at + len(loud)] += loud[: len(microphone) - at]
        capture = Capture(echo=EchoCanceller() if cancel else EchoMeter())
        return play_into(capture, self._vad, np.clip(microphone, -1, 1), self._played, self._rate)


@pytest.fixture(scope="module")
def ears(vad: SileroVad, replies: Samples, voice: Piper) -> Ears:
    return Ears(vad, replies, voice.rate)


ROOMS = [
    Room(5, 0.2, -6, seed=11),
    Room(40, 0.35, -12, drive=4, seed=12),
    Room(250, 0.5, -20, drive=4, seed=13),
    Room(250, 0.35, -6, drive=4, seed=119),
]


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_own_tts_fed_back_does_not_interrupt_itself(room: Room, ears: Ears) -> None:
    """From the first reply on, before the canceller knows the room (pipecat#188, #1626)."""
    moments = ears.hear(room)
    assert turns_started(moments, guarded=True) == []
    late = [m for m in moments if m.echo.learned_s > 2 and m.echo.mic_db > -45]
    assert np.median([m.echo.kept_db for m in late]) < -20


def test_the_first_second_that_the_canceller_ever_hears_interrupts_nothing(
    pulled: Callable[[str], Path], vad: SileroVad
) -> None:
    """It lets this reply through until it has found the room; the guard does not."""
    voice = Piper(pulled("piper-joe"))  # anew: what a voice says depends on what it said before
    soup = "The soup needs twenty more minutes. After that, let it rest, and add the parsley."
    ears = Ears(vad, np.pad(0.9 * voice.say(soup), (0, voice.rate)), voice.rate)
    assert turns_started(ears.hear(Room(250, 0.35, -12, drive=4, seed=131)), guarded=True) == []


@pytest.fixture(scope="module")
def uncancelled(ears: Ears) -> list[list[Moment]]:
    """What is heard in each room without a canceller."""
    return [ears.hear(room, cancel=False) for room in ROOMS]


def test_without_any_of_it_the_first_word_of_a_reply_interrupts_it(uncancelled: list[list[Moment]]) -> None:
    """What the tests here would not see if the rooms were too kind."""
    assert all(turns_started(moments, guarded=False) for moments in uncancelled)


def test_without_a_canceller_the_guard_still_keeps_own_speech_out(uncancelled: list[list[Moment]]) -> None:
    assert not any(turns_started(moments, guarded=True) for moments in uncancelled)


@pytest.mark.parametrize(("over_db", "rooms"), [(5.0, 3), (10.0, 4)])
def test_the_wearer_who_speaks_over_a_reply_is_heard(
    over_db: float, rooms: int, ears: Ears, voice: Piper
) -> None:
    """Within the first two words."""
    wearer = pitched(voice, "Wait, what about Saturday?", 1.2)
    begins = len(ears.far) // 2 + RATE // 2
    first = begins + int(np.argmax(np.abs(wearer) > 0.1 * np.abs(wearer).max()))
    starts = [turns_started(ears.hear(r, wearer, over_db=over_db, at=begins), guarded=True) for r in ROOMS]
    assert sum(bool(s) and first < s[0] <= first + 0.4 * RATE for s in starts) >= rooms


def test_stop_said_over_a_reply_is_heard(ears: Ears, voice: Piper) -> None:
    stop = pitched(voice, "Stop.", 1.2)
    begins = len(ears.far) // 2 + RATE // 2
    for room in ROOMS[:2]:
        (start, *_) = turns_started(ears.hear(room, stop, over_db=10, at=begins), guarded=True)
        assert begins < start < begins + len(stop)


def test_a_wearer_louder_than_what_is_played_interrupts_even_before_the_room_is_learned(
    ears: Ears, voice: Piper
) -> None:
    wearer = pitched(voice, "Wait, what about Saturday?", 1.2)
    moments = ears.hear(ROOMS[0], wearer, over_db=12, at=RATE // 2)
    (start, *_) = turns_started(moments, guarded=True)
    assert start < RATE // 2 + len(wearer)


def test_what_the_wearer_says_right_after_a_reply_is_not_touched(voice: Piper, vad: SileroVad) -> None:
    wearer = pitched(voice, "Tell me where I left my glasses.", 1.2)
    played = PLAYED_AT * voice.say(FIRST)
    at = len(played) * RATE // voice.rate + RATE * 6 // 10
    room = ROOMS[1]
    far = np.asarray(soxr.resample(played, voice.rate, RATE), np.float32)
    far = np.pad(far, (0, max(0, at + len(wearer) + RATE - len(far))))
    microphone = room.echo(far) + room.noise(len(far))
    microphone[at : at + len(wearer)] += 0.3 * wearer
    moments = play_into(Capture(echo=EchoCanceller()), vad, microphone, played, voice.rate)
    spoken = [m for m in moments if m.start >= at and m.echo.mic_db > -35]
    assert spoken
    assert np.median([m.echo.kept_db for m in spoken]) > -2


def test_a_chime_is_not_heard(vad: SileroVad) -> None:
    """linux-voice-assistant#332: it was transcribed as "Uh"."""
    t = np.arange(int(0.4 * RATE)) / RATE
    chime = (0.3 * np.sin(2 * np.pi * (660 + 220 * (t > 0.2)) * t) * np.hanning(len(t))).astype(np.float32)
    for room in ROOMS[1:3]:
        for ear in (EchoCanceller(), None):
            capture = Capture(echo=ear)
            far = np.concatenate([np.zeros(RATE, np.float32), chime, np.zeros(2 * RATE, np.float32)])
            capture.chime(chime, RATE, RATE)
            heard = play_into(capture, vad, room.echo(far) + room.noise(len(far)), chime[:0], RATE)
            assert turns_started(heard, guarded=False) == []
