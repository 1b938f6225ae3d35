"""What a question asks for, and that words are the same outside the database as inside it."""

from __future__ import annotations

from datetime import datetime

import pytest
import sqlcipher3
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.remember.query import in_place, read_question, tells_when
from os1_edge.remember.stem import stem, words

NOW = datetime(2026, 3, 4, 15, 30)
ENDINGS = (
    "", "s", "es", "ies", "ed", "ing", "eed", "ational", "ization", "fulness", "iveness", "ously", "ement",
    "ions", "ability", "icate", "ness", "ical", "er", "y", "ll", "e", "able", "ance", "logies",
)  # fmt: skip


def fts5_stems(text: list[str]) -> list[str]:
    db = sqlcipher3.connect(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE f USING fts5(t, tokenize='porter unicode61 remove_diacritics 2', detail=full)"
    )
    db.executemany("INSERT INTO f (rowid, t) VALUES (?,?)", list(enumerate(text)))
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, instance)")
    found = dict(db.execute("SELECT doc, term FROM v"))
    db.close()
    return [found.get(i, "") for i in range(len(text))]


STEMS = st.text("abcdefghiklmnoprstuvwyz", min_size=1, max_size=9)


@given(st.lists(st.tuples(STEMS, st.sampled_from(ENDINGS)), min_size=1, max_size=60))
def test_a_stem_is_the_one_that_the_database_makes(parts: list[tuple[str, str]]) -> None:
    made = [start + end for start, end in parts]
    assert [stem(word) for word in made] == fts5_stems(made)


def test_words_lose_case_and_accents_as_in_the_database() -> None:
    assert words("Café, I'm GLÜCKLICH at 5!") == ["cafe", "i", "m", "glucklich", "at", "5"]


def test_function_words_are_not_searched_for() -> None:
    assert read_question("What did I do about the red bikes?", NOW).terms == ("red", "bike")


def test_a_speakers_name_says_who_spoke_not_what_was_said() -> None:
    question = read_question("What did Anna paint in Anna's garden?", NOW, ["Anna", "Ben"])
    assert question.people == {"anna"}
    assert question.terms == ("paint", "garden")
    assert "Anna" not in question.plain
    assert not question.of_wearer


def test_a_name_that_is_all_there_is_stays() -> None:
    question = read_question("Who is Anna?", NOW, ["Anna"])
    assert question.terms == ("anna",)
    assert question.people == {"anna"}


def test_the_wearer_may_be_meant_by_name_or_by_i() -> None:
    assert read_question("Where did I park?", NOW).of_wearer
    assert read_question("Where did Eva park?", NOW, [], "Eva").of_wearer
    assert not read_question("Where did Ben park my car?", NOW, ["Ben"]).of_wearer


def test_a_time_that_is_looked_up_is_not_searched_for_as_a_word() -> None:
    question = read_question("What did I eat yesterday?", NOW)
    assert question.terms == ("eat",)
    assert question.times is not None
    assert question.times.phrase == "yesterday"


@pytest.mark.parametrize(
    ("text", "vague"), [("What happened yesterday?", True), ("Where is my bike?", False)]
)
def test_a_question_for_everything_is_seen(text: str, vague: bool) -> None:
    assert read_question(text, NOW).vague is vague


def test_a_place_is_meant_where_it_is_named_as_one() -> None:
    assert in_place(read_question("What did I do at the gym?", NOW), "the gym")
    assert not in_place(read_question("What did I do at the gym?", NOW), "kitchen")
    assert not in_place(read_question("What did I do at the gym?", NOW), "")


def test_evidence_for_a_when_question_holds_a_word_of_time() -> None:
    assert read_question("When did I move?", NOW).asks_when
    assert tells_when("I moved last week.")
    assert not tells_when("I like tea.")


@given(st.text(max_size=120))
def test_no_words_break_it(text: str) -> None:
    question = read_question(text, NOW, ["Anna", "x("], "[")
    assert len(question.words) <= 16
