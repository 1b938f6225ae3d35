"""Conversations: where one ends, and what it was about without a language model."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from os1_edge.remember.rows import StoredTurn
from os1_edge.remember.sessions import LONGEST_S, SUMMARY_CHARS, extract, session_of

NOON = datetime(2026, 3, 2, 12)


def turn(heard: str, minutes: float = 0, speaker: str = "wearer", session: str = "s1") -> StoredTurn:
    time = NOON + timedelta(minutes=minutes)
    return StoredTurn(1, "t1", time, heard, "Noted.", "", speaker=speaker, session_id=session)


@pytest.mark.parametrize(
    ("minutes", "same"),
    [(0, True), (19.9, True), (20, True), (20.1, False), (60, False), (-1, False), (-1440, False)],
)
def test_a_conversation_ends_with_twenty_minutes_of_silence(minutes: float, same: bool) -> None:
    found = session_of(turn("Hello."), NOON, NOON + timedelta(minutes=minutes), "run1", 1200.0)
    assert (found == "s1") == same


def test_the_first_turn_of_all_opens_a_conversation() -> None:
    assert session_of(None, None, NOON, "run1") == "20260302T120000-run1"


def test_the_same_recording_lived_twice_is_two_conversations() -> None:
    assert session_of(None, None, NOON, "run1") != session_of(None, None, NOON, "run2")


def test_a_conversation_that_never_ends_is_summarised_in_parts() -> None:
    began = NOON - timedelta(seconds=LONGEST_S)
    assert session_of(turn("On and on."), began, NOON + timedelta(minutes=1), "run1") != "s1"


def test_a_summary_holds_what_was_told_and_leaves_out_small_talk() -> None:
    said = ("Good morning.", "I parked the car on level three.", "Thank you.", "My flight leaves at nine.")
    text = extract([turn(heard) for heard in said])
    assert text == "The wearer said: I parked the car on level three. My flight leaves at nine."


def test_of_small_talk_alone_there_is_no_summary() -> None:
    assert extract([turn("Good morning."), turn("Hi, thanks!"), turn("")]) == ""


def test_a_long_conversation_has_a_short_summary_of_what_it_came_back_to() -> None:
    said = [f"The garden needs water number {i} and the garden roses too." for i in range(30)]
    text = extract([turn(heard) for heard in ["A spoon.", *said, "A fork."]])
    assert len(text) <= SUMMARY_CHARS + 40
    assert "garden" in text
    assert "spoon" not in text


def test_what_somebody_else_said_is_not_the_wearers() -> None:
    assert extract([turn("I am allergic to nuts.", speaker="other:Tom")]) == ""


def test_a_question_tells_less_than_a_statement_of_the_same() -> None:
    said = [f"Where is box {i} with the old blue winter coats?" for i in "abcd"]
    text = extract([turn(heard) for heard in [*said, "The old blue winter coats are upstairs."]])
    assert "upstairs" in text
