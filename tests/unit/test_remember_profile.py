"""What the wearer says of themselves, and what only sounds like it."""

from __future__ import annotations

import pytest

from os1_edge.remember.contradict import ends
from os1_edge.remember.profile import propose, said_again


def lines(said: str) -> list[str]:
    return [p.text.removeprefix("The wearer ") for p in propose(said)]


@pytest.mark.parametrize(
    "said",
    [
        # reported speech
        "My sister said I am allergic to cats.",
        "My sister said, I am allergic to cats.",
        "I am allergic to cats, said my sister.",
        "He told me that I love opera.",
        "According to my doctor I am diabetic.",
        "They say I like jazz.",
        'She goes "I like jazz".',
        # negated frames
        "I don't think I like jazz.",
        "I never said I like jazz.",
        "Nobody knows that I am vegan.",
        "It is not true that I am vegan.",
        "I am not sure, I like jazz.",
        "I prefer not to drink.",
        "My name is not Ada.",
        # conditionals and hypotheticals
        "If I like it, I will buy it.",
        "If the weather is fine, I love walking.",
        "When I am pregnant, I will stop.",
        "I love walking if the weather is fine.",
        "Suppose I am vegan.",
        "Imagine, I live in Paris.",
        "I wish I live in Paris.",
        "Maybe I like jazz.",
        "I might say I like jazz.",
        # the past
        "I used to like tea.",
        "I used to think I like tea.",
        # nothing that means something later
        "I like it.",
        "I love you!",
        "I hate that.",
        "I don't like them.",
    ],
)
def test_what_is_not_stated_as_a_fact_does_not_enter_the_profile(said: str) -> None:
    assert lines(said) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I'm allergic to cats.", ["is allergic to cats"]),
        ("I’m allergic to cats.", ["is allergic to cats"]),
        ("Oh, and please remember that I like tea.", ["likes tea"]),
        ("OS-1, you should know I am vegan.", ["is vegan"]),
        ("I have to tell you that I am allergic to nuts.", ["is allergic to nuts"]),
        ("I live in Oslo and I love skiing.", ["lives in Oslo", "likes skiing"]),
        ("My name is Ada and I work at the harbour.", ["is called Ada", "works at the harbour"]),
        ("I like fish and chips.", ["likes fish and chips"]),
        ("Not only that: I like tea very much!", ["likes tea"]),
        ("I don't like tea anymore.", ["does not like tea"]),
        ("I no longer like tea.", ["does not like tea"]),
        ("I never eat meat.", ["does not eat meat"]),
        ("I no longer drink coffee.", ["does not drink coffee"]),
        ("I'm no longer vegan.", ["is not vegan"]),
        ("I am not allergic to cats.", ["is not allergic to cats"]),
    ],
)
def test_a_plain_statement_enters_the_profile(said: str, expected: list[str]) -> None:
    assert lines(said) == [f"{line}." for line in expected]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("does not like tea", "likes tea"),
        ("likes Tea", "does not like tea"),
        ("does not drink coffee", "likes coffee"),
        ("does not drink coffee", "drinks coffee"),
        ("does not eat meat", "likes meat"),
        ("is not vegan", "is vegan"),
        ("is not allergic to cats", "is allergic to cats"),
        ("is allergic to cats", "is not allergic to cats"),
    ],
)
def test_the_contrary_ends_a_line(new: str, old: str) -> None:
    assert ends(f"The wearer {new}.", f"The wearer {old}.")


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("does not like green tea", "likes tea"),
        ("likes tea", "likes tea"),
        ("does not like tea", "does not drink tea"),
        ("likes coffee", "does not drink coffee"),
        ("lives in Oslo", "lives in Norway"),
    ],
)
def test_another_matter_ends_nothing(new: str, old: str) -> None:
    assert ends(f"The wearer {new}.", f"The wearer {old}.") is None


def test_a_line_and_its_denial_are_not_the_same_however_near() -> None:
    cats, no_cats = "The wearer is allergic to cats.", "The wearer is not allergic to cats."
    assert said_again(cats, cats, 0.93)
    assert not said_again(no_cats, cats, 0.93)
    assert not said_again(cats, cats, 0.89)
