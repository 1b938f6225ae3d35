"""What goes wrong with other voice assistants, as timelines: each was reported by their users.

The reports are named in each test. Those about the microphone's room and the wake word are in
``test_echo_room.py``, about an offload server that falls silent in ``test_outage.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from companion import VOICE_RATE, Companion, EndOfTurn, Engine, Recogniser, Voice

from os1_edge.app import Os1
from os1_edge.clock import Clock
from os1_edge.config import Config
from os1_edge.converse.prompt import examples
from os1_edge.converse.reply import CUT
from os1_edge.events import CHUNK, RATE, AudioFrame, Samples
from os1_edge.hear import echo, ghosts
from os1_edge.hear.echo import EchoCanceller

STORY = " ".join(f"Sentence number {i} of the story." for i in range(9))
"""About 20 s of speech."""


pytestmark = pytest.mark.timeout(60)

QUIETLY = Config.model_validate({"hear": {"partials": False}})
"""Nothing is recognised before the first pause."""


def story(asked: str) -> str:
    """A long story when asked for one; else a short answer that shows what is answered."""
    return STORY if "story" in asked else f"You said {asked.splitlines()[-1]}"


def telling(folder: Path) -> Companion:
    """From 2.3 s on, at the latest, a story is being told."""
    return Companion(folder, Engine(story)).say(1.0, "Tell me a story.")


# Barge-in.


def test_mm_hm_under_a_reply_does_not_stop_it(tmp_path: Path) -> None:
    """pipecat#1391, #984: "hmm" cuts the bot off."""
    told = telling(tmp_path).say(6.0, "Mm-hm.", 0.4).live()
    (turn,) = told.turns
    assert (turn.reply, turn.interrupted) == (STORY, False)
    assert told.ear.sounds(7.5, 9.5) == pytest.approx(2.0, abs=0.01)
    assert len(told.kept) == 1


def test_stop_said_in_250_ms_stops_the_reply(tmp_path: Path) -> None:
    """NVIDIA/xr-ai PR#157: a least length of speech of 0.3 s drops "stop"."""
    told = telling(tmp_path).say(6.0, "Stop.", 0.25).live()
    first, second = told.turns
    assert first.interrupted
    assert (second.heard, second.reply, second.route) == ("Stop.", "", "rule")
    assert told.ear.sounds(6.25, 60.0) == 0.0
    assert [heard for heard, _ in told.kept] == ["Tell me a story."]


def test_the_wearers_speech_silences_the_reply_within_200_ms(tmp_path: Path) -> None:
    told = telling(tmp_path).say(6.0, "It is snowing.").live()
    assert told.ear.sounds(5.0, 6.0) == pytest.approx(1.0, abs=0.01)
    assert told.ear.sounds(6.2, 7.0) == 0.0
    assert told.turns[1].reply == "You said It is snowing."


def test_cut_in_the_middle_the_conversation_holds_only_the_words_that_were_heard(tmp_path: Path) -> None:
    """livekit/agents#2607, #2201, #1994, #5038: the context after an interruption is not what was heard."""
    told = telling(tmp_path).say(10.0, "It is snowing.").live()
    first, second = told.turns
    assert first.interrupted
    assert STORY.startswith(first.reply)
    assert 0.3 < len(first.reply) / len(STORY) < 0.5  # 7.5 of 20 s
    assert told.kept[0] == ("Tell me a story.", first.reply)
    said = [m.text for m in told.engine.prompts[-1][1 + len(examples()) :] if m.role == "assistant"]
    assert said == [f"{first.reply} {CUT}"]
    assert second.reply == "You said It is snowing."


def test_after_a_false_interruption_the_reply_goes_on_where_it_was(tmp_path: Path) -> None:
    """pipecat#2941: the bot stops in mid-sentence and stays silent; livekit/agents#4039."""
    told = telling(tmp_path).noise(6.0, 0.4, 0.4).live()  # loud enough for a voice, and no words in it
    (turn,) = told.turns
    assert (turn.reply, turn.interrupted) == (STORY, False)
    assert told.ear.sounds(6.2, 6.4) == 0.0
    quiet = told.ear.blocks[-1][1] - told.ear.blocks[0][0] - turn.spoken_s
    assert 0.2 < quiet < 1.5


