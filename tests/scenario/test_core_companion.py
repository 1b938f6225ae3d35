"""What the wearer notices, told as timelines."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from companion import VOICE_RATE, Companion, Engine, Voice

from os1_edge.app import TURNS_WAITING, VIEWS_KEPT
from os1_edge.config import Config
from os1_edge.converse.manners import Manners
from os1_edge.converse.prompt import I_SEE, NOTED, examples, system_message
from os1_edge.events import AudioFrame
from os1_edge.offload.engine import EngineError, Message

STORY = " ".join(f"Number{i}" for i in range(20)) + "."
SECRET = "My password is swordfish."


def heard_in(asked: str) -> str:
    """What the wearer said, by the prompt's last message."""
    asks = (line.split(": ", 1)[1] for line in asked.splitlines() if line.startswith("The wearer "))
    return next(asks, asked)


def echo(asked: str) -> str:
    """The engine repeats what was said, so that a reply shows which turn it answers."""
    return "You said " + heard_in(asked)


def test_what_was_said_is_answered_and_kept(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(echo)).say(1.0, "I am allergic to peanuts.").live()
    (turn,) = told.turns
    assert turn.reply == "You said I am allergic to peanuts."
    assert (turn.route, turn.spoken_file) == ("local", "01.wav")
    assert told.kept == [("I am allergic to peanuts.", turn.reply)]
    assert told.profile == [("The wearer is allergic to peanuts.", "t0001")]
    samples, rate = soundfile.read(str(tmp_path / "replies" / "01.wav"))
    assert rate == VOICE_RATE
    assert len(samples) / rate == pytest.approx(turn.spoken_s, abs=0.01)


def test_the_reply_begins_two_words_after_the_first_short_pause(tmp_path: Path) -> None:
    """On the virtual clock models take no time: only the pause and the engine's pace are left."""
    (turn,) = (
        Companion(tmp_path, Engine(lambda _: "Yes. I do.", token_s=0.25)).say(1.0, "Hello.").live().turns
    )
    assert turn.spoke_at_s is not None
    assert turn.paused_at is not None
    assert turn.spoke_at_s == pytest.approx(turn.paused_at / 16_000 + 0.5)
    assert turn.spoke_at_s > turn.ended.decided / 16_000


def test_an_answer_that_is_ready_earlier_waits_for_the_end_of_the_turn(tmp_path: Path) -> None:
    (turn,) = Companion(tmp_path, Engine(lambda _: "Yes.", token_s=0.01)).say(1.0, "Hello.").live().turns
    assert turn.spoke_at_s == pytest.approx(turn.ended.decided / 16_000, abs=0.001)


def test_the_first_clause_is_spoken_while_the_second_is_being_written(tmp_path: Path) -> None:
    engine = Engine(lambda _: "Here is one for you. " + STORY, token_s=1.0)
    told = Companion(tmp_path, engine).say(1.0, "Hello.").live()
    (turn,) = told.turns
    assert told.voice.said[0] == "Here is one for you."
    assert turn.spoke_at_s is not None
    assert turn.spoke_at_s < turn.ended.decided / 16_000 + 6


def test_captions_come_with_the_sound_clause_by_clause_not_when_it_is_over(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(echo)).say(1.0, "Hello. How was it.").live()
    first, whole = "You said Hello.", "You said Hello. How was it."
    assert told.saying == [(0, "Hello. How was it.", first), (0, "Hello. How was it.", whole)]


def test_a_slow_engine_never_ends_the_reply_early(tmp_path: Path) -> None:
    words = " ".join(f"word{i}" for i in range(30)) + "."
    told = Companion(tmp_path, Engine(lambda _: words, token_s=2.0)).say(1.0, "Tell me a story.").live()
    assert told.turns[0].reply == words
    assert " ".join(told.voice.said) == words
    assert told.ended_s > 60


def test_a_reply_of_a_thousand_words_is_cut_at_the_bound(tmp_path: Path) -> None:
    config = Config.model_validate({"converse": {"max_tokens": 8}})
    told = (
        Companion(tmp_path, Engine(lambda _: " ".join(map(str, range(1000)))), config=config)
        .say(1.0, "Talk.")
        .live()
    )
    assert len(told.turns[0].reply.split()) == 8


