"""What the language model is asked, and what stays the same from turn to turn."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.converse.address import addressed
from os1_edge.converse.food import concerns_food
from os1_edge.converse.guard import fault
from os1_edge.converse.history import Conversation
from os1_edge.converse.prompt import (
    ANSWER,
    NO_IDEA,
    NOTED,
    NOTHING_IN_VIEW,
    UNKNOWN,
    Notes,
    plan,
    system_message,
)
from os1_edge.converse.question import kind_of
from os1_edge.offload.engine import Message
from os1_edge.remember.recall import Hit

NOON = datetime(2026, 3, 2, 12)


def fact(text: str, time: datetime = NOON - timedelta(hours=4)) -> Hit:
    return Hit("turn", text, time, "kitchen", 0.7, "similarity 0.70, 0 days old")


def notes(*facts: str, scene: str = "") -> Notes:
    return Notes(NOON, scene, tuple(fact(text) for text in facts))


def test_a_question_about_the_wearer_without_a_fact_is_admitted_not_invented() -> None:
    assert plan("When is my flight?", notes(scene="A table.")).fixed == UNKNOWN
    assert plan("Tell me what my sister said.", notes()).fixed == UNKNOWN
    assert plan("Tell me a story.", notes()).fixed is None


def test_a_question_about_the_world_needs_no_fact() -> None:
    assert plan("Why is the sky blue?", notes()).message == "Why is the sky blue?"


def test_a_question_is_given_its_facts_turned_to_the_wearer() -> None:
    asked = plan(
        "What food am I allergic to?", notes("Please remember that I am allergic to peanuts.")
    ).message
    assert asked.splitlines() == [
        ANSWER,
        "Fact from today at 08:00: You are allergic to peanuts.",
        "The wearer asks: What food am I allergic to?",
    ]


def test_a_question_about_the_view_is_given_the_view_alone() -> None:
    asked = plan("What am I looking at?", notes("I saw a dog.", scene="A cat on a table.")).message
    assert asked.splitlines()[1] == "Fact in view now: You see a cat on a table."
    assert "dog" not in asked


def test_a_question_about_a_view_that_was_not_seen_is_admitted() -> None:
    assert plan("What is in front of me?", notes("I saw a dog.")).fixed == NOTHING_IN_VIEW


def test_a_statement_is_given_as_it_was_said_and_no_fact_beside_it() -> None:
    assert plan("I like green tea.", notes("I like coffee.")).message == "The wearer says: I like green tea."


def test_a_fact_of_another_day_says_its_day() -> None:
    older = Notes(NOON, "", (fact("I like jam.", datetime(2026, 2, 26, 9)),))
    told = plan("What do I like?", older).message.splitlines()[1]
    assert told == "Fact from Thursday 26 February: You like jam."


@pytest.mark.parametrize(
    ("heard", "kind"),
    [
        ("I have a dentist appointment on Thursday.", "statement"),
        ("Good morning.", "statement"),
        ("Please remember that I am allergic to peanuts.", "statement"),
        ("Do not forget that my car is on level two.", "statement"),
        ("Don't forget my keys.", "statement"),
        ("What is the time? I am late.", "statement"),
        ("When is my dentist appointment?", "question"),
        ("When is my dentist appointment", "question"),
        ("And where did I park", "question"),
        ("Do I like tea?", "question"),
        ("You are sure?", "question"),
        ("Good morning. What was I working on this morning?", "question"),
        ("What is this morning like?", "question"),
        ("What is on the table in front of me?", "view question"),
        ("What is on my desk?", "view question"),
        ("What animal am I looking at?", "view question"),
        ("Who is that?", "view question"),
        ("What do you see?", "view question"),
        ("", "statement"),
    ],
)
def test_the_kind_of_thing_that_was_said(heard: str, kind: str) -> None:
    assert kind_of(heard) == kind


@pytest.mark.parametrize(
    ("said", "turned"),
    [
        ("I like my tea.", "You like your tea."),
        ("Please remember that I am allergic to peanuts.", "You are allergic to peanuts."),
        ("Good morning. I have a dentist appointment.", "You have a dentist appointment."),
        ("I'm late, wait for me.", "You're late, wait for you."),
        ("The wearer is allergic to peanuts.", "You are allergic to peanuts."),
        ("The wearer does not like rain.", "You do not like rain."),
        ("The red one is mine.", "The red one is yours."),
        ("Mimi and Ime made it.", "Mimi and Ime made it."),
        ("Please.", "Please."),
        ("", ""),
    ],
)
def test_the_wearers_words_are_turned_to_the_wearer(said: str, turned: str) -> None:
    assert addressed(said) == turned


@given(st.text(max_size=120))
def test_any_words_can_be_asked_about(heard: str) -> None:
    addressed(heard)
    assert heard in plan(heard, notes("I like tea.", scene="A cup.")).message


def exchange(conversation: Conversation, number: int, system: Message) -> list[Message]:
    """One turn as the replier does it; returns the prompt that the engine got."""
    asked = f"Fact {number}\nThe wearer asks: {number}?"
    prompt = conversation.messages([system], asked, NOON)
    conversation.add(asked, f"{number}?", f"Answer {number}.", NOON)
    return prompt


def test_each_prompt_begins_with_the_one_before_byte_for_byte() -> None:
    """So the model reads only what is new."""
    conversation, system = Conversation(limit=6), system_message()
    before: list[Message] = []
    for number in range(6):
        prompt = exchange(conversation, number, system)
        assert prompt[: len(before)] == before
        assert len(prompt) == 2 * number + 2
        before = prompt
    assert system_message() == system


def test_the_persona_is_who_it_says() -> None:
    assert "OS-1" in system_message().text


def test_a_long_conversation_is_bounded_and_seldom_starts_anew() -> None:
    conversation, system = Conversation(limit=6), system_message()
    kept, anew, before = [], 0, [system]
    for number in range(60):
        prompt = exchange(conversation, number, system)
        anew += prompt[: len(before)] != before
        before = prompt
        kept.append(len(conversation.said(NOON)))
    assert max(kept) == 6
    assert anew <= 60 / 3
    assert conversation.said(NOON)[-1] == "59?"


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_a_short_memory_for_the_conversation_is_kept_to(limit: int) -> None:
    conversation, system = Conversation(limit), system_message()
    for number in range(9):
        exchange(conversation, number, system)
        assert len(conversation.said(NOON)) <= limit


def test_after_a_long_pause_a_new_conversation_starts() -> None:
    conversation, system = Conversation(6, gap_s=1200), system_message()
    exchange(conversation, 1, system)
    assert conversation.said(NOON + timedelta(seconds=1200)) == ["1?"]
    late = NOON + timedelta(seconds=1201)
    assert conversation.said(late) == []
    assert conversation.messages([system], "Hello.", late) == [system, Message("user", "Hello.")]
    conversation.add("Hello.", "Hello.", "Hello!", late)
    assert conversation.said(late) == ["Hello."]


def test_a_turn_that_is_only_looked_at_leaves_the_conversation_as_it_was() -> None:
    conversation, system = Conversation(6, gap_s=1200), system_message()
    exchange(conversation, 1, system)
    before = conversation.messages([system], "a", NOON)
    conversation.messages([system], "b", NOON + timedelta(days=1))
    conversation.said(NOON + timedelta(days=1))
    assert conversation.messages([system], "a", NOON) == before


@pytest.mark.parametrize(
    ("heard", "kind"),
    [
        ("What a lovely morning!", "statement"),
        ("What a day.", "statement"),
        ("Have a nice day.", "statement"),
        ("Have you seen my keys", "question"),
        ("where did I park", "question"),
        ("So, is this a cup", "view question"),
    ],
)
def test_a_greeting_is_no_question_and_a_question_needs_no_mark(heard: str, kind: str) -> None:
    assert kind_of(heard) == kind


def test_so_far_is_not_a_preface() -> None:
    assert addressed("So far I have walked two miles.") == "So far you have walked two miles."


def test_what_to_say_when_the_model_gives_nothing() -> None:
    assert plan("My sister is called Anna.", notes()).fallback == NOTED
    assert plan("What do I like?", notes("I like tea.")).fallback == "You like tea."
    assert plan("What am I looking at?", notes(scene="A cat.")).fallback == "You see a cat."
    assert plan("Why is the sky blue?", notes()).fallback == NO_IDEA


@pytest.mark.parametrize(
    "clause",
    [
        "The wearer asks: What is on my desk?",
        "The wearer parked their car by the river.",
        "Fact from today at 08:00: You like tea.",
        "I said, I said that, I said, I said that, I said, I said that.",
        "<|im_start|>user",
    ],
)
def test_the_prompt_is_never_read_aloud(clause: str) -> None:
    assert fault(clause, "What is on my desk?")


@pytest.mark.parametrize(
    "clause", ["You like tea.", "In fact, you like tea very much.", "No, no, no, I am fine.", ""]
)
def test_a_good_clause_is_spoken(clause: str) -> None:
    assert fault(clause, "How are you?") is None


def test_the_wearers_words_do_not_come_back_as_the_companions_own() -> None:
    assert fault("I am allergic to peanuts.", "Please remember that I am allergic to peanuts.")
    assert fault("Good morning, I have a dentist appointment.", "Good morning. I have a dentist appointment.")
    assert fault("You are allergic to peanuts.", "I am allergic to peanuts.") is None
    assert fault("It is raining again.", "It is raining again.") is None


def test_an_allergy_is_minded_when_food_is_talked_of_and_only_then() -> None:
    health = ("The wearer is allergic to peanuts.",)
    assert concerns_food("I am going to eat this cake.")
    assert not concerns_food("I moved to Boston last year.")
    minded = plan("I am going to eat this cake.", Notes(NOON, "", (), health))
    assert "Fact: You are allergic to peanuts." in minded.message
    assert [m.sentence for m in minded.mentions] == ["Mind that you are allergic to peanuts."]
    assert (
        "Fact: You are allergic to peanuts." in plan("What can I eat?", Notes(NOON, "", (), health)).message
    )


def test_what_the_wearer_is_allergic_to_is_not_offered() -> None:
    health = ("The wearer is allergic to peanuts.",)
    assert fault("You should cook peanut butter.", "What should I cook?", health)
    assert fault("You are allergic to peanuts.", "What should I cook?", health) is None
    assert fault("Avoid peanut butter.", "What should I cook?", health) is None
    assert fault("You should cook rice.", "What should I cook?", health) is None