def test_yes_after_a_question_is_an_answer_and_no_mm_hm(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(lambda asked: "Shall I?" if "door" in asked else "Very well."))
    told.say(1.0, "Open the door.").say(2.9, "Yes.", 0.4).live()
    assert told.heard() == ["Open the door.", "Yes."]


def test_muted_while_a_reply_is_held_the_reply_goes_on(tmp_path: Path) -> None:
    told = telling(tmp_path).say(6.0, "And then what", 2.0).do(6.5, Os1.mute).live()
    assert (told.turns[0].reply, told.turns[0].interrupted) == (STORY, False)


def test_words_under_a_reply_that_cannot_be_recognised_do_not_end_it(tmp_path: Path) -> None:
    told = telling(tmp_path)
    told.deaf_to = frozenset({1})
    told.say(6.0, "And then what").live()
    assert {t.reply for t in told.turns if t.failed is None} == {STORY}


def test_mm_hm_costs_no_answer(tmp_path: Path) -> None:
    told = telling(tmp_path).say(6.0, "Mm-hm.", 0.4).live()
    assert len(told.engine.prompts) == 1


def test_stop_is_heeded_also_while_the_engine_hangs_in_mid_reply(tmp_path: Path) -> None:
    class Hangs(Engine):
        async def stream(self, messages, max_tokens, **_):  # type: ignore[no-untyped-def]
            if "story" in messages[-1].text:
                yield "Once upon a time there was a king. He"
                await asyncio.sleep(600)
            async for word in Engine.stream(self, messages, max_tokens):
                yield word

    told = Companion(tmp_path, Hangs(story)).say(1.0, "Tell me a story.").say(3.5, "Stop.", 0.3)
    told.say(6.0, "Hello there.").live()
    assert told.turns[-1].reply == "You said Hello there."
    assert (told.turns[-1].spoke_at_s or 99) < 9


# The end of a turn.


def test_frames_that_stop_in_mid_speech_end_the_turn_within_a_second(tmp_path: Path) -> None:
    """pipecat#4124, #1493: the VAD stays on "speaking" when frames stop, and the turn never ends."""
    told = Companion(tmp_path).say(1.0, "I like tea and", 3.0).no_frames(2.0, 9.0).live()
    (turn,) = told.turns
    assert turn.heard == "I like tea and"
    assert turn.spoke_at_s is not None
    assert turn.spoke_at_s < 3.0


def test_frames_that_come_back_after_a_gap_are_heard_as_before(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "Hello.").no_frames(3.0, 63.0).say(64.0, "I am back.").live()
    assert told.heard() == ["Hello.", "I am back."]
    assert told.turns[1].ended.start / RATE == pytest.approx(64.0, abs=0.1)


def test_a_turn_cut_off_too_early_is_taken_up_by_the_next_words(tmp_path: Path) -> None:
    """home-assistant/core#122177, #181747: a command cut in two is answered as half a command."""
    told = Companion(tmp_path, Engine(story, token_s=0.3), end_of_turn=EndOfTurn([1.0]))
    told.say(1.0, "Remind me").say(2.5, "to call my mother.").live()
    (turn,) = told.turns
    assert turn.heard == "Remind me to call my mother."
    assert turn.took_up == "t0001"
    assert told.ear.blocks[0][0] > 3.5
    assert told.kept == [("Remind me to call my mother.", turn.reply)]


def taken_up(folder: Path) -> Companion:
    """A turn that is being answered slowly, and a word that seems to go on with it."""
    told = Companion(folder, Engine(story, token_s=0.7), end_of_turn=EndOfTurn([1.0, 0.0, 0.0]))
    return told.say(1.0, "Remind me to call.").say(2.5, "And")


@pytest.mark.parametrize("at_s", [2.8, 3.7, 3.8])
def test_a_turn_that_is_thrown_away_takes_no_other_with_it(tmp_path: Path, at_s: float) -> None:
    told = taken_up(tmp_path).do(at_s, Os1.mute).do(6.0, Os1.unmute).say(12.0, "Later.").live()
    assert [heard for heard, _ in told.kept] == ["Remind me to call.", "Later."]
    assert told.turns[0].reply == "You said Remind me to call."


@pytest.mark.parametrize("broken", [True, False])
def test_a_turn_that_comes_to_nothing_takes_no_other_with_it(tmp_path: Path, broken: bool) -> None:
    told = taken_up(tmp_path).say(3.6, "bit", 1.4).say(14.0, "Later.")
    told.recognised_as({2: ""})
    told.deaf_to = frozenset({2}) if broken else frozenset()
    told.live()
    assert [heard for heard, _ in told.kept] == ["Remind me to call.", "Later."]


