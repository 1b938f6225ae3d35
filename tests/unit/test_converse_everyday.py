"""Everyday talk: what wearers would notice at once in replies to plain sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from os1_edge.converse.correction import corrections
from os1_edge.converse.editing import Editor, borrows
from os1_edge.converse.evidence import liked
from os1_edge.converse.guard import fault
from os1_edge.converse.history import Conversation
from os1_edge.converse.plainly import answer
from os1_edge.converse.prompt import I_SEE, NOTED, UNKNOWN, Notes, examples, plan
from os1_edge.offload.engine import Message
from os1_edge.remember.recall import Hit

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PEANUTS = ("The wearer is allergic to peanuts.",)


def hit(text: str) -> Hit:
    return Hit("turn", text, NOON - timedelta(days=1), "", 0.6, "")


def test_what_the_wearer_puts_right_stands_right() -> None:
    anna = "My sister Anna comes on Friday."
    assert corrections([anna, "When does she come?", "No, she comes on Saturday."]) == {
        anna: "My sister Anna comes on Saturday.",
        "No, she comes on Saturday.": "",
    }
    assert corrections(["My flight is at seven.", "Actually, it is at nine."])["My flight is at seven."] == (
        "My flight is at nine."
    )


@pytest.mark.parametrize(
    "said",
    [
        [],
        ["My sister comes on Friday.", "My brother comes on Saturday."],
        ["My sister comes on Friday.", "No, thank you."],
        ["Does she come on Friday?", "No, on Saturday."],
        ["She comes on Friday or Sunday.", "No, on Saturday."],
        ["She comes on Friday.", "No, is it Saturday?"],
    ],
)
def test_nothing_else_is_put_right(said: list[str]) -> None:
    assert corrections(said) == {}


@pytest.mark.parametrize(
    ("clause", "heard", "told"),
    [
        ("I am glad I got a promotion!", "I got a promotion today!", ""),
        (
            "I feel a bit lonely tonight.",
            "Do you have a soul?",
            "The wearer says: I feel a bit lonely tonight.",
        ),
        ("My dog's name is Bruno.", "What's my dog's name?", ""),
        ("My dog is Bruno.", "Who barks?", "Fact: Your dog is called Bruno."),
    ],
)
def test_what_is_the_wearers_is_not_told_as_its_own(clause: str, heard: str, told: str) -> None:
    assert fault(clause, heard, told=told) is not None


@pytest.mark.parametrize(
    ("clause", "heard"),
    [
        ("I am glad that you got a promotion!", "I got a promotion today!"),
        ("My pleasure.", "Thank you."),
        ("You said I got a promotion.", "I got a promotion today!"),
        ("I am sorry to hear that.", "I am sorry for her."),
        ("Your dog's name is Bruno.", "What's my dog's name?"),
    ],
)
def test_a_kind_word_is_none_of_that(clause: str, heard: str) -> None:
    assert fault(clause, heard) is None


def test_what_the_examples_tell_of_is_told_only_where_it_belongs() -> None:
    assert borrows("I hope the next one comes soon.", "It was really moving.")
    assert not borrows("I hope the next one comes soon.", "I missed the bus.")
    assert borrows("Have fun at the cinema!", "I am going home.")
    assert not borrows("Have fun at the cinema!", "We go to the cinema.")
    told = " ".join(message.text for message in examples()).lower()
    for of_them in ("cinema", "madrid", "rose", "aunt", "cousin", "next one comes", "only one test"):
        assert of_them in told
    editor = Editor("It was really moving.", "It was really moving.")
    assert editor.take("I hope the next one comes soon.").kind == "wrong"
    assert Editor("What should I do?", "").take("You could go to the cinema.").kind == "say"


def test_a_help_desk_is_not_heard() -> None:
    assert Editor("Hi there.", "Hi there.").take("How can I assist you today?").kind == "leave off"


def test_an_allergy_is_no_answer_to_what_the_wearer_likes() -> None:
    tells = plan("I like green tea much more than coffee.", Notes(NOON, "", (), PEANUTS))
    assert tells.mentions == ()
    assert tells.fallback == NOTED
    asks = plan("What do I like to drink?", Notes(NOON, "", (hit("I like green tea."),), PEANUTS))
    assert "Fact: You are allergic to peanuts." in asks.message
    assert asks.mentions == ()
    assert asks.fallback == "You like green tea."


@pytest.mark.parametrize("heard", ["I like peanut butter.", "I will have dinner now.", "What is for dinner?"])
def test_it_is_said_where_it_may_matter(heard: str) -> None:
    found = plan(heard, Notes(NOON, "", (), PEANUTS))
    assert [m.sentence for m in found.mentions] == ["Mind that you are allergic to peanuts."]


def test_an_allergy_is_warned_of_once() -> None:
    found = plan("I made cookies.", Notes(NOON, "", (hit("I am allergic to peanuts."),), PEANUTS))
    assert len(found.mentions) == 1


def test_what_must_not_be_eaten_is_spoken_against_and_the_rest_is_free() -> None:
    notes = Notes(NOON, "", (), PEANUTS)
    assert plan("Can I have a peanut sandwich?", notes).fallback == "Better not: you are allergic to peanuts."
    free = plan("I am hungry. What could I eat?", notes).fallback
    assert free == "Whatever you feel like, but mind that you are allergic to peanuts."


def test_who_somebody_is_is_what_was_told() -> None:
    told = plan("Who is Anna?", Notes(NOON, "", (hit("My name is Sam."), hit("My sister Anna comes."))))
    assert told.fixed == "Your sister Anna comes."
    assert plan("Who is Ann?", Notes(NOON, "", (hit("My sister Anna comes."),))).fixed is None


def test_nothing_much_is_not_promised_to_be_remembered() -> None:
    assert plan("Nothing much.", Notes(NOON, "")).fallback == I_SEE
    assert plan("My flight leaves at seven.", Notes(NOON, "")).fallback == NOTED
    assert plan("Can you help me with something?", Notes(NOON, "")).fixed != UNKNOWN


def test_what_is_liked_less_is_not_offered() -> None:
    assert liked("The wearer likes green tea much more than coffee.") == "green tea"
    assert liked("The wearer likes tea and coffee.") == "tea and coffee"


@pytest.mark.parametrize(
    ("heard", "begins"),
    [
        ("What is your favourite colour?", "I am a program and have no tastes"),
        ("Do you have feelings?", "I am a program, so I do not feel"),
        ("You are wrong.", "I am sorry."),
    ],
)
def test_it_makes_up_no_life_of_its_own(heard: str, begins: str) -> None:
    assert str(answer(heard, NOON, "OS-1", "")).startswith(begins)


@pytest.mark.parametrize(
    "heard", ["What is your favourite memory of me, and why?", "You are wrong about it."]
)
def test_more_than_that_is_for_the_model(heard: str) -> None:
    assert answer(heard, NOON, "OS-1", "") is None


def test_what_went_before_has_no_word_of_the_companions() -> None:
    talk = Conversation(1)
    talk.add("a", "I planted roses by the fence.", "Lovely.", NOON)
    talk.add("b", "They need water.", "Yes.", NOON)
    messages = talk.messages([], "c", NOON)
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert messages[0].text.startswith("Earlier in this conversation: ")
    assert messages[0].text.endswith("\nb")
    assert messages[1:] == [Message("assistant", "Yes."), Message("user", "c")]