def test_turns_are_answered_in_order_each_with_its_own_words(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(echo, token_s=0.5))
    for i in range(6):
        told.say(1 + 7.0 * i, f"Sentence number {i}.")
    told.live()
    assert told.heard() == [f"Sentence number {i}." for i in range(6)]
    assert [t.reply for t in told.turns] == [f"You said Sentence number {i}." for i in range(6)]
    spoken = [t.spoke_at_s or 0.0 for t in told.turns]
    lengths = [t.spoken_s for t in told.turns]
    for at, length, after in zip(spoken, lengths, spoken[1:], strict=False):
        assert after >= at + length - 1e-6


# What was in view.


def test_the_newest_frame_before_the_wearer_stopped_speaking_is_what_they_saw(tmp_path: Path) -> None:
    told = Companion(tmp_path).show(0.0, "A cup.").show(1.9, "A cat.").show(2.3, "A dog.")
    told.say(1.0, "What is that?").live()  # ends at 2.0; the turn is decided at 2.5
    assert told.turns[0].scene == "A cat."


def test_a_frame_still_being_described_is_waited_for(tmp_path: Path) -> None:
    """On the wall clock: the eyes are still busy when the turn is over, and the reply waits for them."""
    asked = threading.Event()

    class Waits(Engine):
        async def stream(self, messages, max_tokens, **_):  # type: ignore[no-untyped-def]
            assert asked.is_set()
            async for word in Engine.stream(self, messages, max_tokens):
                yield word

    def slow(number: int) -> None:
        if number == 1:
            threading.Event().wait(0.9)  # the frame comes at 0.45 s, the turn is over at 1.0 s
            asked.set()

    told = Companion(tmp_path, Waits(token_s=0.0), Voice(letters_per_s=150), slow, tail_s=0.7)
    told.show(0.0, "A cup.").show(0.45, "A cat.").say(0.1, "What is that?", 0.4).live(virtual=False)
    assert told.turns[0].scene == "A cat."


def test_a_frame_behind_a_slow_one_is_still_what_was_in_view(tmp_path: Path) -> None:
    """The eyes are busy with the first frame until after the turn; the second was taken all the same."""

    def slow(number: int) -> None:
        if number == 0:
            threading.Event().wait(0.9)

    told = Companion(tmp_path, Engine(token_s=0.0), Voice(letters_per_s=150), slow, tail_s=0.6)
    told.show(0.0, "A cup.").show(0.25, "A cat.").say(0.1, "What is that?", 0.3).live(virtual=False)
    assert told.turns[0].scene == "A cat."
    assert told.described == [(0.0, "A cup."), (0.25, "A cat.")]


def test_of_a_camera_that_gives_more_than_is_looked_at_the_newest_picture_counts(tmp_path: Path) -> None:
    told = Companion(tmp_path)
    for i in range(30):
        told.show(i / 100, f"Scene {i}.")
    told.say(0.4, "What is that?").live()
    assert told.described == [(0.0, "Scene 0."), (0.29, "Scene 29.")]
    assert told.turns[0].scene == "Scene 29."


def test_a_turn_that_waits_long_still_knows_what_was_in_view(tmp_path: Path) -> None:
    """Later frames push descriptions out of the memory for views; a waiting turn keeps its own."""
    told = Companion(tmp_path, Engine(lambda _: "word " * 30, token_s=1.0))
    told.show(0.0, "A cup.").say(1.0, "Hello.").show(2.9, "A cat.").say(4.0, "What is that?")
    for i in range(VIEWS_KEPT + 4):
        told.show(6.0 + 5 * i, f"Wall {i}.")
    told.live()
    assert [t.scene for t in told.turns] == ["A cup.", "A cat."]


def test_before_the_first_frame_nothing_is_seen(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "What is that?").show(3.0, "A cat.").live()
    assert told.turns[0].scene == ""


def test_a_picture_that_breaks_the_detector_costs_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Companion(tmp_path).show(0.0, "broken").say(1.0, "Hello.").show(3.0, "A cat.").say(4.0, "Who?")
    told.live()
    assert [t.scene for t in told.turns] == ["", "A cat."]
    assert told.described == [(3.0, "A cat.")]
    assert "scene frame at 0.0 s" in caplog.text


def test_a_covered_lens_is_not_remembered_as_a_place(tmp_path: Path) -> None:
    told = Companion(tmp_path).show(0.0, "").show(1.0, "").live()
    assert told.events == 0
    assert told.described == [(0.0, ""), (1.0, "")]


