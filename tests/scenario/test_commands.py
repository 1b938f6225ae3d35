"""What the wearer commands, as they notice it: it is done, said in a few words, and leaves no trace."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from companion import KEY, MONDAY, Companion, Engine

from os1_edge.app import Os1, TurnTrace
from os1_edge.config import Config
from os1_edge.live.record import Watched
from os1_edge.remember.forget import Forgetting
from os1_edge.remember.hosted.shelf import NotReached
from os1_edge.remember.memory import Memory
from os1_edge.remember.store import Store

pytestmark = pytest.mark.timeout(60)

STORY = " ".join(f"Sentence number {i} of the story." for i in range(9))


def replies(told: Companion) -> list[str]:
    return [turn.reply for turn in told.turns]


def in_memory(folder: Path, word: str) -> bool:
    """Whether anything that can be found or recalled says ``word``."""
    store = Store(folder / "memory.db", KEY)
    try:
        texts = [t.heard + t.reply for t in store.turns()] + [c.utterance for c, _ in store.contexts()]
        texts += [entry.text for entry in store.profile_history()]
        return any(word in text.lower() for text in texts)
    finally:
        store.close()


def test_repeat_that_says_again_what_was_heard(tmp_path: Path) -> None:
    told = Companion(tmp_path, Engine(lambda _: "The bus comes at nine.")).say(1.0, "When does the bus come?")
    told.say(5.0, "Repeat that.").say(9.0, "Say that again, please.").live()
    assert replies(told) == ["The bus comes at nine."] * 3
    assert len(told.engine.prompts) == 1, "no model is asked"
    assert [heard for heard, _ in told.kept] == ["When does the bus come?"]


def test_forget_that_takes_the_last_exchange_and_undo_brings_it_back(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "My sister lives in Rome.").say(6.0, "My locker code is swordfish.")
    told.say(11.0, "Forget that.").live()
    assert replies(told)[-1].startswith("Forgotten.")
    assert [heard for heard, _ in told.kept] == ["My sister lives in Rome."]
    assert not in_memory(tmp_path, "swordfish")

    back = Companion(tmp_path / "b").say(1.0, "My locker code is swordfish.").say(6.0, "Forget that.")
    back.say(12.0, "Undo that.").live()
    assert replies(back)[-1] == "It is back."
    assert [heard for heard, _ in back.kept] == ["My locker code is swordfish."]


def test_forget_that_does_not_reach_back_to_yesterday(tmp_path: Path) -> None:
    store = Store(tmp_path / "memory.db", KEY)
    store.add_turn("s1", 0, MONDAY - timedelta(days=1), "My sister lives in Rome.", "", "", None)
    store.close()
    told = Companion(tmp_path).say(1.0, "Forget that.").live()
    assert replies(told) == ["There is nothing of that in my memory."]
    assert [heard for heard, _ in told.kept] == ["My sister lives in Rome."]


def test_what_was_forgotten_is_not_said_again_out_of_the_conversation(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "My locker code is swordfish.").say(6.0, "Forget that.")
    told.say(12.0, "Tell me something nice.").live()
    assert "swordfish" not in "".join(message.text for message in told.engine.prompts[-1])
    assert "swordfish" in "".join(message.text for message in told.engine.prompts[0])


@dataclass
class Shown(Companion):
    """A companion with a page, which shows the last turns to whoever opens it."""

    watched: Watched = field(default_factory=Watched)

    def turn_answered(self, trace: TurnTrace) -> None:
        super().turn_answered(trace)
        self.watched.turn_answered(trace)

    def forgot(self) -> None:
        self.watched.forgot()

    @property
    def shown(self) -> list[str]:
        return [trace.heard for trace in self.watched.newest]


def test_what_was_forgotten_on_the_page_is_neither_spoken_from_nor_repeated_nor_shown(tmp_path: Path) -> None:
    at_work: list[asyncio.Task[None]] = []

    async def forget(os1: Os1) -> None:
        await os1._faculties.memory.forget_about("swordfish")
        await os1.forgot()

    told = Shown(tmp_path, Engine(lambda _: "A good code.")).say(1.0, "My locker code is swordfish.")
    told.do(6.0, lambda os1: at_work.append(asyncio.create_task(forget(os1))))
    told.say(7.0, "Repeat that.").say(12.0, "Tell me something nice.").live()
    assert replies(told) == ["A good code.", "I have not said anything yet.", "A good code."]
    assert "swordfish" not in "".join(message.text for message in told.engine.prompts[-1])
    assert told.shown == ["Repeat that.", "Tell me something nice."]


def test_what_was_forgotten_by_voice_is_not_shown_either(tmp_path: Path) -> None:
    told = Shown(tmp_path).say(1.0, "My locker code is swordfish.").say(6.0, "Forget that.").live()
    assert told.shown == ["Forget that."]


@pytest.mark.parametrize(("word", "gone"), [("Yes.", True), ("No.", False), ("What is the time?", False)])
def test_everything_about_somebody_is_forgotten_only_after_a_yes(
    tmp_path: Path, word: str, gone: bool
) -> None:
    told = Companion(tmp_path).say(1.0, "My sister Anna lives in Rome.").say(6.0, "I had soup today.")
    told.say(11.0, "Forget everything about Anna.").say(17.0, word).live()
    assert "Shall I forget everything about Anna?" in replies(told)[2]
    assert in_memory(tmp_path, "anna") is not gone
    assert in_memory(tmp_path, "soup")


def test_a_yes_that_answers_nothing_forgets_nothing(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "My sister Anna lives in Rome.")
    told.say(6.0, "Forget everything about Anna.").say(75.0, "Yes.").live()
    assert in_memory(tmp_path, "anna"), "a minute later nobody knows what the yes was to"


def test_the_last_hour_is_forgotten_after_a_yes(tmp_path: Path) -> None:
    told = Companion(tmp_path).show(0.5, "A desk.").say(1.0, "I like jazz.").say(6.0, "Forget the last hour.")
    told.say(12.0, "Yes, please.").live()
    assert "the last hour" in replies(told)[1]
    assert told.kept == []
    assert told.profile == []


def test_a_memory_that_is_partly_out_of_reach_says_so_and_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def out_of_reach(_memory: Memory, what: str) -> Forgetting:
        raise NotReached(what)

    monkeypatch.setattr(Memory, "would_forget_about", out_of_reach)
    told = Companion(tmp_path, Engine(lambda _: "Nice.")).say(1.0, "Tom came by.")
    told.say(6.0, "Forget everything about Tom.").live()
    assert "on a server that I cannot reach" in replies(told)[-1]
    assert in_memory(tmp_path, "tom")


def test_what_do_you_know_about_me_tells_the_profile(tmp_path: Path) -> None:
    told = (
        Companion(tmp_path)
        .say(1.0, "I am allergic to peanuts.")
        .say(6.0, "What do you know about me?")
        .live()
    )
    assert replies(told)[-1] == "You are allergic to peanuts."
    assert replies(Companion(tmp_path / "b").say(1.0, "What do you know about me?").live()) == [
        "I do not know anything about you yet."
    ]


def test_muted_by_voice_nothing_is_heard_until_the_button(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "Stop listening.").say(8.0, "My secret is safe.")
    told.do(14.0, Os1.unmute).say(15.0, "Hello there.").live()
    assert told.heard() == ["Stop listening.", "Hello there."]
    assert "button" in replies(told)[0]
    assert not in_memory(tmp_path, "secret")


def test_are_you_online_is_answered_from_what_is_known_of_the_link(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "Are you online?").live()
    assert replies(told) == ["No. I have no server; all I do, I do here on the device."]


def test_remember_that_is_kept_and_confirmed_without_a_model(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "Remember that I am allergic to peanuts.").live()
    assert replies(told) == ["I will remember that."]
    assert [line for line, _ in told.profile] == ["The wearer is allergic to peanuts."]
    assert told.engine.prompts == []


def test_stop_before_the_answer_comes_ends_it_too(tmp_path: Path) -> None:
    engine = Engine(lambda _: STORY, token_s=1.0)
    told = Companion(tmp_path, engine).say(1.0, "Tell me a story.").say(2.8, "Stop.", 0.4).live()
    assert told.ear.sounds(3.3, 60.0) == 0.0
    assert [turn.route_reason for turn in told.turns][-1] == "stopped before it was answered"


def test_stop_with_nothing_to_stop_is_not_answered(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "Never mind.").live()
    assert replies(told) == [""]
    assert told.kept == []


def test_a_command_is_answered_in_the_language_it_was_given_in(tmp_path: Path) -> None:
    told = Companion(tmp_path).say(1.0, "Was weißt du über mich?").live()
    assert replies(told) == ["Ich weiß noch nichts über dich."]


def test_who_may_be_in_danger_hears_the_helpline_of_their_settings(tmp_path: Path) -> None:
    config = Config.model_validate({"converse": {"helpline": "Call the night line, it is free."}})
    told = Companion(tmp_path, config=config).say(1.0, "I do not want to live any more.").live()
    assert told.turns[0].reply.endswith("Call the night line, it is free.")
    assert told.engine.prompts == []
