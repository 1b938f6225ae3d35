"""The far end on the session's clock, and the canceller's bookkeeping; WebRTC's module is the real one."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable

import numpy as np
import pytest

from os1_edge.events import CHUNK, RATE, AudioFrame, Samples
from os1_edge.framing import frames
from os1_edge.hear import echo
from os1_edge.hear.echo import EchoCanceller, EchoMeter, NoCanceller, canceller, level_db
from os1_edge.hear.farend import KEPT, FarEnd, Resampler

needs_livekit = pytest.mark.skipif(echo.problem() is not None, reason=str(echo.problem()))


def noise(seconds: float, level: float = 0.1, seed: int = 1) -> Samples:
    rng = np.random.default_rng(seed)
    return (level * rng.standard_normal(round(seconds * RATE))).astype(np.float32)


def tone(seconds: float, rate: int, hertz: float = 440.0) -> Samples:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def cleaned(ear: EchoCanceller, microphone: Samples, played: Samples | None = None) -> list[AudioFrame]:
    """``microphone`` through ``ear``, while ``played`` goes out at 16 kHz from sample 0 on."""
    out = []
    for frame in frames([microphone]):
        if played is not None:
            ear.played(played[frame.start : frame.start + CHUNK], RATE, frame.start)
        out.append(ear.clean(frame))
    return out


def joined(out: list[AudioFrame]) -> Samples:
    return np.concatenate([f.samples for f in out])


# The far end.


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("block_ms", [7, 20, 500])
def test_what_is_played_at_any_rate_lies_at_its_time(rate: int, block_ms: int) -> None:
    played, size = tone(1.0, rate), rate * block_ms // 1000
    resampler = Resampler(rate)
    got = np.concatenate([resampler.add(played[i : i + size]) for i in range(0, rate, size)])
    assert RATE - RATE // 500 <= len(got) <= RATE  # under 2 ms are held back
    error = got[100:-100] - tone(1.0, RATE)[100 : len(got) - 100]
    assert level_db(error) < level_db(got) - 50


def test_tones_above_the_microphones_range_do_not_alias() -> None:
    assert level_db(Resampler(22_050).add(tone(1.0, 22_050, 10_000))[200:]) < -60


def test_blocks_lie_where_they_were_played_and_silence_between() -> None:
    far = FarEnd()
    for i in range(10):  # 200 ms from sample 1000 on, the player's clock 2 ms off now and then
        far.add(np.full(441, 0.5, np.float32), 22_050, 1000 + 320 * i + (32 if i % 3 == 1 else 0))
    far.add(np.full(441, 0.25, np.float32), 22_050, 9000)
    far.add(np.zeros(441, np.float32), 22_050, 9320)
    heard = far.read(0, 10_000)
    assert np.allclose(heard[1020:4180], 0.5, atol=0.01)
    assert np.allclose(heard[9020:9300], 0.25, atol=0.01)
    assert not np.any(heard[:1000])
    assert not np.any(heard[4300:9000])
    assert far.sounded_until == 9320
    assert far.read(-50, 100).shape == (100,)


def test_a_known_delay_moves_the_far_end() -> None:
    far = FarEnd(delay=320)
    far.add(np.full(RATE, 0.5, np.float32), RATE, 0)
    assert not np.any(far.read(0, 320))
    assert np.allclose(far.read(400, 1000), 0.5, atol=0.01)


def test_ten_minutes_of_speech_are_held_for_seconds_only() -> None:
    far = FarEnd()
    for i in range(60):
        far.add(np.full(RATE, (i % 9 + 1) / 10, np.float32), RATE, i * 10 * RATE)
    assert not np.any(far.read(0, RATE))
    assert np.allclose(far.read(590 * RATE + 100, RATE - 200), 59 % 9 / 10 + 0.1, atol=0.01)
    assert not np.any(far.read(582 * RATE, 8 * RATE))
    assert far._ring.shape == (KEPT,)
    assert far._stream is not None
    assert len(far._stream._in) < 2000


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_silence(bad: float) -> None:
    far = FarEnd()
    far.add(np.full(RATE, bad, np.float32), RATE, 0)
    far.add(np.zeros(0, np.float32), RATE, RATE)
    assert not np.any(far.read(0, RATE))


# The canceller.


@pytest.fixture
def ear() -> EchoCanceller:
    return EchoCanceller()


@needs_livekit
def test_what_is_played_is_taken_out_and_the_wearer_is_not(ear: EchoCanceller) -> None:
    played = noise(4)
    wearer = np.zeros(4 * RATE, np.float32)
    wearer[3 * RATE :] = tone(1.0, RATE, 700)
    microphone = 0.3 * np.concatenate([np.zeros(800, np.float32), played[:-800]]) + wearer
    heard = joined(cleaned(ear, microphone, played))
    assert level_db(heard[2 * RATE : 3 * RATE]) < level_db(microphone[2 * RATE : 3 * RATE]) - 20
    assert level_db(heard[3 * RATE + 4000 :]) > level_db(microphone[3 * RATE + 4000 :]) - 3


@needs_livekit
def test_the_state_tells_an_echo_from_the_wearer(ear: EchoCanceller) -> None:
    played = noise(3)
    cleaned(ear, 0.3 * played, played)
    assert ear.state.active
    assert ear.state.cancelled
    assert ear.state.kept_db < -20
    assert ear.state.learned_s == pytest.approx(3.0, abs=0.05)
    assert ear.state.reference_db == pytest.approx(level_db(played), abs=1.5)
    ear.relearn()
    ear.clean(AudioFrame(3 * RATE // CHUNK * CHUNK + CHUNK, np.zeros(CHUNK, np.float32)))
    assert ear.state.learned_s < 0.1


@needs_livekit
def test_while_nothing_plays_the_sound_is_untouched_and_on_time(ear: EchoCanceller) -> None:
    microphone = noise(2)
    out = cleaned(ear, microphone)
    assert [f.start for f in out] == [i * CHUNK - ear.delay for i in range(len(out))]
    assert np.array_equal(joined(out)[ear.delay : 2 * RATE], microphone[: 2 * RATE - ear.delay])
    assert not ear.state.active


@needs_livekit
@pytest.mark.parametrize("suppress", [False, True])
def test_processed_sound_is_where_its_index_says(suppress: bool) -> None:
    """A far end so soft that nothing is cancelled: the voice must come out in its place, to half a
    millisecond (the module's filters turn the phase)."""
    ear = EchoCanceller(noise_suppression=suppress)
    microphone = np.zeros(3 * RATE, np.float32)
    for i in range(10):  # syllables of a tone that rises, each unlike the next
        at = RATE // 2 + i * RATE // 5
        microphone[at : at + RATE // 10] = tone(0.1, RATE, 400 + 37 * i) * np.hanning(RATE // 10)
    out = cleaned(ear, microphone, np.full(len(microphone), 2e-4, np.float32))
    assert ear.state.active
    heard = joined(out)[CHUNK * 16 :]
    first = out[16].start
    fits = [float(np.dot(heard[400:39_000], microphone[first + d :][400:39_000])) for d in range(-12, 13)]
    assert abs(int(np.argmax(fits)) - 12) <= 8


@needs_livekit
def test_the_change_between_passing_and_cancelling_makes_no_gap(ear: EchoCanceller) -> None:
    microphone = tone(6.0, RATE, 500)
    out = []
    for frame in frames([microphone]):
        if 2 * RATE <= frame.start < 3 * RATE:
            ear.played(np.full(CHUNK, 2e-4, np.float32), RATE, frame.start)
        out.append(ear.clean(frame))
    heard = joined(out)[ear.delay : 6 * RATE - CHUNK]
    loud = np.sqrt(np.convolve(np.square(heard[1000:-1000]), np.ones(160) / 160, "valid"))
    assert loud.min() > 0.25  # the tone's is 0.35 all along
    assert np.abs(np.diff(heard)).max() < 0.3  # no click


@needs_livekit
def test_a_gap_or_mute_leaves_nothing_of_the_sound_before(ear: EchoCanceller) -> None:
    for working in (False, True):
        for suppress in (False, True):
            ear = EchoCanceller(noise_suppression=suppress)
            played = np.full(2 * RATE, 2e-4, np.float32) if working else None
            cleaned(ear, noise(2, 0.3), played)
            if working:
                ear.played(np.full(RATE, 2e-4, np.float32), RATE, 100 * CHUNK)
            after = ear.clean(AudioFrame(100 * CHUNK, np.zeros(CHUNK, np.float32)))
            assert after.start == 100 * CHUNK - ear.delay
            assert level_db(after.samples) < -60  # it was at -10


@needs_livekit
def test_the_same_sound_is_cancelled_the_same_way_twice() -> None:
    played = noise(1)
    once, again = (joined(cleaned(EchoCanceller(), 0.3 * played, played)) for _ in range(2))
    assert np.array_equal(once, again)


@needs_livekit
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e9])
def test_a_broken_microphone_does_not_break_the_canceller(bad: float, ear: EchoCanceller) -> None:
    played = noise(1)
    out = cleaned(ear, np.full(RATE, bad, np.float32), played)
    assert np.isfinite(joined(out)).all()
    assert np.isfinite(ear.state.kept_db)