def test_a_wearer_who_speaks_on_is_not_talked_over(tmp_path: Path) -> None:
    """huggingface/speech-to-speech#559: users repeat themselves and cancel their own turn."""
    told = Companion(tmp_path, Engine(story, token_s=0.7), end_of_turn=EndOfTurn([1.0]))
    told.say(1.0, "My key is lost.").say(3.8, "It is a big one.", 3.0).live()
    assert told.heard() == ["My key is lost.", "It is a big one."]
    assert told.ear.sounds(3.9, 6.8) == 0.0
    assert [t.reply for t in told.turns] == ["You said My key is lost.", "You said It is a big one."]


# Speculation.


def test_an_answer_begun_too_early_leaves_no_trace(tmp_path: Path) -> None:
    """livekit/agents#3414, #5924, agents-js#1365: a speculative turn executed tools."""
    told = Companion(tmp_path, Engine(story), end_of_turn=EndOfTurn([0.0, 1.0]))
    told.say(1.0, "I live in Oslo", 1.0).say(2.3, "no, in Rome.", 1.0)
    told.recognised_as({0: "I live in Oslo.", 1: "I live in Oslo no, in Rome."}).live()
    (turn,) = told.turns
    assert turn.ended.revision == 1
    assert len(told.engine.prompts) == 2  # the first answer was begun
    assert [heard for heard, _ in told.kept] == ["I live in Oslo no, in Rome."]
    assert all(source == turn.ended.turn_id for _, source in told.profile)
    assert "Oslo." not in str(told.engine.prompts[1])
    assert " ".join(told.voice.said).endswith(turn.reply)
    assert told.ear.sounds(0.0, turn.ended.decided / RATE - 0.01) == 0.0


def test_an_answer_ready_before_the_end_of_the_turn_is_not_made_twice(tmp_path: Path) -> None:
    """livekit/agents#4219: speculation doubles the cost."""
    told = Companion(tmp_path, end_of_turn=EndOfTurn([0.3]), config=QUIETLY).say(1.0, "Hello.").live()
    assert len(told.recogniser.heard) == 1
    assert len(told.engine.prompts) == 1
    assert told.turns[0].final_text_s == 0.0


def test_a_gap_between_words_is_no_pause_and_what_was_begun_in_it_is_void(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(story), config=QUIETLY)
    told.say(1.0, "I live", 0.5).say(1.6, "I live in Rome.", 1.0).live()
    (turn,) = told.turns
    assert (turn.heard, turn.ended.revision) == ("I live in Rome.", 0)
    assert len(told.recogniser.heard) == 2  # in the gap, and at the end
    assert len(told.engine.prompts) == 1


def test_recognition_begun_in_the_gap_before_the_pause_is_the_pauses(tmp_path: Path) -> None:
    told = Companion(tmp_path, config=QUIETLY).say(1.0, "Hello.").live()
    (audio,) = told.recogniser.heard
    (turn,) = told.turns
    assert len(audio) < len(turn.ended.audio)
    assert turn.heard == "Hello."


def test_without_speculation_nothing_is_begun_before_the_end(tmp_path: Path) -> None:
    config = Config.model_validate({"hear": {"speculate": False}})
    told = Companion(tmp_path, Engine(token_s=0.1), config=config).say(1.0, "Hello.").live()
    assert told.turns[0].paused_at == told.turns[0].ended.decided


# What is heard.


def test_thirty_seconds_of_silence_and_a_fan_are_no_turn(tmp_path: Path) -> None:
    """whisper.cpp#1724, #1592: hallucination on silence."""
    told = Companion(tmp_path, config=QUIETLY).noise(0.0, 30.0, 0.1).say(35.0, "Hello.").live()
    assert told.heard() == ["Hello."]
    assert len(told.recogniser.heard) == 1


def test_a_muted_microphone_gives_nothing_and_what_was_heard_of_a_turn_is_gone(tmp_path: Path) -> None:
    """omi PR#2467, #2736: users demand a real mute."""
    told = Companion(tmp_path).say(1.0, "My secret is safe.", 2.0).do(2.0, Os1.mute)
    told.say(4.0, "Nobody hears me.").do(6.0, Os1.unmute).say(7.0, "Hello again.").live()
    assert told.heard() == ["Hello again."]
    assert all(len(audio) < 2 * RATE for audio in told.recogniser.heard)
    assert [heard for heard, _ in told.kept] == ["Hello again."]


