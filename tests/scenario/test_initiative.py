"""The companion speaks first, rarely, and never over anybody."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from companion import KEY, MONDAY, Companion, Engine

from os1_edge.app import Os1
from os1_edge.app.initiative import FirstWords
from os1_edge.config import Config
from os1_edge.converse.proactive import Occasion
from os1_edge.events import TurnEnded
from os1_edge.remember.rows import OS1
from os1_edge.remember.store import Store

pytestmark = pytest.mark.timeout(60)


def told_before(folder: Path, *said: tuple[datetime, str, str]) -> Path:
    """A memory in which the wearer said things (time, words, place) on earlier days."""
    store = Store(folder / "memory.db", KEY)
    for number, (time, words, place) in enumerate(said):
        store.add_turn(f"s{number}", 0, time, words, "", place, None)
    store.close()
    return folder


def unasked(told: Companion) -> list[str]:
    """What it said first."""
    return [turn.reply for turn in told.turns if not turn.heard]


YESTERDAY = MONDAY - timedelta(days=1)


def test_what_the_wearer_asked_for_is_said_in_its_time_and_once(tmp_path: Path) -> None:
    told = Companion(tmp_path, tail_s=180.0).say(1.0, "Remind me in one minute to call Tom.").live()
    assert told.turns[0].reply == "I will remind you."
    assert unasked(told) == ["You wanted to be reminded: call Tom."]
    assert 62.0 <= told.turns[-1].spoke_at_s <= 66.0
    assert ("You wanted to be reminded: call Tom.", "") in told.kept
    store = Store(tmp_path / "memory.db", KEY)
    assert [turn.speaker for turn in store.turns()] == ["wearer", OS1]
    store.close()
    again = Companion(tmp_path, tail_s=120.0).live()
    assert unasked(again) == [], "another run knows what was said"


def test_an_exam_told_of_yesterday_is_spoken_of_today(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "I have a civil service exam tomorrow.", ""))
    told = Companion(folder, tail_s=60.0).live()
    assert unasked(told) == ["Your civil service exam is today."]
    assert told.turns[0].route_reason == "a reminder"


def test_one_switch_turns_it_off(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "I have a civil service exam tomorrow.", ""))
    off = Config.model_validate({"converse": {"proactive": False}})
    assert unasked(Companion(folder, config=off, tail_s=60.0).live()) == []


def test_what_may_not_speak_first_does_not_promise_to_remind(tmp_path: Path) -> None:
    off = Config.model_validate({"converse": {"proactive": False}})
    told = Companion(tmp_path, config=off).say(1.0, "Remind me in one minute to call Tom.").live()
    assert told.turns[0].reply == "I will remember that."


def test_in_quiet_hours_it_is_quiet(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "I have a civil service exam tomorrow.", ""))
    quiet = Config.model_validate({"converse": {"quiet_hours": "07:30-09:00"}})
    assert unasked(Companion(folder, config=quiet, tail_s=60.0).live()) == []


def test_it_does_not_speak_into_a_talk(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "I have a civil service exam tomorrow.", ""))
    told = Companion(folder, tail_s=60.0)
    for second in range(0, 40, 5):
        told.say(float(second) + 0.5, "I like it here a lot.", 3.0)
    told.live()
    (first,) = [turn for turn in told.turns if not turn.heard]
    assert first.reply == "Your civil service exam is today."
    assert first.spoke_at_s > 35.5 + 3.0 + 8.0


def test_what_it_was_about_to_say_is_dropped_when_the_wearer_begins(tmp_path: Path) -> None:
    def begin(os1: Os1) -> None:
        when = MONDAY + timedelta(seconds=2)
        words = Occasion("reminder", "reminder x", "Your exam is today.", when, when)
        silence = np.zeros(0, np.float32)
        os1._talk.speak_first(FirstWords(words, "", TurnEnded("first", 0, 0, 0, 0, "", silence, 0)))

    told = Companion(tmp_path, tail_s=30.0).say(1.0, "I like it here a lot.", 3.0).do(2.5, begin).live()
    assert unasked(told) == []
    assert told.heard() == ["I like it here a lot."]


def test_what_it_says_first_can_be_stopped_and_answered(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "I have a civil service exam tomorrow.", ""))
    told = (
        Companion(folder, Engine(lambda _: "Good luck!"), tail_s=60.0).say(11.0, "Thank you for that.").live()
    )
    assert unasked(told)[0].startswith("Your civil")
    assert told.turns[-1].reply == "Good luck!"
    assert any("exam is today" in message.text for message in told.engine.prompts[-1])


def test_muted_it_says_nothing(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "I have a civil service exam tomorrow.", ""))
    told = Companion(folder, tail_s=60.0).do(0.5, Os1.mute).live()
    assert unasked(told) == []


def test_what_was_forgotten_is_not_reminded_of(tmp_path: Path) -> None:
    told = Companion(tmp_path, tail_s=180.0).say(1.0, "Remind me in one minute to call Tom.")
    told.say(8.0, "Forget that.").live()
    assert unasked(told) == []


def test_a_long_silence_after_distress_is_asked_about_once(tmp_path: Path) -> None:
    told = Companion(tmp_path, tail_s=1260.0).say(1.0, "I feel so lonely today.").live()
    assert unasked(told) == ["I have been thinking of what you said. How are you now?"]
    assert 20 * 60 <= told.turns[-1].spoke_at_s <= 21 * 60


def test_a_person_greeted_is_recalled(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "My neighbour Tom has a new dog.", ""))
    told = Companion(folder, tail_s=60.0).say(1.0, "Hi Tom, nice to see you.").live()
    assert unasked(told) == ["About Tom: Your neighbour Tom has a new dog."]


def test_a_place_comes_back_with_what_was_said_there(tmp_path: Path) -> None:
    folder = told_before(tmp_path, (YESTERDAY, "The coffee machine in here leaks.", "kitchen"))
    told = Companion(folder, tail_s=60.0).say(1.0, "I am in the office now.").say(6.0, "I am in the office.")
    told.say(12.0, "I am in the kitchen now.").say(18.0, "Now I am in the kitchen.").live()
    assert unasked(told) == ["Last time at this place you said: The coffee machine in here leaks."]