# When something fails.


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (EngineError("out of memory"), I_SEE),
        ("", I_SEE),
        ("  ", I_SEE),
    ],
)
def test_an_engine_that_fails_is_owned_up_to_and_the_next_turn_is_answered(
    answer: str | Exception, reply: str, tmp_path: Path
) -> None:
    engine = Engine(lambda asked: answer if "first" in heard_in(asked) else "Fine.")
    told = Companion(tmp_path, engine).say(1.0, "The first.").say(9.0, "The second.").live()
    assert [(t.reply, t.route) for t in told.turns] == [(reply, "fallback"), ("Fine.", "local")]
    assert told.turns[0].route_reason.startswith("the language engine")
    assert told.voice.said == [reply, "Fine."]
    assert len(told.kept) == 2


def test_an_engine_that_fails_at_once_is_not_met_with_silence(tmp_path: Path) -> None:
    def fail(asked: str) -> str:
        raise EngineError("no model")

    told = Companion(tmp_path, Engine(fail)).say(1.0, "Hello.").live()
    assert told.turns[0].reply == I_SEE
    assert told.turns[0].route == "fallback"
    assert (tmp_path / "replies" / "01.wav").exists()


def test_a_recogniser_that_fails_loses_only_that_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Companion(tmp_path, deaf_to=frozenset({0})).say(1.0, "One.").say(5.0, "Two.").live()
    assert told.heard() == ["Two."]
    assert [heard for heard, _ in told.kept] == ["Two."]
    assert told.failed() == [("t0001", "RuntimeError")]
    assert "turn t0001 failed" in caplog.text


def test_a_voice_that_fails_loses_the_sound_not_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    voice = Voice(fails=lambda clause: "swordfish" in clause)
    told = Companion(tmp_path, Engine(echo), voice).say(1.0, SECRET).say(9.0, "Two.").live()
    assert told.heard() == [SECRET, "Two."]
    assert [t.spoken_file for t in told.turns] == [None, "01.wav"]
    assert len(told.kept) == 2
    assert "the voice in turn t0001 failed" in caplog.text
    assert "swordfish" not in caplog.text


def test_a_clause_that_cannot_be_said_leaves_the_others(tmp_path: Path) -> None:
    voice = Voice(fails=lambda clause: clause == "Two.")
    told = (
        Companion(tmp_path, Engine(lambda _: "One. Two. Three."), voice).say(1.0, "Explain counting.").live()
    )
    assert told.voice.said == ["One.", "Three."]
    assert told.turns[0].reply == "One. Two. Three."


def test_a_cough_is_no_turn_and_leaves_nothing_behind(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "").say(4.0, "Hello.").say(9.0, "x", seconds=0.05).live()
    assert told.heard() == ["Hello."]
    assert len(told.kept) == 1
    assert told.turns[0].spoken_file == "01.wav"


def test_a_microphone_that_breaks_ends_the_run_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unplugged(Exception):
        pass

    async def broken(self: Companion, ticking: object):  # type: ignore[no-untyped-def]
        yield AudioFrame(0, np.zeros(512, np.float32))
        raise Unplugged("the microphone was unplugged")

    monkeypatch.setattr(Companion, "_microphone", broken)
    with pytest.raises(Unplugged, match="was unplugged"):
        Companion(tmp_path).live()


# When there is too much of it.


def many(tmp_path: Path, turns: int) -> Companion:
    """The first reply takes minutes; meanwhile the wearer says ``turns`` things more."""
    told = Companion(
        tmp_path, Engine(lambda asked: "word " * 59 if "One" in heard_in(asked) else "Yes.", token_s=3.0)
    )
    told.say(1.0, "One.", seconds=0.5)
    for i in range(turns):
        told.say(4.0 + 2 * i, f"Later {i}.", seconds=0.5)
    return told.live()


def test_the_ninth_waiting_turn_pushes_the_oldest_out_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = many(tmp_path, TURNS_WAITING + 1)
    assert told.heard() == ["One.", *(f"Later {i}." for i in range(1, TURNS_WAITING + 1))]
    assert [why for _, why in told.failed()] == [f"more than {TURNS_WAITING} turns waited"]
    dropped = [r for r in caplog.records if "the oldest is dropped" in r.getMessage()]
    assert len(dropped) == 1


def test_eight_waiting_turns_are_all_answered_also_when_the_recording_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = many(tmp_path, TURNS_WAITING)
    assert told.heard() == ["One.", *(f"Later {i}." for i in range(TURNS_WAITING))]
    assert "dropped" not in caplog.text


# Always.


