"""When a turn starts and ends, as timelines of speech probabilities."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline import CHUNK_MS, MS, Timeline

from os1_edge.events import (
    CHUNK,
    RATE,
    AudioFrame,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
)
from os1_edge.framing import frames
from os1_edge.hear.pauses import REACH_S
from os1_edge.hear.turn import TurnDetector, TurnRules


def test_a_click_does_not_start_a_turn() -> None:
    assert Timeline().hear(500, 0.01).hear(64, 0.99).hear(2000, 0.01).stop().events == []


def test_clicks_that_follow_each_other_do_not_add_up_to_speech() -> None:
    line = Timeline()
    for _ in range(50):
        line.hear(64, 0.99).hear(32, 0.1)
    assert line.stop().events == []


def test_stop_said_in_250_ms_is_a_turn() -> None:
    (turn,) = Timeline().hear(992, 0.01).hear(256, 0.95).hear(992, 0.01).turns
    assert turn.start == 992 * MS
    assert turn.end == (992 + 256) * MS
    assert "silence" in turn.reason


def test_a_turn_is_over_half_a_second_after_the_last_speech() -> None:
    (turn,) = Timeline().hear(320, 0.9).hear(3200, 0.01).turns
    assert 0.5 * RATE <= turn.decided - turn.end < 0.5 * RATE + CHUNK


def test_the_soft_beginning_of_a_word_is_kept() -> None:
    """The detector is late: 300 ms before it is sure belong to the turn."""
    (turn,) = Timeline().hear(992, 0.3).hear(640, 0.9).hear(992, 0.01).turns
    assert turn.audio_start <= turn.start - 300 * MS
    assert turn.audio[0] == turn.audio_start
    assert turn.audio_start > turn.start - 300 * MS - CHUNK


def test_speech_in_the_first_chunk_of_a_stream_is_whole() -> None:
    (turn,) = Timeline().hear(640, 0.9).hear(992, 0.01).turns
    assert (turn.start, turn.audio_start, turn.audio[0]) == (0, 0, 0)


def test_the_audio_has_a_short_tail_and_no_gap() -> None:
    (turn,) = Timeline().hear(992, 0.01).hear(640, 0.9).hear(992, 0.01).turns
    assert np.array_equal(turn.audio, np.arange(turn.audio_start, turn.audio_start + len(turn.audio)))
    after = turn.audio_start + len(turn.audio) - turn.end
    assert 300 * MS <= after < 300 * MS + CHUNK


@pytest.mark.parametrize(("pause_ms", "turns"), [(128, 1), (448, 1), (576, 2), (2016, 2)])
def test_a_pause_inside_a_sentence_keeps_one_turn(pause_ms: int, turns: int) -> None:
    line = Timeline().hear(640, 0.9).hear(pause_ms, 0.01).hear(640, 0.9).hear(992, 0.01)
    assert len(line.turns) == turns


def test_a_hesitating_voice_goes_on_below_the_threshold_to_start() -> None:
    line = Timeline().hear(320, 0.9).hear(2016, 0.4).hear(320, 0.9).hear(992, 0.01)
    assert line.names == ["SpeechStarted", "SpeechPaused", "TurnEnded"]


def test_silence_before_any_speech_never_ends_anything() -> None:
    assert Timeline().hear(60_000, 0.0).events == []
    assert Timeline().hear(60_000, 0.0).stop().events == []


def test_nothing_heard_at_all_is_no_turn() -> None:
    assert Timeline().stop().events == []


def test_a_monologue_is_cut_at_thirty_seconds() -> None:
    line = Timeline().hear(992, 0.01).hear(70_016, 0.9).hear(992, 0.01)
    first, second, third = line.turns
    assert (first.end - first.start) == pytest.approx(30 * RATE, abs=CHUNK)
    assert "longest" in first.reason
    assert "longest" in second.reason
    assert "silence" in third.reason
    assert [t.turn_id for t in line.turns] == ["t0001", "t0002", "t0003"]


def test_a_monologue_cut_in_two_says_no_word_twice_and_loses_none() -> None:
    line = Timeline().hear(992, 0.01).hear(70_016, 0.9).hear(992, 0.01)
    spoken = np.concatenate([t.audio for t in line.turns])
    assert np.array_equal(spoken, np.arange(spoken[0], spoken[0] + len(spoken)))


@pytest.mark.parametrize("silence_ms", [100, 500, 2000])
@pytest.mark.parametrize("pause_ms", [128, 512, 640, 3008])
def test_the_next_turn_holds_no_speech_of_the_one_before(silence_ms: int, pause_ms: int) -> None:
    line = Timeline(TurnRules(silence=silence_ms * MS))
    line.hear(992, 0.01).hear(1600, 0.9).hear(pause_ms, 0.01).hear(1600, 0.9).hear(3008, 0.01)
    for before, after in pairwise(line.turns):
        assert after.audio_start >= before.end
        assert after.start >= before.decided - CHUNK * 3


def test_a_turn_is_closed_when_the_microphone_stops() -> None:
    line = Timeline().hear(320, 0.01).hear(640, 0.9).stop()
    assert line.names == ["SpeechStarted", "TurnEnded"]
    assert line.turns[0].reason == "the microphone stopped"
    assert line.turns[0].end == (320 + 640) * MS
    assert line.stop().names == ["SpeechStarted", "TurnEnded"]


def test_speaking_says_whether_a_turn_is_open() -> None:
    line = Timeline().hear(64, 0.9)
    assert not line.detector.speaking
    assert line.hear(64, 0.9).detector.speaking
    assert not line.hear(992, 0.0).detector.speaking


@pytest.mark.parametrize("probability", [0.0, 0.45, 0.99])
def test_an_hour_of_it_needs_no_more_memory_than_a_minute(probability: float) -> None:
    detector = TurnDetector()
    chunk = np.zeros(CHUNK, np.float32)
    most = 0
    for i in range(3600 * RATE // CHUNK):
        detector.step(AudioFrame(i * CHUNK, chunk), probability)
        most = max(most, len(detector._frames) + len(detector._before))
    assert most <= 30 * RATE // CHUNK + 30


@given(
    st.lists(
        st.tuples(
            st.integers(1, 60),
            st.sampled_from([0.0, 0.2, 0.4, 0.6, 1.0]),
            st.sampled_from([None, 0.0, 0.9, 0.99]),
            st.sampled_from([0, 0, 0, 96, 992]),
        ),
        max_size=40,
    )
)
def test_whatever_is_heard_turns_are_in_order_and_whole(
    pieces: list[tuple[int, float, float | None, int]],
) -> None:
    line = Timeline()
    for chunks, probability, verdict, lost in pieces:
        line.judged(verdict).lose(lost).hear(chunks * CHUNK_MS, probability)
    line.stop()
    kinds = {SpeechStarted: "<", SpeechPaused: "p", SpeechResumed: "r", TurnEnded: ">"}
    assert re.fullmatch(r"(<(pr)*p?>)*", "".join(kinds[type(e)] for e in line.events))
    for turn in line.turns:
        assert 0 <= turn.audio_start <= turn.start < turn.end <= turn.decided <= line.at
        assert turn.audio_start + len(turn.audio) >= turn.end
        assert turn.end - turn.start >= 3 * CHUNK
        mine = [e for e in line.events if getattr(e, "turn_id", "") == turn.turn_id]
        revisions = [e.revision for e in mine if isinstance(e, SpeechResumed)]
        assert revisions == list(range(1, len(revisions) + 1))
        assert turn.revision == len(revisions)
        for paused in (e for e in mine if isinstance(e, SpeechPaused) and e.revision == turn.revision):
            assert (paused.audio_start, paused.start, paused.end) == (turn.audio_start, turn.start, turn.end)
            same = paused.end - paused.audio_start
            assert np.array_equal(paused.audio[:same], turn.audio[:same])
    for before, after in pairwise(line.turns):
        assert before.end <= after.audio_start
        assert before.decided <= after.start + 3 * CHUNK
    assert REACH_S[0] <= line.detector.pauses.reach_s <= REACH_S[1]


# The pause, and what is made of it.


def test_a_short_pause_is_told_at_once_so_that_work_can_start() -> None:
    line = Timeline().hear(320, 0.01).hear(992, 0.9).hear(992, 0.01)
    (paused,), (turn,) = line.told_pauses, line.turns
    assert line.names == ["SpeechStarted", "SpeechPaused", "TurnEnded"]
    assert (paused.turn_id, paused.revision) == (turn.turn_id, turn.revision)
    assert paused.decided - paused.end == 160 * MS
    assert np.array_equal(paused.audio, turn.audio[: len(paused.audio)])
    assert paused.audio[-1] == paused.decided - 1


def test_a_turn_can_be_looked_at_while_it_grows() -> None:
    line = Timeline()
    assert line.detector.length == 0
    with pytest.raises(RuntimeError, match="no turn is open"):
        line.detector.so_far()
    line.hear(320, 0.01).hear(640, 0.9)
    so_far = line.detector.so_far()
    assert line.detector.length == len(so_far.audio) == so_far.decided - so_far.audio_start
    assert (so_far.end, so_far.decided) == (960 * MS, 960 * MS)
    line.hear(992, 0.01)
    assert line.detector.length == 0
    assert line.names == ["SpeechStarted", "SpeechPaused", "TurnEnded"]


def test_speaking_on_makes_the_work_void_and_keeps_the_turn() -> None:
    line = Timeline().hear(992, 0.9).hear(320, 0.01).hear(640, 0.9).hear(992, 0.01)
    assert line.names == ["SpeechStarted", "SpeechPaused", "SpeechResumed", "SpeechPaused", "TurnEnded"]
    assert [e.revision for e in line.events[1:]] == [0, 1, 1, 1]
    assert line.events[2].at == (992 + 320) * MS
    assert line.turns[0].audio_start == 0
    assert len(line.turns[0].audio) >= (992 + 320 + 640) * MS


def test_a_soft_noise_in_a_pause_is_not_speaking_on() -> None:
    line = Timeline().hear(992, 0.9).hear(256, 0.01).hear(32, 0.45).hear(992, 0.01)
    assert line.names == ["SpeechStarted", "SpeechPaused", "TurnEnded"]
    assert line.turns[0].end == 992 * MS


def test_a_soft_word_after_a_pause_is_speaking_on() -> None:
    line = Timeline().hear(992, 0.9).hear(256, 0.01).hear(64, 0.45).hear(992, 0.01)
    assert "SpeechResumed" in line.names
    assert line.turns[0].end == (992 + 256 + 64) * MS


def test_a_verdict_that_comes_late_ends_the_turn_at_once() -> None:
    line = Timeline().hear(992, 0.9).hear(448, 0.01)
    line.detector.judge("t0001", 0, 0.99)
    assert line.turns == []
    (turn,) = line.hear(32, 0.01).turns
    assert turn.decided - turn.end == 480 * MS


@pytest.mark.parametrize(("turn_id", "revision"), [("t0002", 0), ("t0001", 1), ("t0000", 0)])
def test_a_verdict_on_another_turn_or_revision_changes_nothing(turn_id: str, revision: int) -> None:
    line = Timeline().hear(992, 0.9).hear(192, 0.01)
    line.detector.judge(turn_id, revision, 0.0)
    (turn,) = line.hear(992, 0.01).turns
    assert turn.decided - turn.end == 512 * MS


def test_a_verdict_on_what_was_said_before_speaking_on_changes_nothing() -> None:
    line = Timeline().hear(992, 0.9).hear(192, 0.01).hear(320, 0.9)
    line.detector.judge("t0001", 0, 0.99)
    line.hear(192, 0.01)
    line.detector.judge("t0001", 0, 0.99)
    (turn,) = line.hear(992, 0.01).turns
    assert turn.decided - turn.end == 512 * MS


def test_the_verdict_on_one_pause_does_not_count_for_the_next() -> None:
    line = Timeline().judged(0.0).hear(992, 0.9).hear(320, 0.01).judged(None).hear(320, 0.9).hear(2016, 0.01)
    (turn,) = line.turns
    assert turn.decided - turn.end == 512 * MS


# Frames that do not come.


def test_frames_that_stop_mid_speech_and_come_back_are_two_turns() -> None:
    line = Timeline().hear(992, 0.9).stop().lose(30_016).hear(992, 0.9).hear(992, 0.01)
    first, second = line.turns
    assert first.reason == "the microphone stopped"
    assert second.start == (992 + 30_016) * MS
    assert second.audio_start == second.start, "what lay before the break does not adjoin it"


def test_a_hole_in_a_turn_is_silence_and_times_stay_true() -> None:
    line = Timeline().hear(992, 0.9).lose(96).hear(992, 0.9).hear(992, 0.01)
    (turn,) = line.turns
    heard = turn.audio[turn.audio > 0]
    assert heard[-1] - turn.audio_start == np.flatnonzero(turn.audio)[-1]
    assert turn.end == (992 + 96 + 992) * MS


def test_a_long_hole_ends_the_turn_where_the_sound_ended() -> None:
    line = Timeline().hear(992, 0.9).lose(5024).hear(992, 0.9).hear(992, 0.01)
    first, second = line.turns
    assert first.end == 992 * MS
    assert "missing" in first.reason
    assert second.audio_start >= (992 + 5024) * MS
    assert line.names[:3] == ["SpeechStarted", "TurnEnded", "SpeechStarted"]


def test_a_stream_that_starts_again_from_nought_is_heard() -> None:
    line = Timeline().hear(992, 0.9)
    line.at = 0
    line.hear(64, 0.0).hear(992, 0.9).hear(992, 0.01)
    assert [t.start for t in line.turns] == [0, 64 * MS]


def test_a_break_in_the_quiet_does_not_join_two_clicks() -> None:
    assert Timeline().hear(64, 0.9).lose(9984).hear(64, 0.9).hear(992, 0.0).events == []


def test_turn_ids_can_be_made_unique_across_runs() -> None:
    names = iter(["monday-1", "monday-2"])
    detector = TurnDetector(ids=lambda: next(names))
    for i in range(100):
        detector.step(AudioFrame(i * CHUNK, np.zeros(CHUNK, np.float32)), 0.9 if i % 50 < 10 else 0.0)
    assert list(names) == []


@given(st.lists(st.integers(0, 3000), max_size=12))
def test_blocks_of_any_length_are_the_same_sound_in_frames(lengths: list[int]) -> None:
    sound = np.arange(1, sum(lengths) + 1, dtype=np.float32)
    cuts = np.cumsum([0, *lengths])
    got = list(frames(sound[a:b] for a, b in pairwise(cuts)))
    assert [f.start for f in got] == list(range(0, len(got) * CHUNK, CHUNK))
    assert all(f.samples.shape == (CHUNK,) and f.samples.dtype == np.float32 for f in got)
    whole = np.concatenate([f.samples for f in got]) if got else np.zeros(0, np.float32)
    assert np.array_equal(whole[: len(sound)], sound)
    assert not whole[len(sound) :].any()
    assert len(whole) - len(sound) < CHUNK
