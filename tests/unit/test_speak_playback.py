"""A reply in its own time: what is heard of it when it is paused, resumed, stopped, or made too slowly."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge import clock
from os1_edge.events import RATE, Samples
from os1_edge.speak.heard import Heard, Word
from os1_edge.speak.playback import AHEAD_S, BLOCK_S, WAITING_S, Player, hold_s

VOICE = 22_050


@dataclass
class Ear:
    """A sink that remembers what was heard when."""

    latency_s: float = 0.0
    blocks: list[tuple[float, Samples]] = field(default_factory=list, repr=False)
    replies: list[tuple[str, int, int]] = field(default_factory=list)
    ends: int = 0
    earliest_s: float = 0.0
    now: Callable[[], float] = lambda: 0.0

    def begin(self, turn_id: str, revision: int, rate: int) -> None:
        self.replies.append((turn_id, revision, rate))

    def write(self, block: Samples, at_s: float) -> None:
        assert not self.blocks or at_s >= self.blocks[-1][0] + len(self.blocks[-1][1]) / VOICE - 1e-6
        self.earliest_s = max(self.earliest_s, at_s - self.now())
        self.blocks.append((at_s, block))

    def drop(self, from_s: float) -> None:
        self.blocks = [b for b in self.blocks if b[0] < from_s]

    def end(self) -> str | None:
        self.ends += 1
        return f"{self.ends:02d}.wav"

    @property
    def sound(self) -> Samples:
        return np.concatenate([b for _, b in self.blocks]) if self.blocks else np.zeros(0, np.float32)

    @property
    def quiet_from_s(self) -> float:
        at, last = self.blocks[-1]
        return at + len(last) / VOICE

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """(begin, seconds) of the silences inside a reply."""
        out = []
        for (at, block), (then, _) in zip(self.blocks, self.blocks[1:], strict=False):
            if then - (free := at + len(block) / VOICE) > 1e-4:
                out.append((round(free, 3), round(then - free, 3)))
        return out


def tone(seconds: float, level: float = 0.5) -> Samples:
    return np.full(round(seconds * VOICE), level, np.float32)


def evenly(clause: str, seconds: float) -> tuple[Word, ...]:
    """Words of equal length, without a gap."""
    ends = [i for i in range(1, len(clause) + 1) if i == len(clause) or clause[i] == " "]
    edges = [round(seconds * VOICE * k / len(ends)) for k in range(len(ends) + 1)]
    return tuple(Word(end, b, e) for end, b, e in zip(ends, edges, edges[1:], strict=False))


@dataclass
class Stage:
    player: Player
    ear: Ear
    clock: clock.Clock
    told: list[tuple[float, Samples]] = field(repr=False)

    async def say(self, clause: str, seconds: float, level: float = 0.5) -> None:
        await self.player.add(clause, tone(seconds, level), VOICE, evenly(clause, seconds))


def play(script: Callable[[Stage], Awaitable[None]], latency_s: float = 0.0) -> Stage:
    async def main() -> Stage:
        ticking, told = clock.Clock(), []
        ear = Ear(latency_s, now=ticking.now)
        stage = Stage(Player(ear, ticking, lambda s, at: told.append((at, s))), ear, ticking, told)
        await script(stage)
        return stage

    return clock.run(main(), virtual=True)


def test_clauses_sound_back_to_back_and_the_reply_is_over_when_the_last_has_been_heard() -> None:
    async def script(s: Stage) -> None:
        await asyncio.sleep(5)
        s.player.begin("t1", 2)
        assert s.player.speaking
        await s.say("One two", 2.0)
        await s.say("three four.", 1.0)
        heard = await s.player.end()
        assert heard == Heard("One two three four.", True, pytest.approx(3.0), "01.wav")
        assert s.clock.now() == pytest.approx(8.0)
        assert not s.player.speaking

    s = play(script)
    assert s.ear.replies == [("t1", 2, VOICE)]
    assert s.player.first_heard_at_s == pytest.approx(5.0)
    assert s.ear.gaps == []
    np.testing.assert_array_equal(s.ear.sound, tone(3.0))


def test_silence_follows_a_pause_within_40_ms_and_a_stop_too() -> None:
    async def script(s: Stage) -> None:
        for act in (s.player.pause, s.player.stop):
            s.ear.blocks.clear()
            s.player.begin("t", 0)
            await s.say("a b c d e f g h i j", 10.0)
            for off in (0.503, 0.51, 0.5199):
                await asyncio.sleep(off)
                act()
                assert s.ear.quiet_from_s <= s.clock.now() + 0.04
                await asyncio.sleep(1.0)
                assert s.ear.quiet_from_s <= s.clock.now() - 0.96
                s.player.resume()

    play(script)


def test_a_cut_sound_dies_away_instead_of_clicking() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("a b c d", 4.0)
        await asyncio.sleep(1.5)
        s.player.pause()
        assert s.ear.sound[-1] == 0.0
        last = len(s.ear.sound)
        s.player.resume()
        await s.player.end()
        assert s.ear.sound[last] == 0.0
        assert np.abs(np.diff(s.ear.sound[1:])).max() < 0.01

    play(script)


def test_a_resumed_reply_goes_on_with_the_word_that_was_cut() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        clause = "one two three four"
        ramp = np.repeat(np.array([0.1, 0.2, 0.3, 0.4], np.float32), VOICE)
        await s.player.add(clause, ramp, VOICE, evenly(clause, 4.0))
        await asyncio.sleep(2.5)
        s.player.pause()
        assert s.player.paused
        assert not s.player.speaking
        assert s.player.heard().text == "one two"
        await asyncio.sleep(3.0)
        s.player.resume()
        heard = await s.player.end()
        assert (heard.text, heard.whole) == (clause, True)
        assert heard.seconds == pytest.approx(4.0)

    s = play(script)
    levels = [round(float(x), 1) for x in s.ear.sound[:: VOICE // 10]]
    assert levels.count(0.2) == 10
    assert 14 <= levels.count(0.3) <= 16  # half of it again, from its beginning
    assert levels.count(0.4) == 10


def test_a_reply_stopped_at_40_percent_holds_only_what_was_heard() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("one two three four five", 5.0)
        await s.say("six seven eight nine ten.", 5.0)
        await asyncio.sleep(4.1)
        heard = s.player.stop()
        assert (heard.text, heard.whole) == ("one two three four", False)
        assert heard.seconds == pytest.approx(4.12, abs=0.03)
        assert await s.player.end() == heard  # who waits for the end learns the same
        await s.say("more", 1.0)  # comes too late
        assert s.player.heard() == heard

    assert play(script).ear.ends == 1


def test_a_reply_stopped_between_clauses_is_not_whole_as_more_was_to_come() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("one two", 1.0)
        await asyncio.sleep(3.0)
        assert s.player.stop() == Heard("one two", False, pytest.approx(1.0), "01.wav")

    play(script)


def test_without_word_times_the_heard_words_follow_from_the_letters() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        sound = np.concatenate([tone(1.0, 0.0), tone(2.0), tone(1.0, 0.0)])
        await s.player.add("abcd efgh ijkl mnop", sound, VOICE)
        await asyncio.sleep(2.1)
        assert s.player.stop().text == "abcd efgh"

    play(script)


def test_a_model_that_writes_a_clause_every_four_seconds_does_not_end_the_reply() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        for _ in range(5):
            await s.say("well then", 1.0)
            await asyncio.sleep(4.0)
            assert s.player.speaking
        assert (await s.player.end()).seconds == pytest.approx(5.0)

    s = play(script)
    assert s.ear.gaps == [(1.0, 3.0), (5.0, 3.0), (9.0, 3.0), (13.0, 3.0)]


def test_a_voice_far_ahead_of_the_listener_waits() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        for i in range(1, 11):
            await s.say("word " * 4, 4.0)
            assert i * 4.0 - s.clock.now() <= WAITING_S + AHEAD_S + BLOCK_S + 1e-6
        await s.player.end()
        assert s.clock.now() == pytest.approx(40.0)

    play(script)


def test_who_waits_for_room_or_for_the_end_is_let_go_by_a_stop() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        adding = asyncio.create_task(s.say("word", 60.0))
        await asyncio.sleep(1)
        ending = asyncio.create_task(s.player.end())
        await asyncio.sleep(1)
        s.player.pause()
        await asyncio.sleep(1)
        assert not adding.done()
        s.player.stop()
        await asyncio.gather(adding, ending)
        assert s.clock.now() == pytest.approx(3.0)

    play(script)


def test_a_cancelled_turn_falls_silent() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("a b c d e f", 6.0)
        ending = asyncio.create_task(s.player.end())
        await asyncio.sleep(1.0)
        ending.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not s.player.speaking
        assert s.ear.quiet_from_s < 1.05

    play(script)


def test_a_new_reply_ends_the_old_one_and_a_stale_clause_is_dropped() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t1", 0)
        await s.say("old words here", 3.0)
        await asyncio.sleep(1.0)
        s.player.begin("t1", 1)
        await s.player.add("stale", tone(1.0), VOICE, of=("t1", 0))
        await s.player.add("new", tone(1.0), VOICE, of=("t1", 1))
        assert (await s.player.end()).text == "new"
        assert s.clock.now() == pytest.approx(2.0, abs=0.01)

    assert play(script).ear.replies == [("t1", 0, VOICE), ("t1", 1, VOICE)]


def test_the_echo_reference_is_exactly_what_went_out_and_when() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("a b c d", 4.0, 0.25)
        await asyncio.sleep(1.23)
        s.player.pause()
        await asyncio.sleep(2.0)
        s.player.resume()
        await s.player.end()

    s = play(script, latency_s=0.05)
    assert [at for at, _ in s.told] == pytest.approx([at + 0.05 for at, _ in s.ear.blocks])
    assert s.player.first_heard_at_s == pytest.approx(0.05)
    for (_, told), (_, block) in zip(s.told, s.ear.blocks, strict=True):
        assert len(told) == pytest.approx(len(block) * RATE / VOICE, abs=1)
    plain = [t for _, t in s.told if len(t) == BLOCK_S * RATE][5:20]
    np.testing.assert_allclose(np.concatenate(plain), 0.25, atol=0.01)


def test_what_is_told_has_begun_and_what_has_begun_is_never_taken_back() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("a b c d", 4.0)
        await asyncio.sleep(1.111)
        assert s.told[-1][0] <= s.clock.now()
        before = len(s.told)
        s.player.stop()
        assert [at for at, _ in s.told] == pytest.approx([at for at, _ in s.ear.blocks])
        assert len(s.told) == before + 1  # the fade

    play(script)


class Broken(Ear):
    """A speaker that is pulled out in the middle."""

    def write(self, block: Samples, at_s: float) -> None:
        if at_s > 0.5:
            raise OSError("device gone")
        super().write(block, at_s)


def test_a_speaker_that_vanishes_is_logged_once_and_nobody_hangs(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        ticking = clock.Clock()
        player = Player(Broken(), ticking)
        for turn in ("t1", "t2"):
            player.begin(turn, 0)
            await player.add("one two three", tone(3.0), VOICE)
            assert (await player.end()).whole
        assert ticking.now() == pytest.approx(6.0)

    with caplog.at_level(logging.ERROR):
        clock.run(main(), virtual=True)
    assert [r.getMessage() for r in caplog.records] == [
        "the speaker failed; replies go on without it: OSError: device gone"
    ]


def test_a_listener_that_fails_does_not_stop_the_reply(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_s: Samples, _at: float) -> None:
        raise RuntimeError("no")

    async def main() -> Heard:
        player = Player(Ear(), clock.Clock(), fails)
        player.begin("t", 0)
        await player.add("one two", tone(1.0), VOICE)
        return await player.end()

    assert clock.run(main(), virtual=True).whole
    assert len(caplog.records) == 1


def test_a_reply_with_nothing_to_say_is_over_at_once() -> None:
    async def script(s: Stage) -> None:
        assert await s.player.end() == Heard("", False, 0.0)  # none was begun
        s.player.pause()
        s.player.resume()
        s.player.begin("t", 0)
        assert await s.player.end() == Heard("", True, 0.0)
        assert s.player.first_heard_at_s is None

    assert play(script).ear.replies == []


def test_a_reply_paused_before_its_first_sound_loses_nothing() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        s.player.pause()
        await s.say("one two", 1.0)
        await asyncio.sleep(2.0)
        assert s.ear.blocks == []
        s.player.resume()
        assert (await s.player.end()).text == "one two"
        assert s.player.first_heard_at_s == pytest.approx(2.0)

    play(script)


def test_a_clause_of_another_rate_is_played_at_the_replys() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.say("one", 1.0)
        await s.player.add("two", np.full(RATE, 0.5, np.float32), RATE, evenly("two", RATE / VOICE))
        heard = await s.player.end()
        assert heard.text == "one two"
        assert heard.seconds == pytest.approx(2.0, abs=1e-3)

    play(script)


def test_broken_samples_are_silence_not_noise() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        await s.player.add("x", np.array([np.nan, np.inf, 9.0, -9.0] * 2000, np.float32), VOICE)
        await s.player.end()
        assert np.abs(s.ear.sound).max() <= 1.0

    play(script)


@pytest.mark.parametrize(
    ("first_s", "rtf", "held_s"),
    [(0.8, 0.0, 0.0), (0.8, 0.07, 0.0), (0.8, 0.5, 0.3), (2.6, 1.0, 0.0), (0.8, 1.5, 0.5)],
)
def test_only_a_voice_slower_than_speech_holds_back_the_first_clause(
    first_s: float, rtf: float, held_s: float
) -> None:
    assert hold_s(first_s, rtf) == pytest.approx(held_s)


def test_a_held_reply_starts_when_its_time_has_come() -> None:
    async def script(s: Stage) -> None:
        s.player.begin("t", 0, rtf=1.5)
        await s.say("one", 0.8)
        await s.player.end()
        assert s.player.first_heard_at_s == pytest.approx(0.5)
        assert s.clock.now() == pytest.approx(1.3)

    play(script)


def busy() -> None:
    time.sleep(0.1)


def test_on_the_wall_clock_a_busy_loop_is_not_heard() -> None:
    async def main() -> tuple[Ear, Heard]:
        ticking = clock.Clock()
        ear = Ear()
        player = Player(ear, ticking)
        player.begin("t", 0)
        await player.add("one two", tone(0.6), VOICE)
        await asyncio.sleep(0.1)
        busy()  # something computes in the loop
        return ear, await player.end()

    ear, heard = clock.run(main(), virtual=False)
    assert heard.whole
    assert len(ear.sound) == round(0.6 * VOICE)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.floats(0.05, 3.0)), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.floats(0.0, 1.5), st.sampled_from(["pause", "resume", "stop", "wait"])), max_size=8
    ),
)
def test_whatever_happens_time_and_text_agree(
    clauses: list[tuple[int, float]], acts: list[tuple[float, str]]
) -> None:
    words = iter(f"w{i}" for i in range(100))
    texts = [" ".join(next(words) for _ in range(n)) for n, _ in clauses]
    whole = " ".join(texts)

    async def script(s: Stage) -> None:
        s.player.begin("t", 0)
        for text, (_, seconds) in zip(texts, clauses, strict=True):
            await s.say(text, seconds)
        ending = asyncio.create_task(s.player.end())
        last = 0.0
        for wait, act in acts:
            await asyncio.sleep(wait)
            if act != "wait":
                getattr(s.player, act)()
            heard = s.player.heard()
            assert whole.startswith(heard.text)
            assert heard.seconds >= last
            last = heard.seconds
        s.player.resume()
        heard = await ending
        assert heard.seconds <= sum(x for _, x in clauses) + 1e-3
        if "stop" not in [a for _, a in acts]:
            assert heard.text == whole
            assert heard.whole
        assert heard.whole == (heard.text == whole)

    play(script)