def test_no_word_of_the_wearer_or_of_the_reply_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(asked: str) -> str | Exception:
        return EngineError("broke") if "Third" in heard_in(asked) else echo(asked)

    caplog.set_level(logging.INFO)
    told = Companion(tmp_path, Engine(answer), deaf_to=frozenset({1})).show(0.0, "A swordfish on a table.")
    told.say(1.0, SECRET).say(9.0, "Second swordfish.").say(15.0, "Third swordfish.").say(22.0, "").live()
    assert told.heard() == [SECRET, "Third swordfish."]
    assert caplog.records
    assert "swordfish" not in caplog.text
    assert "password" not in caplog.text


def test_the_prompt_begins_the_same_from_turn_to_turn(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(echo))
    for i in range(5):
        told.say(1.0 + 6 * i, f"I walked to bench {i}.")
    told.live()
    for before, after in zip(told.engine.prompts, told.engine.prompts[1:], strict=False):
        assert after[: len(before)] == before


def test_what_was_told_in_another_conversation_comes_back_when_asked_for(tmp_path: Path) -> None:
    config = Config.model_validate({"converse": {"session_gap_s": 30.0}})
    told = Companion(tmp_path, Engine(echo), config=config)
    told.say(1.0, "My bicycle is in the cellar.").say(90.0, "Where is my bicycle?").live()
    assert [h.text for h in told.turns[1].hits] == ["My bicycle is in the cellar."]
    assert "Fact from today at 08:00: Your bicycle is in the cellar." in told.engine.prompts[1][-1].text
    assert len(told.engine.prompts[1]) == 2 + len(examples())


def test_saying_it_again_makes_the_profile_surer_not_longer(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "I live in Oslo.").say(6.0, "Yes. I live in Oslo.").live()
    assert told.profile == [("The wearer lives in Oslo.", "t0002")]
    told = Companion(tmp_path / "2").say(1.0, "I live in Oslo.").say(6.0, "I live in Rome.").live()
    assert told.profile == [("The wearer lives in Rome.", "t0002")]  # they moved


def scene(folder: Path) -> Companion:
    told = Companion(folder, Engine(echo, token_s=0.01), Voice(letters_per_s=150), tail_s=0.7)
    told.show(0.0, "A cup on a table.").say(0.2, "I like green tea.", 0.4)
    return told.show(1.2, "A cat.").say(1.4, "Do I like green tea?", 0.4)


def test_a_session_has_the_same_answers_on_the_wall_clock_and_on_the_virtual_one(tmp_path: Path) -> None:
    fast = scene(tmp_path / "fast").live(virtual=True)
    real = scene(tmp_path / "real").live(virtual=False)
    assert fast.told() == real.told()
    assert (fast.kept, fast.profile, fast.described) == (real.kept, real.profile, real.described)
    assert len(fast.turns) == 2


@pytest.mark.parametrize("make", [lambda c: c, lambda c: c.say(1.0, "Hi."), lambda c: c.show(1.0, "A cup.")])
def test_a_session_lived_twice_is_the_same(make: Callable[[Companion], Companion], tmp_path: Path) -> None:
    first = make(Companion(tmp_path / "1", Engine(echo))).live()
    second = make(Companion(tmp_path / "2", Engine(echo))).live()
    assert first.told() == second.told()
    assert first.ended_s == second.ended_s


def test_what_is_kept_for_the_next_start_tells_nothing_of_the_wearer(tmp_path: Path) -> None:
    tasks: list[asyncio.Future[None]] = []  # a task that nobody holds may be gone before it has run
    Companion(tmp_path).say(1.0, "I am allergic to peanuts.").live()
    told = Companion(tmp_path).say(1.0, "What should I have for dinner?")
    told.do(4.0, lambda os1: tasks.append(asyncio.ensure_future(os1.warm()))).live()
    assert "peanuts" in str(told.engine.prompts), "the memory of the day before is there"
    persona = Manners.of(Config().converse).persona.text
    assert told.engine.opened == [[system_message(persona), *examples(), Message("user", "Hello.")]]


def test_what_the_wearer_puts_right_is_what_is_answered_with(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "My sister Anna comes to visit on Friday.")
    told.say(6.0, "No, she comes on Saturday.").say(11.0, "When does my sister Anna come to visit?").live()
    assert told.turns[1].reply == NOTED
    facts = [line for line in told.engine.prompts[-1][-1].text.splitlines() if line.startswith("Fact")]
    assert any("Anna comes to visit on Saturday" in fact for fact in facts), facts
    assert not any("Friday" in fact for fact in facts)
