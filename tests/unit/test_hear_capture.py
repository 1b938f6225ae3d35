"""What passes the capture stage, as timelines of buttons, wake words and mute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.events import CHUNK, RATE, AudioFrame
from os1_edge.hear import echo
from os1_edge.hear.capture import Capture, CaptureRules, GateChange
from os1_edge.hear.echo import EchoCanceller

FRAMES_PER_S = RATE / CHUNK
LIVEKIT = pytest.mark.skipif(echo.problem() is not None, reason=str(echo.problem()))


@dataclass
class Spotter:
    """Notices the wake word in given frames."""

    at: tuple[int, ...] = ()
    heard_frames: int = 0
    resets: int = 0

    def heard(self, frame: AudioFrame) -> bool:
        self.heard_frames += 1
        return frame.start // CHUNK in self.at

    def reset(self) -> None:
        self.resets += 1


@dataclass
class Stage:
    """A capture stage and what came out of it; each sample's value is its own index plus one."""

    rules: CaptureRules = field(default_factory=CaptureRules)
    wake: Spotter | None = None
    canceller: EchoCanceller | None = None
    at: int = 0
    out: list[AudioFrame] = field(default_factory=list)
    changes: list[GateChange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.capture = Capture(self.rules, self.canceller, self.wake, self.changes.append)

    def hear(self, frames: int) -> Stage:
        for _ in range(frames):
            samples = np.arange(self.at + 1, self.at + CHUNK + 1, dtype=np.float32)
            self.out += self.capture.step(AudioFrame(self.at, samples))
            self.at += CHUNK
        return self

    @property
    def numbers(self) -> list[int]:
        return [f.start // CHUNK for f in self.out]

    @property
    def told(self) -> list[tuple[bool, str]]:
        return [(c.passing, c.reason) for c in self.changes]


def test_without_gates_every_frame_passes_as_it_is() -> None:
    stage = Stage().hear(100)
    assert stage.numbers == list(range(100))
    assert np.array_equal(np.concatenate([f.samples for f in stage.out]), np.arange(1, 100 * CHUNK + 1))
    assert stage.changes == []


# Mute.


def test_muted_no_frame_leaves_the_stage() -> None:
    stage = Stage().hear(10)
    stage.capture.mute()
    stage.hear(1000)
    assert stage.numbers == list(range(10))
    assert stage.capture.muted
    assert not stage.capture.passing


def test_mute_says_at_once_that_an_open_turn_is_to_be_dropped() -> None:
    stage = Stage().hear(10)
    stage.capture.mute()
    stage.capture.mute()
    assert stage.changes == [GateChange(False, 10 * CHUNK, "muted", discard=True)]
    stage.hear(5).capture.unmute()
    stage.capture.unmute()
    assert stage.changes[1:] == [GateChange(True, 15 * CHUNK, "unmuted")]
    assert stage.hear(2).numbers[10:] == [15, 16]


def test_nothing_said_before_or_during_mute_comes_out_after_it() -> None:
    stage = Stage(CaptureRules(push_to_talk=True, hold_pre_roll=RATE)).hear(20)
    stage.capture.mute()
    stage.hear(20).capture.unmute()
    stage.capture.hold()
    assert stage.hear(3).numbers == [40, 41, 42]


def test_muted_the_wake_word_is_not_listened_for() -> None:
    stage = Stage(wake=Spotter(at=(20,))).hear(10)
    stage.capture.mute()
    stage.hear(20)
    assert stage.wake is not None
    assert stage.wake.heard_frames == 10
    assert stage.wake.resets
    stage.capture.unmute()
    assert stage.hear(20).out == []


def test_mute_ends_what_the_wake_word_opened() -> None:
    stage = Stage(wake=Spotter(at=(5,))).hear(10)
    stage.capture.mute()
    stage.capture.unmute()
    before = len(stage.out)
    assert len(stage.hear(50).out) == before


@LIVEKIT
def test_muted_the_sound_inside_the_canceller_is_dropped_too() -> None:
    ear = EchoCanceller()
    capture = Capture(echo=ear)
    loud = np.full(CHUNK, 0.5, np.float32)
    for i in range(10):
        capture.step(AudioFrame(i * CHUNK, loud))
    capture.mute()
    assert capture.step(AudioFrame(10 * CHUNK, loud)) == ()
    capture.unmute()
    (after,) = capture.step(AudioFrame(11 * CHUNK, np.zeros(CHUNK, np.float32)))
    assert not np.any(after.samples)


# The wake word.


def test_words_50_ms_after_the_wake_word_are_not_lost() -> None:
    """The spotter notices up to 0.27 s after the word's end; the next word may have begun 50 ms after it."""
    stage = Stage(wake=Spotter(at=(100,))).hear(101)
    noticed = 101 * CHUNK
    assert stage.out[0].start <= noticed - (0.27 - 0.05) * RATE
    assert stage.numbers == list(range(stage.numbers[0], 101))
    assert stage.changes == [GateChange(True, stage.out[0].start, "woken")]


def test_without_the_wake_word_nothing_passes() -> None:
    stage = Stage(wake=Spotter()).hear(1000)
    assert stage.out == []
    assert stage.changes == []
    assert len(stage.capture._kept) <= 12


def test_the_gate_closes_eight_seconds_after_the_wake_word() -> None:
    stage = Stage(wake=Spotter(at=(100,))).hear(1000)
    assert stage.numbers[-1] == pytest.approx(100 + 8 * FRAMES_PER_S, abs=2)
    assert stage.told == [(True, "woken"), (False, "asleep")]
    assert stage.changes[1] == GateChange(False, stage.out[-1].start + CHUNK, "asleep")


def test_whoever_speaks_keeps_the_gate_open_and_a_follow_up_needs_no_wake_word() -> None:
    stage = Stage(wake=Spotter(at=(10,))).hear(200)
    for _ in range(10):
        stage.capture.stay_open()
        stage.hear(200)
    stage.hear(400)
    assert stage.numbers[-1] == pytest.approx(2000 + 8 * FRAMES_PER_S, abs=2)


def test_a_gate_that_is_closed_is_not_kept_open() -> None:
    stage = Stage(wake=Spotter(at=(500,))).hear(100)
    stage.capture.stay_open()
    assert stage.hear(100).out == []


def test_no_frame_comes_twice_when_the_wake_word_is_said_again() -> None:
    stage = Stage(wake=Spotter(at=(10, 50, 400))).hear(1000)
    assert len(stage.numbers) == len(set(stage.numbers))
    assert stage.numbers == sorted(stage.numbers)
    assert stage.told == [(True, "woken"), (False, "asleep"), (True, "woken"), (False, "asleep")]


# The button.


def test_only_what_is_said_while_the_button_is_held_passes_and_a_little_before() -> None:
    stage = Stage(CaptureRules(push_to_talk=True)).hear(50)
    stage.capture.hold()
    stage.hear(20).capture.release()
    stage.hear(50)
    assert stage.numbers[-1] == 69
    assert 50 * CHUNK - stage.out[0].start == pytest.approx(0.2 * RATE, abs=CHUNK)
    assert stage.told == [(True, "held"), (False, "released")]
    assert stage.changes[0].at == stage.out[0].start
    assert not stage.changes[1].discard


def test_a_button_that_nobody_asked_for_changes_nothing() -> None:
    stage = Stage().hear(5)
    stage.capture.hold()
    stage.capture.release()
    assert stage.hear(5).numbers == list(range(10))
    assert stage.changes == []


def test_with_both_either_opens() -> None:
    stage = Stage(CaptureRules(push_to_talk=True), Spotter(at=(500,))).hear(50)
    stage.capture.hold()
    stage.hear(10).capture.release()
    stage.hear(500)
    assert stage.told == [(True, "held"), (False, "released"), (True, "woken")]


# The chime.


def test_without_a_canceller_an_own_chime_is_silenced() -> None:
    stage = Stage().hear(10)
    stage.capture.chime(np.ones(4000, np.float32), 2 * RATE, 10 * CHUNK + 100)
    heard = np.concatenate([f.samples for f in stage.hear(20).out])
    first, last = 10 * CHUNK + 100, 10 * CHUNK + 100 + 2000 + RATE // 10
    assert not np.any(heard[first:last])
    assert np.array_equal(heard[:first], np.arange(1, first + 1))
    assert np.array_equal(heard[last:], np.arange(last + 1, 30 * CHUNK + 1))


@LIVEKIT
def test_with_a_canceller_a_chime_is_part_of_what_is_played() -> None:
    ear = EchoCanceller()
    capture = Capture(echo=ear)
    capture.chime(np.full(CHUNK, 0.1, np.float32), RATE, 0)
    (out,) = capture.step(AudioFrame(0, np.full(CHUNK, 0.3, np.float32)))
    assert capture.echo.active
    assert out.start == -ear.delay
    assert np.any(out.samples)


# Gaps, and whatever comes.


def test_a_gap_in_the_microphone_drops_what_was_kept() -> None:
    stage = Stage(wake=Spotter(at=(100,))).hear(98)
    stage.at = 100 * CHUNK
    assert stage.hear(1).numbers == [100]


def test_the_stream_of_frames_is_the_steps() -> None:
    async def microphone() -> AsyncIterator[AudioFrame]:
        for i in range(5):
            yield AudioFrame(i * CHUNK, np.zeros(CHUNK, np.float32))

    async def listen() -> list[int]:
        return [f.start async for f in Capture(wake=Spotter(at=(3,))).frames(microphone())]

    assert asyncio.run(listen()) == [i * CHUNK for i in range(5)]


ACTIONS = st.sampled_from(["mute", "unmute", "hold", "release", "stay_open", "gap"])


@given(
    st.lists(st.one_of(ACTIONS, st.integers(1, 30)), max_size=40),
    st.sets(st.integers(0, 400), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_whatever_is_pressed_frames_come_once_in_order_and_never_from_a_mute(
    actions: list[str | int], wakes: set[int], button: bool, spotter: bool
) -> None:
    stage = Stage(CaptureRules(push_to_talk=button), Spotter(at=tuple(wakes)) if spotter else None)
    muted: set[int] = set()
    for action in actions:
        if isinstance(action, int):
            if stage.capture.muted:
                muted |= {stage.at // CHUNK + i for i in range(action)}
            stage.hear(action)
        elif action == "gap":
            stage.at += 7 * CHUNK
        else:
            getattr(stage.capture, action)()
        assert len(stage.capture._kept) <= 12
    assert stage.numbers == sorted(set(stage.numbers))
    assert not muted & set(stage.numbers)
    for before, after in pairwise(stage.changes):  # each is told once; mute always, as it drops turns
        assert before.passing != after.passing or after.reason == "muted"