def test_an_own_chime_is_no_word_of_the_wearers(tmp_path: Path) -> None:
    """linux-voice-assistant#332: the chime itself is transcribed as "Uh"."""
    tone = np.full(RATE // 2, 0.45, np.float32)

    def chime(os1: Os1) -> None:
        os1._listening.capture.chime(tone, RATE, 3 * RATE)

    told = Companion(tmp_path).do(2.99, chime).noise(3.0, 0.5, 0.45).say(3.8, "It is snowing.").live()
    (turn,) = told.turns
    assert turn.heard == "It is snowing."
    assert turn.ended.start / RATE == pytest.approx(3.8, abs=0.1)


def test_a_recogniser_that_loops_has_heard_nothing(tmp_path: Path) -> None:
    """whisper.cpp#412, #3744: a repetition loop, pinned to the processor for a minute, and then answered."""

    @dataclass
    class Loops(Recogniser):
        def text(self, audio: Samples, cancelled: Callable[[], bool] | None = None) -> str:
            heard = Recogniser.text(self, audio, cancelled)
            kept = ghosts.judge(heard, ghosts.Evidence(len(audio) / RATE)).kept
            return heard if kept else ""

    told = Companion(tmp_path, recogniser_kind=Loops).say(1.0, "Thank you. " * 30, 2.0)
    told.say(6.0, "Thank you for the tea.").live()
    assert told.heard() == ["Thank you for the tea."]
    assert len(told.engine.prompts) == 1


def test_muting_does_not_stop_the_reply_that_plays(tmp_path: Path) -> None:
    told = telling(tmp_path).do(5.0, Os1.mute).say(8.0, "Stop.", 0.3).live()
    assert told.turns[0].reply == STORY


# What is said.


def test_an_engine_that_writes_a_word_every_two_seconds_does_not_end_the_reply_early(tmp_path: Path) -> None:
    """linux-voice-assistant#29: speech ends early when tokens are slow; livekit/agents#3418."""
    words = " ".join(f"word{i}," for i in range(12)) + " end."
    told = Companion(tmp_path, Engine(lambda _: words, token_s=2.0)).say(1.0, "Go on.").live()
    assert told.turns[0].reply == words
    assert told.ear.blocks[-1][1] > 24.0


def test_doctor_lee_and_three_dollars_fourteen_are_one_sentence(tmp_path: Path) -> None:
    """backtalk#31, genie-claw#385, rkvoice PR#10: "Dr." and "3.14" are split."""
    told = Companion(tmp_path, Engine(lambda _: "Dr. Lee paid $3.14.")).say(1.0, "Who paid?").live()
    assert told.voice.said == ["Dr. Lee paid $3.14."]


def test_a_reply_that_runs_in_a_loop_is_dropped(tmp_path: Path) -> None:
    """whisper.cpp#412, #3744: a repetition loop; what it is in recognition is tested in test_hear_ghosts."""
    told = Companion(tmp_path, Engine(lambda _: "and so it is " * 12 + ".")).say(1.0, "Go on.").live()
    assert " ".join(told.voice.said).count("so it is") <= 4


# Long running, and what is told.


def test_no_word_stands_in_the_log_whatever_happens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """murmure#88, openwhispr#453: transcripts in logs."""
    caplog.set_level(logging.INFO, logger="os1_edge")
    told = telling(tmp_path).say(6.0, "Stop.", 0.25).say(9.0, "My password is swordfish.")
    told.say(14.0, "Mm-hm.", 0.3).do(13.0, Os1.mute).live()
    logged = caplog.text.lower()
    for word in ("story", "stop", "swordfish", "password", "mm-hm"):
        assert word not in logged


def test_the_prompt_begins_with_the_one_before_byte_for_byte_also_after_an_interruption(
    tmp_path: Path,
) -> None:
    """llama.cpp#15082, #5793, #9866: cache reuse silently lost when the prefix changes."""
    told = telling(tmp_path).say(6.0, "It is snowing.").say(12.0, "It is cold now.").live()
    first, second, third = told.engine.prompts
    assert second[: len(first)] == first
    assert third[: len(second)] == second


# The speaker in the same room.


class Hum(Voice):
    """Harmonics and breath, four syllables a second: what an echo canceller takes for speech."""

    def say(self, clause: str) -> Samples:
        flat = Voice.say(self, clause)
        t = np.arange(len(flat)) / VOICE_RATE
        pitch = 2 * np.pi * 110 * t + np.sin(2 * np.pi * 0.7 * t)
        breath = 0.3 * np.random.default_rng(len(flat)).standard_normal(len(flat))
        voice = sum(np.sin(k * pitch) / k for k in range(1, 20)) + breath
        return np.asarray(0.3 * voice * np.clip(np.sin(2 * np.pi * 4 * t) + 0.4, 0, 1), np.float32)


@dataclass
class InARoom(Companion):
    """The microphone hears the speaker, 40 ms later and quieter."""

    voice: Voice = field(default_factory=Hum)
    echo_db: float = -6.0

    async def _microphone(self, ticking: Clock) -> AsyncIterator[AudioFrame]:
        gain = 10 ** (self.echo_db / 20)
        async for frame in Companion._microphone(self, ticking):
            back = self.ear.played_at(frame.start / RATE - 0.04, CHUNK)
            yield AudioFrame(frame.start, np.clip(frame.samples + gain * back, -1, 1).astype(np.float32))


@pytest.mark.skipif(echo.problem() is not None, reason=str(echo.problem()))
@pytest.mark.parametrize("echo_db", [-6.0, -20.0])
def test_the_companion_does_not_answer_its_own_voice(tmp_path: Path, echo_db: float) -> None:
    """pipecat#188, #1626, #1771: the bot hears itself and interrupts itself."""
    told = InARoom(tmp_path, Engine(story), echo_db=echo_db, capture={"echo": EchoCanceller()})
    told.say(1.0, "Tell me a story.").live()
    assert [t.heard for t in told.turns] == ["Tell me a story."]
    assert (told.turns[0].reply, told.turns[0].interrupted) == (STORY, False)


@pytest.mark.skipif(echo.problem() is not None, reason=str(echo.problem()))
def test_without_echo_cancellation_it_would(tmp_path: Path) -> None:
    told = InARoom(tmp_path, Engine(story), echo_db=-6.0).say(1.0, "Tell me a story.").live()
    assert told.ear.blocks[-1][1] - told.ear.blocks[0][0] > told.turns[0].spoken_s + 0.3


# Only when asked to.


class Woken:
    """Notices the wake word in a short burst of its own loudness."""

    def __init__(self, level: float) -> None:
        self.level = level

    def heard(self, frame: AudioFrame) -> bool:
        return bool(np.isclose(frame.samples.max(), self.level, atol=1e-3) and frame.samples[-1] == 0.0)

    def reset(self) -> None: ...


def test_with_a_wake_word_only_what_follows_it_is_heard_from_its_first_word(tmp_path: Path) -> None:
    """linux-voice-assistant#117: fast speech right after the wake word is lost."""
    told = Companion(tmp_path, capture={"wake": Woken(0.45)}).say(1.0, "Nobody called you.")
    told.noise(5.0, 0.4, 0.45).say(5.45, "It is snowing.").say(20.0, "And who called now?").live()
    assert told.heard() == ["It is snowing."]
    (turn,) = told.turns
    assert turn.ended.start / RATE < 5.5


def test_a_turn_longer_than_the_wake_words_window_is_heard_to_its_end(tmp_path: Path) -> None:
    told = Companion(tmp_path, capture={"wake": Woken(0.45)})
    told.noise(1.0, 0.4, 0.45).say(1.5, "A long story.", 14.0).live()
    (turn,) = told.turns
    assert turn.ended.end / RATE == pytest.approx(15.5, abs=0.1)


def test_with_push_to_talk_only_what_is_said_while_the_button_is_down_is_heard(tmp_path: Path) -> None:
    config = Config.model_validate({"hear": {"push_to_talk": True}})
    told = Companion(tmp_path, config=config).say(1.0, "Not for you.").do(3.9, Os1.hold)
    told.say(4.0, "For you.").do(5.1, Os1.release).say(7.0, "Not for you either.").live()
    assert told.heard() == ["For you."]


def test_muted_at_the_very_end_the_companion_still_comes_to_its_end(tmp_path: Path) -> None:
    told = Companion(tmp_path, tail_s=0.0).say(1.0, "Hello.").do(2.0, Os1.mute).live()
    assert told.turns == []
