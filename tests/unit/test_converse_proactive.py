"""When the companion speaks first, and of what."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time, timedelta

import pytest

from os1_edge.converse import proactive
from os1_edge.converse.greeting import greeted, introduced
from os1_edge.converse.proactive import Occasion, Rules, State, decide, within
from os1_edge.converse.reminders import found

MONDAY = datetime(2026, 3, 2, 10)
STILL = State(MONDAY, False, False, False, MONDAY - timedelta(minutes=5))


def occasion(kind: proactive.Kind = "reminder", since: datetime = MONDAY) -> Occasion:
    return Occasion(kind, f"{kind} {since}", "Your exam is today.", since, since + timedelta(hours=1))


def test_a_thing_that_is_due_is_spoken_of() -> None:
    decision = decide([occasion()], STILL, Rules())
    assert decision.say == occasion()
    assert decision.reason == "a reminder"


@pytest.mark.parametrize(
    ("change", "rules", "why"),
    [
        ({"wearer_speaks": True}, Rules(), "somebody speaks"),
        ({"busy": True}, Rules(), "somebody speaks"),
        ({"muted": True}, Rules(), "muted"),
        ({"last_sound": MONDAY - timedelta(seconds=2)}, Rules(), "a moment ago"),
        ({"spoken": (MONDAY - timedelta(minutes=59),)}, Rules(), "not long ago"),
        ({"spoken": tuple(MONDAY - timedelta(hours=1 + n) for n in range(6))}, Rules(), "often enough"),
        ({}, Rules(on=False), "only when spoken to"),
        ({}, Rules(quiet=(time(9), time(11))), "quiet hours"),
    ],
)
def test_it_holds_its_tongue(change: dict[str, object], rules: Rules, why: str) -> None:
    decision = decide([occasion()], replace(STILL, **change), rules)  # type: ignore[arg-type]
    assert decision.say is None
    assert why in decision.reason


def test_what_the_wearer_asked_to_be_reminded_of_is_said_even_at_night_and_even_if_it_spoke() -> None:
    night = replace(STILL, now=MONDAY.replace(hour=23), last_sound=None, spoken=(MONDAY.replace(hour=22),))
    asked = occasion("asked reminder", night.now)
    assert decide([asked], night, Rules()).say == asked
    assert decide([asked], replace(night, wearer_speaks=True), Rules()).say is None
    assert decide([asked], night, Rules(on=False)).say is None


def test_the_most_urgent_goes_first_and_what_is_over_never() -> None:
    place, reminder = occasion("place"), occasion("reminder")
    assert decide([place, reminder], STILL, Rules()).say == reminder
    late = replace(STILL, now=MONDAY + timedelta(hours=2), last_sound=None)
    assert decide([place, reminder], late, Rules()).say is None


def test_quiet_hours_reach_over_midnight() -> None:
    night = (time(22), time(7))
    assert within(time(23), night)
    assert within(time(3), night)
    assert not within(time(7), night)
    assert within(time(13), (time(12), time(14)))
    assert not within(time(13), (time(0), time(0)))


@pytest.mark.parametrize(
    ("heard", "what", "due", "timed", "asked"),
    [
        ("I have an exam tomorrow.", "your exam", datetime(2026, 3, 3), False, False),
        ("I've got a civil service exam on Friday at nine.", "your civil service exam",
         datetime(2026, 3, 6, 9), True, False),
        ("Remind me at five to call my mother.", "call your mother", datetime(2026, 3, 2, 17), True, True),
        ("Please remind me to water the plants tomorrow morning.", "water the plants",
         datetime(2026, 3, 3, 8), True, True),
        ("Remind me in ten minutes to turn off the oven.", "turn off the oven",
         datetime(2026, 3, 2, 10, 10), True, True),
        ("Remind me at half past five about the cake.", "the cake", datetime(2026, 3, 2, 17, 30), True, True),
        ("My dentist appointment is tomorrow at three.", "your dentist appointment",
         datetime(2026, 3, 3, 15), True, False),
        ("I have a meeting with Tom at 2:30 pm today.", "your meeting with Tom",
         datetime(2026, 3, 2, 14, 30), True, False),
        ("Nice day. We have a flight next Monday.", "your flight", datetime(2026, 3, 9), False, False),
        ("My brother's birthday is on Thursday.", "your brother's birthday",
         datetime(2026, 3, 5), False, False),
        ("I am seeing my sister on Saturday.", "seeing your sister", datetime(2026, 3, 7), False, False),
    ],
)  # fmt: skip
def test_what_lies_ahead_is_found_with_its_time(
    heard: str, what: str, due: datetime, timed: bool, asked: bool
) -> None:
    reminder = found(heard, MONDAY)
    assert reminder is not None
    assert (reminder.what, reminder.due, reminder.timed, reminder.asked) == (what, due, timed, asked)


@pytest.mark.parametrize(
    "heard",
    [
        "I had an exam yesterday.", "I have an exam.", "Do I have an exam tomorrow?", "Tomorrow is fine.",
        "If I have an exam tomorrow I will cry.", "I might have a meeting on Friday.",
        "Remind me to buy milk.",
        "My exam tomorrow was cancelled.", "I like Fridays.", "", "You remind me of my mother.",
    ],
)  # fmt: skip
def test_what_has_no_time_or_is_not_sure_is_no_reminder(heard: str) -> None:
    assert found(heard, MONDAY) is None


def test_a_reminder_is_spoken_of_in_its_time() -> None:
    exam = found("I have an exam tomorrow.", MONDAY)
    assert exam is not None
    assert proactive.of_reminder(exam, "k").words == "Your exam is today."
    assert (exam.speak_from, exam.speak_until) == (datetime(2026, 3, 3, 8), datetime(2026, 3, 3, 22))
    dentist = found("My dentist appointment is tomorrow at three.", MONDAY)
    assert dentist is not None
    assert dentist.speak_from == datetime(2026, 3, 3, 14, 30)
    assert proactive.of_reminder(dentist, "k").words == "Your dentist appointment is at 3 in the afternoon."
    call = found("Remind me at five to call my mother.", MONDAY)
    assert call is not None
    assert call.speak_from == call.due
    assert proactive.of_reminder(call, "k").words == "You wanted to be reminded: call your mother."
    assert proactive.of_reminder(call, "k", "de").words.startswith("Du wolltest erinnert werden")


def test_a_long_silence_after_distress_is_asked_about_once_it_is_long() -> None:
    due = proactive.of_distress(MONDAY, MONDAY + timedelta(minutes=2))
    assert due.since == MONDAY + timedelta(minutes=22)
    assert decide([due], replace(STILL, now=MONDAY + timedelta(minutes=21)), Rules()).say is None
    assert decide([due], replace(STILL, now=MONDAY + timedelta(minutes=23)), Rules()).say == due


def test_a_person_greeted_is_named() -> None:
    assert greeted("Hi Tom, how are you?") == "Tom"
    assert greeted("Good morning Anna!") == "Anna"
    assert greeted("Hallo Peter.") == "Peter"
    for nobody in ("Hi there.", "Hello OS-1.", "Hi Samantha!", "Hello everybody.", "Hi how are you", "Hello?",
                   "I said hi to Tom.", "Hey That is new."):  # fmt: skip
        assert greeted(nobody, ("Samantha",)) is None, nobody
    words = proactive.of_person("Tom", "My neighbour Tom has a new dog", MONDAY).words
    assert words == "About Tom: Your neighbour Tom has a new dog."


def test_who_says_their_name_is_greeted_by_it() -> None:
    for heard in (
        "My name is Peter.",
        "Hello, my name is Peter.",
        "Ich heiße Peter.",
        "Call me Peter!",
        "My name is Peter and I live in Rome.",
    ):
        assert introduced(heard) == "Peter", heard
    for other in (
        "My name is on the list.",
        "Call me later.",
        "My name is Peter and my mother is ill.",
        "Peter.",
    ):
        assert introduced(other) is None, other
