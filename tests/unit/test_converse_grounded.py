"""What a reply rests on, and what is said where the model leaves it out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.converse.editing import Editor
from os1_edge.converse.evidence import liked, likings, options, queries, standing, things
from os1_edge.converse.history import EARLIER, Conversation
from os1_edge.converse.mention import Mention, unnamed
from os1_edge.converse.prompt import NOTED, SORRY, Notes, plan, system_message
from os1_edge.converse.question import feels_bad, greets, leaves, seeks
from os1_edge.converse.reply import Asked
from os1_edge.converse.saying import Outcome, sayable, split
from os1_edge.converse.strategy import LISTEN, Strategy, planned
from os1_edge.offload.engine import EngineError
from os1_edge.remember.recall import Hit
from os1_edge.remember.rows import ProfileEntry
from os1_edge.speak.clauses import ClauseSplitter

NOON = datetime(2026, 3, 16, 12)


def hit(text: str, days: int = 1, score: float = 0.5) -> Hit:
    return Hit("turn", text, NOON - timedelta(days=days), "", score, "")


def line(text: str, number: int = 1, over: bool = False, confidence: float = 0.8) -> ProfileEntry:
    end = NOON if over else None
    return ProfileEntry(number, "preference", text, confidence, NOON, "t1", valid_to=end)


# What still holds.


def test_what_the_profile_knows_to_be_over_is_not_told_as_a_fact() -> None:
    history = [line("The wearer lives in Leeds.", 1, over=True), line("The wearer lives in Bristol.", 2)]
    hits = [hit("I live in Leeds.", 20), hit("I moved to Bristol.", 3, 0.3)]
    assert [h.text for h in standing(hits, history, "Where do I live?")] == ["I moved to Bristol."]
    assert len(standing(hits, history, "Where did I live before?")) == 2


def test_what_became_true_again_is_told() -> None:
    history = [line("The wearer likes tea.", 1, over=True), line("The wearer likes tea.", 3)]
    assert standing([hit("I like tea.")], history, "Do I like tea?")


def test_of_two_states_of_one_matter_the_newest_counts() -> None:
    hits = [hit("My driving test is on Friday.", 7, 0.6), hit("My driving test was moved to Monday.", 1)]
    assert [h.text for h in standing(hits, [], "When is my driving test?")] == [hits[1].text]
    both = [hit("Emma likes tea.", 7), hit("Emma likes cake.", 1)]
    assert len(standing(both, [], "What does Emma like?")) == 2


@given(st.lists(st.text(max_size=40), max_size=5), st.text(max_size=60))
def test_nothing_is_told_that_was_not_recalled(texts: list[str], heard: str) -> None:
    hits = [hit(text, days, 0.5) for days, text in enumerate(texts)]
    assert set(standing(hits, [], heard)) <= set(hits)


# What may be offered.


def test_what_the_wearer_must_not_have_is_not_offered_beside_what_they_may() -> None:
    found = options("A menu with beef stew and mushroom pasta.", ["The wearer is vegetarian."])
    assert (found.fit, found.unfit) == (("mushroom pasta",), ("beef stew",))
    disliked = options("A coffee shop and a milk tea shop on a street.", ["The wearer does not like coffee."])
    assert disliked.fit == ("a milk tea shop",)
    assert options("A mango and an apple.", ["The wearer is allergic to mangoes."]).fit == ("an apple",)
    assert options("A large dog on a path.", ["The wearer is afraid of dogs."]).fit == ()


def test_a_favourite_in_view_comes_first() -> None:
    found = options("A red scarf and a green scarf.", ["The wearer has green as favourite colour."])
    assert found.fit == ("a green scarf",)


@given(st.text(max_size=80))
def test_any_scene_can_be_taken_apart(scene: str) -> None:
    assert all(thing.strip() for thing in things(scene))
    options(scene, ["The wearer is vegan.", "The wearer likes tea."])


def test_likings_are_read_from_the_profile_favourites_first() -> None:
    assert liked("The wearer does not like tea.") == ""
    lines = [line("The wearer likes jazz.", 1), line("The wearer has milk tea as favourite drink.", 2)]
    assert likings([*lines, line("The wearer is called Ada.", 3)]) == ["milk tea", "jazz"]


def test_tomorrow_is_looked_up_by_its_day() -> None:
    assert queries("I am nervous about tomorrow.", NOON) == ("My Tuesday appointment.",)
    assert queries("It is raining.", NOON) == ()


# What kind of thing was said.


@pytest.mark.parametrize(
    ("heard", "yes"),
    [
        ("What should I order?", True), ("I am hungry.", True), ("I need something to cheer me up.", True),
        ("What did I want to give Emma?", False), ("I parked the car.", False),
    ],
)  # fmt: skip
def test_who_seeks_advice(heard: str, yes: bool) -> None:
    assert seeks(heard) is yes


def test_moods_greetings_and_leaving() -> None:
    assert feels_bad("The exam went badly.")
    assert not feels_bad("It was not bad at all.")
    assert greets("Good morning!")
    assert not greets("Good morning, I am late.")
    assert leaves("I am going out now.")
    assert not leaves("I am going to bake cookies tonight.")


# What must not be left unsaid.


def plan_for(heard: str, scene: str = "", *profile: str, health: Sequence[str] = (), **more: object):  # type: ignore[no-untyped-def]
    lines = tuple(line(text, n) for n, text in enumerate(profile))
    return plan(heard, Notes(NOON, scene, health=tuple(health), profile=lines, **more))  # type: ignore[arg-type]


def test_a_greeting_has_a_word_for_what_is_new_in_view_but_none_for_furniture() -> None:
    (mention,) = plan_for("Good morning!", "A teddy bear and a laptop on a desk.").mentions
    assert mention.sentence == "What a nice teddy bear you have there!"
    assert plan_for("Good morning!", "Two people and a laptop on a desk.").mentions == ()
    assert plan_for("I moved to Boston.", "A teddy bear on a desk.").mentions == ()


def test_who_is_sad_is_offered_what_they_like_unless_they_want_to_be_listened_to() -> None:
    (mention,) = plan_for("I feel terrible.", "", "The wearer likes jazz.").mentions
    assert "jazz" in mention.sentence
    told = plan_for("I feel terrible.", "", "The wearer likes jazz.", strategy=planned(LISTEN, ""))
    assert told.mentions == ()


def test_what_was_brought_up_already_is_not_brought_up_again() -> None:
    recalled = (hit("I am preparing for the civil service exam."),)
    first = plan_for("I study for the exam again.", recalled=recalled)
    assert first.mentions[0].sentence == "I remember that you are preparing for the civil service exam."
    again = plan_for("I study for the exam again.", recalled=recalled, replied=first.mentions[0].sentence)
    assert again.mentions == ()


def test_the_agents_report_and_next_action_are_in_the_prompt_behind_all_that_stays_the_same() -> None:
    led = Strategy("give comfort", ("affirm",), action="ask what happened", by="model")
    told = plan_for("I feel terrible.", report="The wearer likes tea.", strategy=led).message
    assert told.splitlines() == [
        "Fact: You like tea.",
        "The wearer says: I feel terrible.",
        "(Now: ask what happened.)",
    ]
    assert "Fact: You like tea." in plan_for("Cheer me up, please?", report="The wearer likes tea.").message


def test_a_mention_is_said_only_where_the_reply_lacks_it() -> None:
    mention = Mention.of("How about jazz or long walks?", "I am bored.")
    assert unnamed([mention], "Then put on some jazz!") == []
    assert unnamed([mention], "Oh dear.") == [mention]
    warning = Mention.warning("Mind that you are allergic to mangoes.", "You are allergic to mangoes.")
    assert unnamed([mention, warning], "Then put on some jazz!") == [warning]
    assert unnamed([warning], "You are allergic to mangoes, so have a banana.") == []


def spoken(heard: str, model: Sequence[str] | Exception, **how: object) -> tuple[list[str], Outcome]:
    planned_ = plan_for(heard, **how)  # type: ignore[arg-type]
    asked = Asked(heard, NOON, planned_, [system_message()], ())

    async def writes() -> AsyncGenerator[str, None]:
        if isinstance(model, Exception):
            raise model
        for text in model:
            yield text

    outcome = Outcome()

    async def go() -> list[str]:
        written = split(writes(), ClauseSplitter())
        editor = Editor(heard, planned_.message, planned_.health)
        return [clause async for clause in sayable(asked, written, editor, outcome)]

    return asyncio.run(go()), outcome


SAD = "I feel terrible."


def test_a_reply_that_forgets_the_allergy_is_reminded_of_it_whatever_else_it_says() -> None:
    health = ["The wearer is allergic to peanuts."]
    said, _ = spoken("I bake cookies tonight.", ["Have fun ", "baking! ", "They smell great."], health=health)
    assert said == ["Have fun baking!", "Mind that you are allergic to peanuts."]


def test_an_evasion_is_not_spoken() -> None:
    said, outcome = spoken(SAD, ["I'm sorry, but I can't ", "assist with that. "])
    assert said == [SORRY]
    assert outcome.route == "fallback"


def test_a_greeting_whose_rest_may_not_be_said_is_no_half_sentence() -> None:
    heard = "Good morning, my cousin lives in Rome."
    said, _ = spoken(heard, ["Good morning, ", "my cousin lives in Rome."])
    assert said == ["Good morning,", NOTED]


def test_an_engine_that_fails_before_its_first_word_is_not_met_with_silence() -> None:
    said, outcome = spoken("My cousin lives in Rome.", EngineError("gone"))
    assert said == [NOTED]
    assert outcome.error is not None


# The conversation's share of the prompt.


def talked(conversation: Conversation, number: int, words: str = "") -> None:
    heard = f"I bought lamp number {number}. {words}"
    conversation.add(f"The wearer says: {heard}", heard, f"Nice lamp {number}.", NOON)


def test_what_leaves_the_prompt_stays_in_short() -> None:
    conversation = Conversation(limit=4)
    for number in range(5):
        talked(conversation, number)
    prompt = conversation.messages([system_message()], "x", NOON)
    assert prompt[1].text.startswith(EARLIER)
    assert "lamp number 0" in prompt[1].text
    assert len(conversation.said(NOON)) == 3


def test_long_turns_leave_earlier_so_that_the_prompt_stays_within_its_share() -> None:
    conversation = Conversation(limit=40, tokens=200)
    for number in range(60):
        talked(conversation, number, "very " * 30)
        letters = sum(len(m.text) for m in conversation.messages([], "", NOON))
        assert letters <= 200 * 4 + 400 + 400


def test_a_summary_made_ahead_is_used_when_its_turns_go_and_not_before() -> None:
    conversation = Conversation(limit=4)
    for number in range(3):
        talked(conversation, number)
    going = conversation.to_summarise()
    assert len(going) == 2
    before = conversation.messages([], "x", NOON)
    conversation.summarised(going, "The wearer bought lamps.")
    assert conversation.messages([], "x", NOON) == before  # what the model has read stays as it is
    assert conversation.to_summarise() == ()
    talked(conversation, 3)
    talked(conversation, 4)
    assert conversation.earlier == "The wearer bought lamps."


def test_a_new_conversation_begins_without_the_old_ones_summary() -> None:
    conversation = Conversation(limit=2)
    for number in range(5):
        talked(conversation, number)
    later = NOON + timedelta(hours=2)
    assert conversation.messages([], "Hello.", later)[0].text == "Hello."
    conversation.add("Hello.", "Hello.", "Hi!", later)
    assert conversation.earlier == ""
