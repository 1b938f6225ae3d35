"""A reply cut into clauses as it is written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from os1_edge.speak.clauses import LONGEST, ClauseSplitter, clauses_of


def clauses(*pieces: str) -> list[str]:
    splitter = ClauseSplitter()
    out = [clause for piece in pieces for clause in splitter.add(piece)]
    return out + splitter.finish()


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Lee paid $3.14 on Jan. 5.",
        "Dr. Lee paid $3.14 on Jan. 5, 2026.",
        "It is 3.5 km to St. Mary.",
        "Wake up at 7 a.m. on Monday.",
        "Wake up at 3 p.m. tomorrow.",
        "He joined the U.S. Army.",
        "See e.g. the red one.",
        "Mr. J. R. Smith called.",
        "Platform No. 5 it is.",
        "The ratio is 3:1 or 1,000 to one.",
        "Version 2.0.1 is out.",
        "Yes, I do.",
        "It lies at https://example.com/a.b,c?d=1.5 now.",
        "Ask Prof. Ng vs. Mrs. O'Neill.",
        "The party is on Monday, January 5.",
        "Between 5 - 6 people came.",
        "Call `max(a, b). f()` then.",
        "Das ist am 5. Mai z.B. möglich.",
        "Bonjour !",
        "Acme Inc. bought it.",
        "She met Washington D.C. officials.",
        "1. Buy milk.",
        "It grew approx. five times.",
        "Pick 1, 2, 3 or 4 of them.",
    ],
)
def test_a_mark_inside_a_sentence_does_not_cut_it(sentence: str) -> None:
    assert clauses(sentence) == [sentence]
    assert clauses(*sentence) == [sentence]
    assert clauses(sentence + " And then?") == [sentence, "And then?"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'Good morning! Your dentist is at three, so leave at two... "Really?" Yes — take the bus.\nBye',
            [
                "Good morning!",
                "Your dentist is at three, so leave at two...",
                '"Really?"',
                "Yes — take the bus.",
                "Bye",
            ],
        ),
        ("Your dentist is at three, so leave at two.", ["Your dentist is at three,", "so leave at two."]),
        ("He lives in the U.S. The rest do not.", ["He lives in the U.S.", "The rest do not."]),
        ("Be there at 3 p.m. You can walk.", ["Be there at 3 p.m.", "You can walk."]),
        ("Oh no. It rains.", ["Oh no.", "It rains."]),
        ("It was 2024. Then it ended.", ["It was 2024.", "Then it ended."]),
        ("- milk\n- eggs, bread\n- tea", ["- milk", "- eggs, bread", "- tea"]),
        ("1. Buy milk.\n2. Go home.", ["1. Buy milk.", "2. Go home."]),
        ("Great! 😀 Let's go. 👍", ["Great!", "😀 Let's go.", "👍"]),
        ("**Done.** Next one.", ["**Done.**", "Next one."]),
        ("今天天气很好。我们去公园吧！好吗？", ["今天天气很好。", "我们去公园吧！", "好吗？"]),
        ("« Oui ! » Il part.", ["« Oui !", "» Il part."]),
        ("“Come in.” She left.", ["“Come in.”", "She left."]),
    ],
)
def test_sentences_are_spoken_one_by_one(text: str, found: list[str]) -> None:
    assert clauses(text) == found
    assert clauses(*text) == found
    assert list(clauses_of(text)) == found


def test_the_first_clause_is_given_while_the_rest_is_still_unwritten() -> None:
    splitter = ClauseSplitter()
    assert splitter.add("You like green tea") == []
    assert splitter.add(".") == []
    assert splitter.add(" And") == ["You like green tea."]
    assert splitter.finish() == ["And"]
    assert splitter.finish() == []


def test_a_long_first_sentence_is_heard_before_it_is_complete() -> None:
    splitter = ClauseSplitter()
    assert splitter.add("Your keys were on the kitchen table this morning and you ") == [
        "Your keys were on the kitchen table this morning"
    ]
    # Later there is time: a sentence stays whole.
    assert splitter.add("put them into the bag, with the red book and the ") == []


def test_a_short_beginning_is_not_torn_off() -> None:
    assert clauses("Well, but you know it.") == ["Well, but you know it."]
    assert clauses("Salt and pepper and bread and butter.") == ["Salt and pepper and bread and butter."]


def test_a_reply_without_any_mark_is_cut_at_a_space_before_it_gets_too_long() -> None:
    found = clauses("word " * 200)
    assert all(len(c) <= LONGEST for c in found)
    assert all(c.split() == ["word"] * len(c.split()) for c in found)
    assert all(len(c) <= LONGEST for c in clauses("x" * 1000))
    assert all(not c.endswith((" 5", "Dr.")) for c in clauses("about 5 Dr. Who stories " * 40)[:-1])


def test_a_reply_cut_as_too_long_goes_on_at_once() -> None:
    splitter = ClauseSplitter()
    assert len(splitter.add("word " * 50)) == 1


PROSE = st.text(st.sampled_from("abDr. ,;:-–!?…\n\"')J3。，`—"), max_size=700)
TOKENS = (
    "Dr. Lee $3.14 p.m. The it and you but Jan. 5, 2026 Monday, U.S. "
    "— well, no. https://a.b/c,d. 5. Mai “Oh.”"
)
WORDS = st.lists(
    st.sampled_from([*TOKENS.split(), "\n", "x" * 40, "好。", "`a,", "b`"]),
    max_size=60,
).map(" ".join)


@given(PROSE | WORDS, st.integers(1, 7))
@example("a" * 50 + " " + "b" * 200 + ". c", 3)
@example("x" * 219 + ". " + "y" * 300, 1)
@example("x" * 217 + " p.m. The" + " y" * 300, 1)
def test_however_it_is_chopped_up_the_clauses_are_the_same(text: str, size: int) -> None:
    whole = clauses(text)
    assert clauses(*text) == whole
    assert clauses(*(text[i : i + size] for i in range(0, len(text), size))) == whole


@given(st.lists(st.text(max_size=60), max_size=20) | st.lists(PROSE, max_size=4) | WORDS.map(lambda t: [t]))
def test_nothing_of_a_reply_is_lost(pieces: list[str]) -> None:
    found = clauses(*pieces)
    assert "".join("".join(found).split()) == "".join("".join(pieces).split())
    assert all(c == c.strip() and c and len(c) <= LONGEST for c in found)