@needs_livekit
def test_two_minutes_hold_no_more_than_ten_seconds(ear: EchoCanceller) -> None:
    frame = np.zeros(CHUNK, np.float32)
    for i in range(120 * RATE // CHUNK):
        ear.clean(AudioFrame(i * CHUNK, frame))
        assert len(ear._in) + len(ear._out) + len(ear._late) + len(ear._before) + len(ear._raw) < 4 * CHUNK


# Without one.


@pytest.fixture
def no_livekit(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., object] = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name.startswith("livekit") else real(name, *a)
    )


@pytest.mark.usefixtures("no_livekit")
def test_a_missing_library_is_told_once_and_hearing_works_without(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NoCanceller, match="pip install"):
        EchoCanceller()
    with caplog.at_level(logging.WARNING):
        ear = canceller()
    assert isinstance(ear, EchoMeter)
    (line,) = caplog.messages
    assert "pip install" in line


def test_with_everything_off_nothing_is_loaded() -> None:
    assert isinstance(canceller(echo_cancellation=False), EchoMeter)


def test_the_meter_weighs_the_microphone_against_what_is_played() -> None:
    ear, played = EchoMeter(), noise(1)
    frame = AudioFrame(0, 0.1 * played[:CHUNK])
    assert ear.clean(frame) is frame
    assert not ear.state.active
    ear.played(played, RATE, 0)
    frame = AudioFrame(20 * CHUNK, 0.1 * played[20 * CHUNK : 21 * CHUNK])
    assert ear.clean(frame) is frame
    assert ear.state.active
    assert not ear.state.cancelled
    assert ear.state.clean_db - ear.state.reference_db == pytest.approx(-20, abs=2)
    ear.clean(AudioFrame(3 * RATE, frame.samples))
    assert not ear.state.active
